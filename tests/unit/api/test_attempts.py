"""What members say about attempts over HTTP: who may speak, and what is answered."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from schemas.topics import Topic
from tests.support.door import Entrance
from tests.support.speaking import ABOUT_ATTEMPTS, granted, member, say, speaks, workplace
from tests.support.told import START_MS, Told
from tests.support.words import e


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Entrance]:
    with workplace(tmp_path) as made:
        yield made


@pytest.mark.parametrize("what", ABOUT_ATTEMPTS)
@pytest.mark.parametrize("key", ["colleague", "acme", "bolt"])
def test_nobody_speaks_for_another_keys_member(door: Entrance, what: str, key: str) -> None:
    granted(door)
    assert say(door, what, key=key).json()["code"] == "not-found"
    assert door.sender.sent == []


@pytest.mark.parametrize("what", ABOUT_ATTEMPTS)
@pytest.mark.parametrize("key", ["acme", "bolt"])
def test_a_tenants_own_member_has_no_part_in_a_pool_of_workers(
    door: Entrance, what: str, key: str
) -> None:
    granted(door)
    path, body = ABOUT_ATTEMPTS[what](speaks(door, key))
    assert door.ask("POST", path, key=key, json=body).json()["code"] == "not-found"
    assert door.sender.sent == []


@pytest.mark.parametrize("what", ABOUT_ATTEMPTS)
@pytest.mark.parametrize("key", ["operator", "auditor"])
def test_who_only_reads_or_steers_is_no_member(door: Entrance, what: str, key: str) -> None:
    assert say(door, what, key=key).json()["code"] == "forbidden"


def test_usage_is_told_by_the_member_that_was_charged(door: Entrance) -> None:
    door.tell(Told(member=member(door, "colleague")).granted())
    assert say(door, "usage").json()["code"] == "not-found"
    assert door.sender.sent == []


def test_a_broker_that_does_not_confirm_says_come_again(door: Entrance) -> None:
    door.sender.broken = True
    found = say(door, "start")
    assert (found.status_code, found.json()["code"]) == (503, "not-written")
    assert found.json()["keep_key"]


def test_an_accepted_start_tells_how_long_it_is_good_for(door: Entrance) -> None:
    told = granted(door)
    claimed = e.LeaseClaimed(**told.attempt, expires_ms=START_MS + 60_000)
    door.sender.owner = lambda _: [claimed, told.started(START_MS + 200)[1]]
    found = say(door, "start")
    assert found.status_code == 200
    assert found.json() == {
        "operation": told.id.hex(),
        "epoch": 1,
        "send_within_ms": 200,
        "lease_expires_at": "2023-11-14T22:14:20.000Z",
        "latest_arrival_at": "2023-11-14T22:13:20.200Z",
    }
    (word,) = door.sender.sent
    assert (word.tenant, word.member, word.epoch) == ("acme", member(door), 1)


def test_a_claim_tells_its_lease_and_a_repeat_changes_nothing(door: Entrance) -> None:
    told = granted(door)
    door.sender.owner = lambda _: [e.LeaseClaimed(**told.attempt, expires_ms=START_MS)]
    assert say(door, "claim").json()["expires_at"] == "2023-11-14T22:13:20.000Z"
    door.sender.owner = lambda _: []
    found = say(door, "claim")
    assert (found.status_code, found.json()["expires_at"]) == (200, None)


REFUSALS = [
    ("claim", e.ClaimRefused, {"code": "claim-held"}, 409),
    ("start", e.StartRefused, {"code": "start-refused"}, 409),
    ("start", e.StartRefused, {"code": "epoch-superseded"}, 412),
    ("checkpoint", e.CheckpointRefused, {"code": "checkpoint-gap", "number": 1}, 409),
    ("checkpoint", e.CheckpointRefused, {"code": "epoch-superseded", "number": 1}, 412),
    ("result", e.ResultRefusedStale, {"code": "epoch-superseded", "outcome": "success"}, 412),
    ("result", e.ResultRefusedStale, {"code": "settlement-conflict", "outcome": "success"}, 409),
    ("result", e.ResultRefusedStale, {"code": "not-started", "outcome": "success"}, 409),
    ("usage", e.UsageRefused, {"code": "usage-out-of-range"}, 422),
    ("usage", e.UsageRefused, {"code": "usage-unit-unknown"}, 422),
]


@pytest.mark.parametrize(("what", "kind", "fields", "status"), REFUSALS)
def test_each_refusal_of_the_owner_has_its_code(
    door: Entrance, what: str, kind: Any, fields: dict[str, Any], status: int
) -> None:
    told = granted(door)
    door.sender.owner = lambda _: [kind(**told.attempt, **fields)]
    found = say(door, what)
    assert (found.status_code, found.json()["code"]) == (status, fields["code"])
    assert found.json()["operation"] == told.id.hex()


def test_a_recorded_result_tells_how_it_was_settled(door: Entrance) -> None:
    told = granted(door)
    door.tell(*told.started(START_MS + 200))
    door.sender.owner = lambda _: [told.result(), told.settled()]
    found = say(door, "result").json()
    assert (found["state"], found["replayed"]) == ("succeeded", False)
    assert found["settlement"] == {
        "tokens_reserved": 300,
        "tokens_actual": 240,
        "overdraft_tokens": 0,
        "cost_ns": 800_000,
    }
    door.sender.owner = lambda _: []
    again = say(door, "result").json()
    assert (again["state"], again["replayed"], again["settlement"]) == ("succeeded", True, None)


def test_what_the_cell_cannot_read_is_refused_with_its_reason(door: Entrance) -> None:
    granted(door)
    door.sender.owner = lambda _: [
        e.InputQuarantined(
            topic=Topic.RESULTS, partition=0, offset=0, code="key-mismatch", detail="Expected so"
        )
    ]
    found = say(door, "result").json()
    assert (found["code"], found["detail"]) == ("key-mismatch", "Expected so")


def test_an_outcome_of_no_class_and_a_field_of_no_kind_are_refused_before_the_log(
    door: Entrance,
) -> None:
    granted(door)
    for more in ({"outcome": "fine"}, {"outcome": "success", "tenant": "bolt"}):
        body = {**speaks(door), **more}
        found = door.ask("POST", "/v1/results", key="worker", json=body)
        assert found.json()["code"] == "invalid-field"
    assert door.sender.sent == []
