"""Standing starts under real signals: late is not sent, and what nobody knows of is tried again."""

import signal
from pathlib import Path

import pytest

from schemas import events as e
from tests.chaos.storm import PAUSE_S
from tests.chaos.world import SEND_WITHIN_MS, World
from tests.support.kafka import until

LATE_S = SEND_WITHIN_MS / 1_000 + 0.1


def _pass(world: World, span_s: float) -> None:
    """Let real time go by: what is waited for is that nothing happens."""
    with pytest.raises(AssertionError, match="within"):
        world.rig.until(lambda: False, "nothing", timeout_s=span_s)


@pytest.mark.parametrize(
    ("point", "span_s"),
    [("started", LATE_S), ("granted", PAUSE_S)],
    ids=["late", "past-its-lease"],
)
def test_a_member_stopped_between_delivery_and_call_makes_no_late_call(
    world: World, tmp_path: Path, point: str, span_s: float
) -> None:
    world.configure(standing=True)
    mark = tmp_path / "mark"
    worker = world.worker("m1", TRAP=point, TRAP_MARK=str(mark), TRAP_STOPS="1")
    world.submit(1, "keyed")
    until(mark.exists, "the trap to close")
    _pass(world, span_s)
    assert world.calls().total() == 0
    worker.resume()
    world.until_ended()
    assert world.judged().operations == {"succeeded": 1}
    assert world.calls().total() == 1, "Expected the call of the second attempt alone"
    assert world.count(e.StartAccepted) == 2
    assert world.count(e.StartRefused) == 0, "Expected no start to be asked for"


def test_a_worker_that_dies_with_a_standing_start_loses_nothing(
    world: World, tmp_path: Path
) -> None:
    world.configure(standing=True)
    mark = tmp_path / "mark"
    doomed = world.worker("m1", TRAP="started", TRAP_MARK=str(mark))
    world.submit(3, "read_only")
    world.submit(3, "unsafe")
    world.rig.until(lambda: not doomed.alive, "the trap to close")
    assert doomed.wait(1) == -signal.SIGKILL
    world.worker("m1")
    world.until_ended()
    assert world.judged().operations == {"succeeded": 6}
    assert world.count(e.OutcomeMarkedUnknown) >= 1
