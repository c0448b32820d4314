"""Unknown outcomes and dead letters at the door: what is shown, and what operators may say."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.door import Entrance, entrance
from tests.support.told import START_MS, Told
from tests.support.words import e, i

TOLD = Told()
PATH = f"/v1/unknowns/{TOLD.id.hex()}:reconcile"
SAID = {"as": "completed", "reason": "seen in the provider's console"}


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Entrance]:
    with entrance(tmp_path) as made:
        yield made


def unknowns(door: Entrance, **params: Any) -> list[Any]:
    found: list[Any] = door.ask("GET", "/v1/unknowns", key="operator", params=params).json()[
        "items"
    ]
    return found


def reconcile(door: Entrance, *, key: str = "operator", **said: Any) -> Any:
    headers = {"Prefer": "wait=0"}
    return door.ask("POST", PATH, key=key, json={**SAID, **said}, headers=headers)


def test_an_unknown_outcome_tells_holder_hold_bound_and_evidence(door: Entrance) -> None:
    door.doubt(TOLD)
    door.tell(
        e.EvidenceRecorded(
            **TOLD.attempt,
            source="provider_lookup",
            evidence="call-7",
            verdict="inconclusive",
            confidence="provider_reported",
        )
    )
    (one,) = unknowns(door)
    assert (one["state"], one["member"], one["attempt"], one["epoch"]) == ("unknown", "m1", 1, 1)
    assert (one["held"], one["slots"], one["tokens"], one["awaited"]) == (True, 1, 300, True)
    assert (one["age_ms"], one["overdue"]) == (1, False)
    assert one["unknown"]["hold_until"] == "2023-11-14T22:28:20.000Z"
    (evidence,) = one["unknown"]["evidence"]
    assert (evidence["evidence"], evidence["verdict"]) == ("call-7", "inconclusive")


def test_an_older_attempt_stays_listed_while_it_holds(door: Entrance) -> None:
    door.doubt(TOLD)
    later = TOLD.again()
    door.tell(TOLD.scheduled("unknown", START_MS + 50))
    door.tell(e.OperationUnparked(tenant="acme", operation=TOLD.id), later.granted())
    (one,) = unknowns(door)
    assert (one["state"], one["epoch"], one["awaited"], one["held"]) == ("granted", 1, False, True)
    stale = e.ResultRefusedStale(**TOLD.attempt, code="epoch-superseded", outcome="success")
    door.tell(stale, TOLD.settled())
    assert unknowns(door) == []


def test_unknown_outcomes_are_paged_oldest_first_and_filtered(door: Entrance) -> None:
    told = [
        Told(f"k{n}", tenant="bolt" if n % 2 else "acme", sequence=n, member=f"m{n}")
        for n in range(5)
    ]
    for one in reversed(told):
        door.doubt(one)
    path = "/v1/unknowns"
    first = door.ask("GET", path, key="operator", params={"limit": 3}).json()
    rest = door.ask(
        "GET", path, key="operator", params={"limit": 3, "cursor": first["next"]}
    ).json()
    listed = [item["operation"] for item in first["items"] + rest["items"]]
    assert listed == [one.id.hex() for one in reversed(told)]
    assert rest["next"] is None
    assert [one["member"] for one in unknowns(door, tenant="bolt")] == ["m3", "m1"]
    assert unknowns(door, domain="elsewhere") == []
    assert len(unknowns(door, domain="d")) == 5


def test_a_hold_past_its_bound_is_overdue(door: Entrance) -> None:
    door.doubt(TOLD, hold_until_ms=START_MS + 10)
    assert not unknowns(door)[0]["overdue"]
    door.journal.time_ms = START_MS + 10
    door.tell(e.MemberLost(member="m1", member_epoch="e1"))
    assert unknowns(door)[0]["overdue"]


@pytest.mark.parametrize("verdict", ["completed", "failed", "not_executed", "abandoned"])
def test_an_operator_says_what_became_of_it_with_author_and_reason(
    door: Entrance, verdict: str
) -> None:
    door.doubt(TOLD)
    reply = reconcile(door, **{"as": verdict}, prompt_tokens=3, epoch=1)
    assert (reply.status_code, reply.json()["state"]) == (202, "unknown")
    assert reply.headers["Evenhand-Input"] == reply.json()["input"] == "control:0:0"
    (word,) = door.sender.sent
    assert word == i.ReconcileRequested(
        tenant="acme",
        operation=TOLD.id,
        verdict=verdict,
        author=door.keys["operator"].split("_")[1],
        reason=SAID["reason"],
        epoch=1,
        prompt_tokens=3,
    )


def test_what_the_owner_decides_in_time_is_told(door: Entrance) -> None:
    door.doubt(TOLD)
    door.sender.owner = lambda _: [
        TOLD.reconciled("operator", "completed", author="op", reason="seen"),
        TOLD.settled(None),
    ]
    reply = door.ask("POST", PATH, key="operator", json=SAID)
    assert (reply.status_code, reply.json()["state"]) == (202, "succeeded")
    found = door.ask("GET", f"/v1/operations/{TOLD.id.hex()}").json()
    assert (found["state"], found["unknown"]["reconciled_by"]) == ("succeeded", "operator")
    assert found["unknown"]["evidence"][0]["author"] == "op"
    assert unknowns(door) == []


def test_what_the_owner_refuses_is_refused_with_its_code(door: Entrance) -> None:
    door.doubt(TOLD)
    door.sender.owner = lambda asked: [
        e.ManualActionRefused(
            tenant="acme",
            operation=TOLD.id,
            action="reconcile",
            code="not-unknown",
            detail="Expected an unknown outcome, but it is succeeded",
            author=asked.author,
        )
    ]
    reply = door.ask("POST", PATH, key="operator", json=SAID)
    assert (reply.status_code, reply.json()["code"]) == (409, "not-unknown")


def test_only_what_is_unknown_is_reconciled(door: Entrance) -> None:
    assert reconcile(door).json()["code"] == "not-found"
    door.start(TOLD)
    reply = reconcile(door)
    assert (reply.status_code, reply.json()["code"]) == (409, "not-unknown")
    door.tell(TOLD.unknown())
    assert reconcile(door, epoch=7).json()["code"] == "not-unknown"
    assert door.sender.sent == []


def test_a_closed_operation_can_still_be_told_how_it_ended(door: Entrance) -> None:
    door.doubt(TOLD)
    needed = e.OperatorActionNeeded(
        tenant="acme", operation=TOLD.id, incarnation=1, epoch=1, reason="hold_bound"
    )
    door.tell(forfeited(), needed)
    assert unknowns(door) == []
    (letter,) = door.ask("GET", "/v1/dead-letters").json()["items"]
    assert (letter["state"], letter["code"]) == ("unknown_closed", "hold_bound")
    assert reconcile(door).status_code == 202


def forfeited() -> Any:
    return e.ReservationForfeited(
        **TOLD.attempt, domain="d", tokens_reserved=300, held_ms=900_000, cost_ns=1
    )


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"as": "odd"}, "as"),
        ({"reason": ""}, "reason"),
        ({"reason": "x" * 501}, "reason"),
        ({"prompt_tokens": -1}, "prompt_tokens"),
        ({"epoch": -1}, "epoch"),
        ({"author": "me"}, "author"),
    ],
)
def test_a_reconciliation_that_cannot_be_is_refused(
    door: Entrance, change: dict[str, Any], field: str
) -> None:
    door.doubt(TOLD)
    reply = reconcile(door, **change)
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid-field")
    assert reply.json()["errors"][0]["field"] == field
    assert door.sender.sent == []


RETRY = f"/v1/operations/{TOLD.id.hex()}:retry"


def test_a_dead_operation_is_tried_again_by_hand(door: Entrance) -> None:
    door.start(TOLD)
    body = {"reason": "mended", "start_within_ms": 60_000}
    early = door.ask("POST", RETRY, key="operator", json=body)
    assert (early.status_code, early.json()["code"]) == (409, "not-dead")
    door.tell(TOLD.result("retryable"), TOLD.settled(), TOLD.dead())
    (letter,) = door.ask("GET", "/v1/dead-letters", params={"state": "dead"}).json()["items"]
    assert (letter["code"], letter["ended_at"] is None) == ("attempts-exhausted", False)
    door.sender.owner = lambda asked: [
        e.ManualRetryAccepted(
            tenant="acme",
            operation=TOLD.id,
            deadline_ms=START_MS + asked.start_within_ms,
            author=asked.author,
            reason=asked.reason,
        )
    ]
    reply = door.ask("POST", RETRY, key="operator", json=body)
    assert (reply.status_code, reply.json()["state"]) == (202, "waiting")
    found = door.ask("GET", f"/v1/operations/{TOLD.id.hex()}").json()
    assert (found["state"], found["code"], found["ended_at"]) == ("waiting", None, None)
    assert found["deadline"] == "2023-11-14T22:14:20.000Z"
    assert door.ask("GET", "/v1/dead-letters").json()["items"] == []


@pytest.mark.parametrize("change", [{"reason": ""}, {"start_within_ms": 0}, {"start_within_ms": 1}])
def test_a_retry_needs_a_reason_and_a_deadline(door: Entrance, change: dict[str, Any]) -> None:
    door.start(TOLD)
    door.tell(TOLD.result("retryable"), TOLD.settled(), TOLD.dead())
    body = {"reason": "mended", "start_within_ms": 60_000, **change}
    reply = door.ask("POST", RETRY, key="operator", json=body, headers={"Prefer": "wait=0"})
    assert (reply.status_code == 202) == (change == {"start_within_ms": 1})
    assert len(door.sender.sent) == (reply.status_code == 202)


def test_unknown_outcomes_of_one_operation_can_be_asked_for(door: Entrance) -> None:
    door.doubt(TOLD)
    door.doubt(Told("k2", sequence=2))
    assert [one["operation"] for one in unknowns(door, operation=TOLD.id.hex())] == [TOLD.id.hex()]
