"""A worker dies at each point of an attempt: rows 10 to 17 of the crash table, by real SIGKILL."""

import signal
from pathlib import Path

import pytest

from schemas import events as e
from tests.chaos.worker import POINTS
from tests.chaos.world import World

NEVER_STARTED = {"granted", "claimed"}
"""Before the start request nothing can have been sent: no outcome is unknown."""


@pytest.mark.parametrize("point", POINTS)
def test_a_worker_that_dies_at_a_point_loses_nothing_and_repeats_no_unsafe_call(
    world: World, tmp_path: Path, point: str
) -> None:
    doomed = world.worker("m1", TRAP=point, TRAP_MARK=str(tmp_path / "mark"))
    world.submit(4, "unsafe", ask="after_ms=300")
    world.submit(2, "keyed", ask="after_ms=300")
    world.rig.until(lambda: not doomed.alive, "the trap to close")
    assert doomed.wait(1) == -signal.SIGKILL
    world.worker("m1")
    world.worker("m2")
    world.until_ended()
    assert set(world.ended.values()) <= {e.ResultRecorded, e.OutcomeReconciled}, world.ended
    found = world.judged()
    assert found.operations == {"succeeded": 6}
    if point in NEVER_STARTED:
        assert world.count(e.OutcomeMarkedUnknown) == 0
    elif point != "reported":
        assert world.count(e.OutcomeMarkedUnknown) >= 1
