"""What the SDK promises in a pool with standing starts, asked of both twins at every cell."""

import threading
from itertools import count

import pytest

from evenhand import Attempt, NotSent, Result
from schemas.bodies import Operation, State
from tests.support.desk import STANDING, Desk

WAIT_S = 20.0


def _admit(desk: Desk, effect: str = "read_only") -> Operation:
    return desk.admit(pool=STANDING, effect=effect)


@pytest.mark.parametrize("effect", ["read_only", "keyed"])
def test_what_may_be_repeated_starts_with_its_grant(desk: Desk, effect: str) -> None:
    seen: list[Attempt] = []

    def handle(attempt: Attempt) -> Result:
        seen.append(attempt)
        assert 0 <= attempt.send_within_s <= 1
        attempt.sent()
        attempt.usage(prompt_tokens=88, output_tokens=7)
        return Result(result_ref="s3://result")

    with desk.worker(handle, pool=STANDING) as worker:
        worker.wait_joined()
        asked = [_admit(desk, effect) for _ in range(3)]
        found = [desk.until_state(one.operation, State.SUCCEEDED) for one in asked]
    assert [one.used_output_tokens for one in found] == [7, 7, 7]
    assert sorted(one.operation for one in seen) == sorted(one.operation for one in asked)
    assert all(one.grant.started_ms is not None for one in seen)


def test_unsafe_work_takes_the_ordinary_handshake(desk: Desk) -> None:
    seen: list[Attempt] = []
    asked = _admit(desk, "unsafe")
    with desk.worker(seen.append, pool=STANDING):
        desk.until_state(asked.operation, State.SUCCEEDED)
    assert [one.grant.started_ms for one in seen] == [None]


def test_what_was_not_sent_waits_again(desk: Desk) -> None:
    calls = count(1)

    def handle(_: Attempt) -> None:
        if next(calls) == 1:
            raise NotSent

    asked = _admit(desk)
    with desk.worker(handle, pool=STANDING):
        desk.until_state(asked.operation, State.SUCCEEDED)
    assert next(calls) == 3


def test_a_stopped_worker_leaves_nothing_started_behind(desk: Desk) -> None:
    asked = [_admit(desk) for _ in range(20)]
    begun = threading.Event()
    with desk.worker(lambda _: begun.set(), pool=STANDING, places=4) as worker:
        assert begun.wait(WAIT_S)
        worker.stop()
    states = {desk.get(one.operation).state for one in asked}
    assert states <= {State.SUCCEEDED, State.WAITING}
