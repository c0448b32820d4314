"""The order of heads beside the plainest rule: sort all of them by their keys as of now."""

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from operator import le
from random import Random

import pytest
from msgspec.structs import astuple

from streams.core.costs import cost_of
from streams.core.counters import Counter, CounterRow, LaneRow
from streams.core.index import Index, roof
from streams.core.queues import FREE, TAKEN, Waiting

POOLS = ("p", "q")
MEMBERS = ("self:k", "self:l", "self:m", "self:n")
"""Each is a place of pool self, so that each has a queue of every tenant."""
PLACES = POOLS + MEMBERS


class Line:
    """A queue whose head is said."""

    least = None

    def __init__(self, pool: str) -> None:
        self.pool = self.at = pool
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
        self.free = set(PLACES)
        self.aside: set[tuple[str, str]] = set()

    def tenant(self, n: int) -> Counter:
        row = CounterRow(position=n, weight=self.chance.choice((1, 2, 7)))
        return Counter(f"t{n}", row, b"")

    def change(self) -> None:
        """One thing of one tenant; and now and then a place is taken or freed."""
        counter = self.chance.choice(self.counters)
        place = self.chance.choice(PLACES)
        line = None
        if self.chance.random() < 0.3:
            counter.row.base += self.chance.randint(-20, 60)
        elif place in counter.queues and self.chance.random() < 0.4:
            line = counter.queues.pop(place)
            line.count = 0
            counter.shared.pop(place, None)
        else:
            line = self.line(counter, place)
            self.sequence += 1
            tokens = int(self.chance.lognormvariate(5, 2))
            is_run = self.chance.random() < 0.1
            line.first, line.count = Waiting(self.sequence, b"", tokens, 0, 10**9, is_run), 1
        self.tell(counter, line)
        if self.cuts and self.chance.random() < 0.2:
            self.row.v += self.chance.randint(0, 100)
        if self.chance.random() < 0.5:
            self.turn(self.chance.choice(PLACES))
        self.renew()

    def renew(self) -> None:
        """Whoever was set aside comes again when all are put anew."""
        items = len(self.index)
        self.index.renew_if_worn(self.counters, sum(len(one.queues) for one in self.counters))
        if len(self.index) < items:
            self.aside.clear()

    def line(self, counter: Counter, place: str) -> Line:
        line = counter.queues.setdefault(place, Line(place))
        if place in POOLS:
            counter.shared[place] = line
        else:
            line.at = FREE if place in self.free else TAKEN
        return line

    def turn(self, place: str) -> None:
        """The place is taken or freed."""
        self.free ^= {place}
        for counter in self.counters:
            if place in MEMBERS and place in counter.queues:
                self.tell(counter, self.line(counter, place))

    def tell(self, counter: Counter, line: Line | None) -> None:
        self.index.change(counter, line)
        self.aside = {one for one in self.aside if one[0] != counter.tenant}

    def effective(self, counter: Counter) -> int:
        low = self.row.v - roof(self.row.cost_max_ns) // counter.row.weight
        return max(counter.key, low) if self.cuts else counter.key

    def expected(self, free: set[str] | None = None) -> list[tuple[str, str]]:
        found = sorted(
            (self.effective(counter), counter.row.position, line.head().sequence, place)
            for counter in self.counters
            for place, line in counter.queues.items()
            if place in (self.free if free is None else free)
        )
        return [(f"t{position}", place) for _, position, _, place in found]

    def look(self, room: tuple[int, ...] | None = None) -> Iterator[tuple[str, str]]:
        with closing(self.index.in_order(self.free.__contains__, room)) as order:
            for counter, stand in order:
                yield counter.tenant, stand.pool
                if self.chance.random() < 0.05 and stand.least is None:
                    self.index.set_aside(counter, stand)
                    self.aside.add((counter.tenant, stand.pool))

    def first(self, is_free: Callable[[str], bool]) -> list[tuple[str, str]]:
        found = self.index.first(is_free)
        return [(found[0].tenant, found[1].pool)] if found else []


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("cuts", [True, False])
def test_heads_come_in_the_order_of_their_keys_whatever_happened(seed, cuts):
    crowd = Crowd(seed, cuts=cuts)
    for _ in range(400):
        crowd.change()
        wanted = [one for one in crowd.expected() if one not in crowd.aside]
        some = crowd.chance.randint(0, 8)
        with closing(crowd.look()) as order:
            assert [*islice(order, some)] == wanted[:some]
        wanted = [one for one in wanted if one not in crowd.aside]
        assert [*crowd.look()] == wanted


@pytest.mark.parametrize("seed", range(4))
def test_the_first_of_all_is_known_even_if_it_is_set_aside_or_has_no_place(seed):
    crowd = Crowd(seed, cuts=True)
    for _ in range(400):
        crowd.change()
        for _ in crowd.look():
            pass
        assert crowd.first(crowd.free.__contains__) == crowd.expected()[:1]
        assert crowd.first(lambda _: True) == crowd.expected(set(PLACES))[:1]


@pytest.mark.parametrize("seed", range(4))
def test_the_oldest_head_of_a_tenant_with_a_free_place_is_known_in_the_middle_of_a_look(seed):
    crowd = Crowd(seed, cuts=True)
    for _ in range(200):
        crowd.change()
        with closing(crowd.look()) as order:
            for name, _ in islice(order, crowd.chance.randint(0, 20)):
                (counter,) = (one for one in crowd.counters if one.tenant == name)
                queues = counter.queues.items()
                heads = [line.head() for place, line in queues if place in crowd.free]
                assert crowd.index.oldest(counter, crowd.free.__contains__) is min(heads)


@pytest.mark.parametrize("seed", range(6))
def test_whatever_fits_comes_in_order_and_most_that_is_too_large_does_not_come_at_all(seed):
    crowd = Crowd(seed, cuts=True, tenants=40)
    left_out = 0
    for _ in range(300):
        crowd.change()
        most = crowd.chance.randint(0, 500)
        room = (1, most, 1, 1, most, most, 0)
        everybody = [one for one in crowd.expected() if one not in crowd.aside]
        found = [*crowd.look(room)]
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
