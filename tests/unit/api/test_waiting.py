"""`Prefer: wait`: a success is told only once an accepted entry has it, and no later than asked."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.door import SUBMIT, Entrance, entrance
from tests.support.told import START_MS, Told

TOLD = Told()
PATH = f"/v1/operations/{TOLD.id.hex()}"


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Entrance]:
    with entrance(tmp_path) as made:
        yield made


def start(door: Entrance) -> None:
    door.tell((0, TOLD.admitted()), inputs=[(0, 0, 1)])
    door.tell(TOLD.granted(), *TOLD.started(START_MS + 200))


def while_waiting(door: Entrance, request: Any, *events: Any) -> httpx.Response:
    """The reply to a request during which the owner decides this."""

    async def both() -> httpx.Response:
        async with door.client() as client:
            client.headers["Authorization"] = f"Bearer {door.keys['acme']}"
            waiting = asyncio.create_task(request(client))
            done, _ = await asyncio.wait([waiting], timeout=0.1)
            assert not done, "Expected the request to wait"
            door.journal.tell(*events)
            found: httpx.Response = await waiting
            return found

    return asyncio.run(both())


def get(client: httpx.AsyncClient) -> Any:
    return client.get(PATH, headers={"Prefer": "wait=20"})


def test_a_reader_waits_for_the_recorded_end(door: Entrance) -> None:
    start(door)
    reply = while_waiting(door, get, TOLD.result(), TOLD.settled())
    assert (reply.status_code, reply.json()["state"]) == (200, "succeeded")
    assert reply.headers["Preference-Applied"] == "wait=20"
    assert reply.headers["Evenhand-Position"] == "main:1:3:1"


def test_what_has_ended_is_told_at_once(door: Entrance) -> None:
    start(door)
    door.tell(TOLD.result("terminal"), TOLD.settled())
    reply = door.ask("GET", PATH, headers={"Prefer": "wait=20"})
    assert (reply.status_code, reply.json()["state"]) == (200, "failed")


def test_a_wait_ends_when_it_was_told_to(door: Entrance) -> None:
    start(door)
    reply = door.ask("GET", PATH, headers={"Prefer": "respond-async, wait=1"})
    assert (reply.status_code, reply.json()["state"]) == (202, "started")
    assert reply.headers["Preference-Applied"] == "wait=1"


def test_an_unknown_outcome_is_no_end(door: Entrance) -> None:
    start(door)
    door.tell(TOLD.unknown())
    reply = door.ask("GET", PATH, headers={"Prefer": "wait=0"})
    assert (reply.status_code, reply.json()["state"]) == (202, "unknown")


def test_noise_on_the_journal_ends_no_wait(door: Entrance) -> None:
    """A success is told only from an entry that the chain rule accepts (R71)."""
    start(door)
    door.journal.tell(TOLD.result(), TOLD.settled(), height=99)
    reply = door.ask("GET", PATH, headers={"Prefer": "wait=1"})
    assert (reply.status_code, reply.json()["state"]) == (202, "started")


def test_a_submission_may_wait_for_its_end(door: Entrance) -> None:
    door.sender.owner = lambda _: [TOLD.admitted()]

    def submit(client: httpx.AsyncClient) -> Any:
        headers = {"Prefer": "wait=20", "Idempotency-Key": "k"}
        return client.post("/v1/operations", json=SUBMIT, headers=headers)

    started = [TOLD.granted(), *TOLD.started(START_MS + 200)]
    reply = while_waiting(door, submit, *started, TOLD.result(), TOLD.settled())
    assert (reply.status_code, reply.json()["state"]) == (200, "succeeded")
    assert reply.json()["used_output_tokens"] == 40
    assert reply.headers["Location"] == PATH


def test_a_submission_that_does_not_end_in_time_has_its_durable_id(door: Entrance) -> None:
    door.sender.owner = lambda _: [TOLD.admitted()]
    reply = door.submit("k", headers={"Prefer": "wait=1"})
    assert (reply.status_code, reply.json()["state"]) == (202, "admitted")
    assert reply.json()["operation"] == TOLD.id.hex()


def test_a_refusal_ends_the_wait(door: Entrance) -> None:
    door.sender.owner = lambda _: [TOLD.rejected("never-fits", binds=True)]
    reply = door.submit("k", headers={"Prefer": "wait=20"})
    assert (reply.status_code, reply.json()["code"]) == (413, "never-fits")


@pytest.mark.parametrize("prefer", ["wait=x", "wait=-1", "wait=1.5", "wait="])
def test_a_wait_that_is_no_number_of_seconds_is_malformed(door: Entrance, prefer: str) -> None:
    start(door)
    reply = door.ask("GET", PATH, headers={"Prefer": prefer})
    assert (reply.status_code, reply.json()["code"]) == (400, "malformed")
