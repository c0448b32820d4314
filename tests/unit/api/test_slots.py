"""What happened to an operation, and who holds slots for how long."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.door import Entrance, entrance
from tests.support.told import START_MS, Told
from tests.support.words import e

TOLD = Told()


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Entrance]:
    with entrance(tmp_path) as made:
        yield made


def test_the_history_of_an_operation_tells_each_event_once_in_order(door: Entrance) -> None:
    door.doubt(TOLD)
    door.tell(e.DuplicateObserved(tenant="acme", operation=TOLD.id, state="unknown"))
    door.tell(TOLD.scheduled("unknown", START_MS + 50))
    path = f"/v1/operations/{TOLD.id.hex()}/events"
    found = door.ask("GET", path).json()
    assert [(step["type"], step["detail"]) for step in found["items"]] == [
        ("OperationAdmitted", None),
        ("GrantIssued", None),
        ("LeaseClaimed", None),
        ("StartAccepted", None),
        ("LeaseExpired", None),
        ("OutcomeMarkedUnknown", "lease_expired"),
        ("RetryScheduled", "unknown"),
    ]
    assert found["items"][0]["position"] == "main:1:1:0"
    assert found["dropped"] == 0


def test_what_a_stranger_says_of_an_operation_is_not_in_its_history(door: Entrance) -> None:
    door.start(TOLD)
    stale = {**TOLD.attempt, "tenant": "bolt"}
    door.tell(e.ResultRefusedStale(**stale, code="not-found", outcome="success"))
    found = door.ask("GET", f"/v1/operations/{TOLD.id.hex()}/events").json()
    assert "ResultRefusedStale" not in {step["type"] for step in found["items"]}


def test_slots_are_listed_by_how_long_they_are_held(door: Entrance) -> None:
    door.doubt(TOLD)
    later, waiting = Told("k2", sequence=2, member="m2"), Told("k3", sequence=3)
    door.tell((0, later.admitted()), (1, waiting.admitted()), inputs=[(0, 0, 2)])
    door.tell(later.granted())
    found = door.ask("GET", "/v1/slots").json()["items"]
    assert [(one["state"], one["member"], one["slots"]) for one in found] == [
        ("unknown", "m1", 1),
        ("granted", "m2", 1),
    ]
    assert found[1]["until"] == "2023-11-14T22:13:50.000Z"
    door.tell(*later.started(START_MS + 200))
    older = door.ask("GET", "/v1/slots", params={"older_than_ms": 3}).json()["items"]
    assert [one["operation"] for one in older] == [TOLD.id.hex()]
    assert door.ask("GET", "/v1/slots", params={"domain": "x"}).json()["items"] == []
    door.tell(later.result(), later.settled())
    assert len(door.ask("GET", "/v1/slots").json()["items"]) == 1


@pytest.mark.parametrize("path", ["/v1/unknowns", "/v1/slots", "/v1/dead-letters"])
@pytest.mark.parametrize("cursor", ["x", "ä"])
def test_a_cursor_that_nobody_was_given_is_malformed(
    door: Entrance, path: str, cursor: str
) -> None:
    reply = door.ask("GET", path, params={"cursor": cursor})
    assert (reply.status_code, reply.json()["code"]) == (400, "malformed")
