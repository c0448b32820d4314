"""What is due: in time order, from rows, whatever part of them memory holds."""

from random import Random

import pytest

from streams.core.limits import TIMERS_NEAR
from streams.core.rows import KINDS
from streams.core.tables import Overlay
from streams.core.timers import Kind, Timer, Timers
from tests.support import core as c


class Index:
    """The index beside a sorted set of the same timers."""

    def __init__(self) -> None:
        self.rows = c.MemoryRows()
        self.overlay = Overlay(self.rows, KINDS)
        self.timers = Timers(self.overlay)
        self.model: set[tuple[int, int, bytes]] = set()

    def set(self, due_ms: int, kind: Kind = Kind.DEADLINE, subject: bytes = b"x") -> None:
        self.timers.set(due_ms, kind, subject)
        self.model.add((due_ms, kind, subject))

    def unset(self, one: tuple[int, int, bytes]) -> None:
        self.timers.unset(one[0], Kind(one[1]), one[2])
        self.model.discard(one)

    def entry_ends(self, *, reopen: bool = False) -> None:
        self.rows.write(self.overlay.drain())
        if reopen:
            self.timers = Timers(self.overlay)

    def first(self) -> Timer | None:
        if not self.model:
            return None
        due_ms, kind, subject = min(self.model)
        return Timer(due_ms, Kind(kind), subject)


@pytest.mark.parametrize(("now_ms", "due"), [(999, False), (1_000, True), (1_001, True)])
def test_a_timer_is_due_from_its_instant_on_until_it_is_unset(now_ms, due):
    index = Index()
    index.set(1_000)
    for _ in range(2):
        assert (index.timers.due(now_ms) is not None) is due
    index.unset((1_000, Kind.DEADLINE, b"x"))
    assert index.timers.due(now_ms) is None


def test_nothing_is_due_in_an_empty_index():
    assert (Index().timers.due(10**15), Index().timers.next_ms()) == (None, None)


def test_timers_of_one_instant_come_by_kind_and_subject():
    index = Index()
    wanted = [(Kind.DEADLINE, b"b"), (Kind.DEADLINE, b"c"), (Kind.MEMBER, b"a")]
    for kind, subject in reversed(wanted):
        index.set(5, kind, subject)
    found = []
    while timer := index.timers.due(5):
        found.append((timer.kind, timer.subject))
        index.unset(timer)
    assert found == wanted


@pytest.mark.parametrize("count", [TIMERS_NEAR - 1, TIMERS_NEAR, TIMERS_NEAR + 1, 3 * TIMERS_NEAR])
@pytest.mark.parametrize("reopen", [True, False])
def test_all_timers_come_in_order_however_many_memory_holds(count, reopen):
    index = Index()
    for n in range(count):
        index.set(n, subject=n.to_bytes(4, "big"))
    index.entry_ends(reopen=reopen)
    found = []
    while timer := index.timers.due(count):
        found.append(timer.due_ms)
        index.unset(timer)
    assert found == list(range(count))


def test_memory_holds_only_the_nearest_timers_and_a_nearer_one_still_comes_first():
    index = Index()
    for n in range(6 * TIMERS_NEAR):
        index.set(10_000 + n)
    assert len(index.timers._near) <= 5 * TIMERS_NEAR
    index.entry_ends()
    index.set(9_999)
    index.set(10**9)
    assert index.timers.next_ms() == 9_999


def test_timers_that_come_and_go_leave_nothing_in_memory():
    index = Index()
    for n in range(20 * TIMERS_NEAR):
        index.set(n)
        index.unset((n, Kind.DEADLINE, b"x"))
    assert len(index.timers._heap) <= 4 * TIMERS_NEAR + 1
    assert index.timers.next_ms() is None


@pytest.mark.parametrize("seed", range(15))
def test_the_first_timer_is_that_of_a_sorted_set_over_random_histories(seed, monkeypatch):
    monkeypatch.setattr("streams.core.timers.TIMERS_NEAR", 8)
    chance, index = Random(seed), Index()
    for step in range(800):
        roll = chance.random()
        if roll < (0.65 if step < 400 else 0.35):
            kind = chance.choice(list(Kind))
            index.set(chance.randrange(200), kind, bytes([chance.randrange(5)]))
        elif index.model:
            one = min(index.model) if roll < 0.8 else chance.choice(sorted(index.model))
            index.unset(one)
        if chance.random() < 0.3:
            index.entry_ends(reopen=chance.random() < 0.1)
        assert index.timers.due(10**6) == index.first(), f"seed {seed}, step {step}"
