"""One fault at a time, each with what it must lead to: workers, provider, heartbeats, scheduler."""

import pytest

from schemas import events as e
from tests.chaos.storm import PAUSE_S
from tests.chaos.world import LEASE_MS, World

LONG_MS = 3 * LEASE_MS
"""A call of several leases."""


def _all_succeeded(world: World, count: int) -> None:
    assert world.judged().operations == {"succeeded": count}


def _pass(world: World, span_s: float) -> None:
    """Let real time go by: what is waited for is that nothing happens."""
    with pytest.raises(AssertionError, match="within"):
        world.rig.until(lambda: False, "nothing", timeout_s=span_s)


def test_a_call_of_several_leases_is_renewed_and_never_unknown(world: World) -> None:
    world.worker("m1")
    world.submit(3, "unsafe", ask=f"after_ms={LONG_MS - 1_000}")
    world.until_ended()
    assert world.count(e.OutcomeMarkedUnknown) == 0
    _all_succeeded(world, 3)


def test_a_worker_stopped_past_its_lease_and_continued_twice_is_fenced_each_time(
    world: World,
) -> None:
    worker = world.worker("m1")
    world.worker("m2")
    for _ in range(2):
        before, called = world.count(e.OutcomeMarkedUnknown), world.calls().total()
        world.submit(6, "unsafe", ask="after_ms=600")
        # Between its last look at the clock and its call no worker can notice that it was stopped.
        world.rig.until(lambda called=called: world.calls().total() >= called + 6, "all calls")
        worker.pause()
        _pass(world, PAUSE_S)
        worker.resume()
        world.until_ended()
        assert world.count(e.OutcomeMarkedUnknown) >= before
    _all_succeeded(world, 12)


@pytest.mark.parametrize("ask", ["silent", "reset", "after_ms=500&reset"])
def test_a_provider_that_takes_a_call_and_does_not_answer_it_is_asked_and_believed(
    world: World, ask: str
) -> None:
    world.worker("m1")
    world.submit(2, "unsafe", ask=ask)
    world.until_ended()
    assert world.count(e.OutcomeMarkedUnknown) == 2
    assert set(world.ended.values()) == {e.OutcomeReconciled}
    _all_succeeded(world, 2)
    assert world.calls().total() == 2


def test_a_member_whose_heartbeats_are_lost_loses_its_leases_and_no_work(world: World) -> None:
    world.worker("m1", MUTE="1")
    world.submit(2, "unsafe", ask=f"after_ms={LONG_MS - 1_000}")
    world.rig.until(lambda: world.count(e.OutcomeMarkedUnknown) == 2, "two unknown outcomes")
    world.worker("m2")
    world.until_ended()
    _all_succeeded(world, 2)
    assert world.calls().total() == 2


def test_a_worker_whose_clock_is_an_hour_wrong_works_like_any_other(world: World) -> None:
    world.worker("m1", CLOCK_OFF_S="3600")
    world.worker("m2", CLOCK_OFF_S="-3600")
    world.submit(8, "unsafe", ask="after_ms=200")
    world.until_ended()
    assert world.count(e.OutcomeMarkedUnknown) == 0
    _all_succeeded(world, 8)


def test_a_silence_of_the_scheduler_turns_no_running_work_unknown(world: World) -> None:
    """Row 22: both schedulers are gone for longer than a lease while calls are under way."""
    world.worker("m1")
    world.submit(3, "unsafe", ask=f"after_ms={LONG_MS}")
    world.rig.until(lambda: world.count(e.StartAccepted) == 3, "three starts")
    for scheduler in world.schedulers:
        scheduler.kill()
    _pass(world, PAUSE_S)
    world.schedulers = [world.scheduler("a"), world.scheduler("b")]
    world.until_ended()
    assert world.count(e.OutcomeMarkedUnknown) == 0
    _all_succeeded(world, 3)


@pytest.mark.parametrize("kind", ["workers", "schedulers"])
def test_ports_cut_past_a_lease_lose_nothing_and_repeat_no_unsafe_call(
    world: World, kind: str
) -> None:
    world.worker("m1")
    world.submit(6, "unsafe", ask="after_ms=600")
    world.rig.until(lambda: world.count(e.StartAccepted) >= 2, "some starts")
    world.ports[kind].cut()
    _pass(world, PAUSE_S)
    world.ports[kind].heal()
    world.until_ended()
    _all_succeeded(world, 6)
