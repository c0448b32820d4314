"""The order of heads beside the plainest rule: sort all of them by their keys as of now."""

from operator import le
from random import Random

import pytest
from msgspec.structs import astuple

from streams.core.costs import cost_of
from streams.core.counters import Counter, CounterRow, LaneRow
from streams.core.index import Index, roof
from streams.core.queues import Waiting

PLACES = ("p", "q")


class Line:
    """A queue whose head is said."""

    def __init__(self, pool: str) -> None:
        self.pool = pool
        self.count = 0
        self.indexed = None
        self.first: Waiting | None = None

    def head(self) -> Waiting:
        assert self.first is not None
        return self.first


class Crowd:
    """Tenants whose keys, weights and heads change at random."""

    def __init__(self, seed: int, *, cuts: bool, tenants: int = 12) -> None:
        self.chance = Random(seed)
        self.cuts = cuts
        self.row = LaneRow(cost_max_ns=100)
        self.index = Index(
            self.row,
            lambda counter, _: counter.key,
            lambda head: cost_of(head, prices=None),
            varying=("tokens",),
            cuts=cuts,
        )
        self.counters = [self.tenant(n) for n in range(tenants)]
        self.sequence = 0

    def tenant(self, n: int) -> Counter:
        row = CounterRow(position=n, weight=self.chance.choice((1, 2, 7)))
        return Counter(f"t{n}", row, b"")

    def change(self) -> None:
        """One thing of one tenant."""
        counter = self.chance.choice(self.counters)
        place = self.chance.choice(PLACES)
        if self.chance.random() < 0.3:
            counter.row.base += self.chance.randint(-20, 60)
        elif place in counter.queues and self.chance.random() < 0.4:
            counter.queues.pop(place).count = 0
        else:
            line = counter.queues.setdefault(place, Line(place))
            self.sequence += 1
            tokens = int(self.chance.lognormvariate(5, 2))
            is_run = self.chance.random() < 0.1
            line.first, line.count = Waiting(self.sequence, b"", tokens, 0, 10**9, is_run), 1
        self.index.change(counter)
        if self.cuts and self.chance.random() < 0.2:
            self.row.v += self.chance.randint(0, 100)

    def effective(self, counter: Counter) -> int:
        low = self.row.v - roof(self.row.cost_max_ns) // counter.row.weight
        return max(counter.key, low) if self.cuts else counter.key

    def expected(self, free: set[str]) -> list[tuple[str, str]]:
        found = sorted(
            (self.effective(counter), counter.row.position, line.head().sequence, place)
            for counter in self.counters
            for place, line in counter.queues.items()
            if place in free
        )
        return [(f"t{position}", place) for _, position, _, place in found]

    def found(self, free: set[str], room: tuple[int, ...] | None = None) -> list[tuple[str, str]]:
        self.index.renew_if_worn(self.counters, len(self.counters))
        order = self.index.in_order(free.__contains__, room)
        return [(counter.tenant, queue.pool) for counter, queue in order]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("cuts", [True, False])
def test_heads_come_in_the_order_of_their_keys_whatever_happened(seed, cuts):
    crowd = Crowd(seed, cuts=cuts)
    for _ in range(400):
        crowd.change()
        free = {place for place in PLACES if crowd.chance.random() < 0.8}
        assert crowd.found(free) == crowd.expected(free)


@pytest.mark.parametrize("seed", range(6))
def test_whatever_fits_comes_in_order_and_most_that_is_too_large_does_not_come_at_all(seed):
    crowd = Crowd(seed, cuts=True, tenants=40)
    left_out = 0
    for _ in range(300):
        crowd.change()
        most = crowd.chance.randint(0, 500)
        room = (1, most, 1, 1, most, most, 0)
        everybody, found = crowd.expected(set(PLACES)), crowd.found(set(PLACES), room)
        heads = {
            (counter.tenant, place): cost_of(line.head(), prices=None)
            for counter in crowd.counters
            for place, line in counter.queues.items()
        }
        fits = [one for one in everybody if all(map(le, astuple(heads[one]), room))]
        assert [one for one in found if one in fits] == fits
        left_out += len(everybody) - len(found)
    assert left_out > 1_000


def test_a_class_is_an_eighth_of_a_doubling():
    roofs = {roof(amount) for amount in range(1_024, 2_048)}
    assert sorted(roofs) == [1_024 + 128 * n - 1 for n in range(1, 9)]
    assert [roof(amount) for amount in (0, 1, 15, 16, 17)] == [0, 1, 15, 17, 17]
