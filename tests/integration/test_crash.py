"""The owner dies at every step of its loop: nothing is lost, nothing is done twice (R158)."""

import signal

import pytest

from schemas import events as e
from schemas.codec import decode
from tests.support.rig import Rig, Worker
from tests.support.scheduler import STEPS

OPERATIONS = 5


@pytest.mark.parametrize("step", STEPS)
def test_an_owner_killed_at_a_step_loses_and_doubles_nothing(rig: Rig, step: str) -> None:
    doomed = rig.scheduler(trap=step)
    rig.configure()
    worker = Worker(rig.log)
    rig.submit(OPERATIONS)
    rig.until(lambda: not doomed.alive, "the trap to close", worker)
    assert doomed.wait(1) == -signal.SIGKILL
    rig.scheduler()
    rig.until_settled(OPERATIONS, worker)
    found = rig.judged()
    assert found.submissions["admitted"] == OPERATIONS
    assert found.reservations["settled"] == OPERATIONS
    assert found.reservations["open"] == 0
    assert sorted(set(worker.calls)) == sorted(worker.calls)
    grants = [
        event
        for entry in rig.entries()
        for event in map(decode, (recorded.body for recorded in entry.events))
        if isinstance(event, e.GrantIssued)
    ]
    assert {(g.operation, g.attempt) for g in grants} == {
        (g.operation, g.attempt) for g in worker.granted
    }
