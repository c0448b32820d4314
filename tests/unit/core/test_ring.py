"""The ring beside the plainest rule: a walk past everybody before the one that goes."""

from random import Random

import pytest

from streams.core.counters import Counter, CounterRow, LaneRow
from streams.core.ring import Ring
from tests.unit.core.test_steps import calls

QUANTUM = 10


class Plain:
    """Names in the order of the ring, and what is left of each visit."""

    def __init__(self) -> None:
        self.ring: list[str] = []
        self.left: dict[str, int] = {}
        self.visitor: str | None = None

    def take(self, name: str, cost: int, gets: dict[str, int]) -> list[str]:
        ended = []
        if self.visitor != name:
            if self.visitor is not None:
                self.left[self.visitor] = min(self.left[self.visitor], 0)
                ended.append(self.visitor)
            if self.left[name] + gets[name] > 0:
                for one in self.ring[: self.ring.index(name)]:
                    if one not in ended and self.left[one] + gets[one] <= 0:
                        self.left[one] += gets[one]
                        ended.append(one)
            for one in ended:
                self.to_the_end(one)
            self.left[name] += gets[name]
            self.visitor = name
        self.left[name] -= cost
        if self.left[name] <= 0:
            self.visitor = None
            self.to_the_end(name)
        return ended

    def to_the_end(self, name: str) -> None:
        self.ring.remove(name)
        self.ring.append(name)


class Both:
    """The same happens to a ring and to the plain one."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.ring, self.plain = Ring(LaneRow()), Plain()
        self.counters = {f"t{n}": Counter(f"t{n}", CounterRow(), b"") for n in range(8)}
        self.quantum = QUANTUM

    def step(self) -> None:
        name = self.chance.choice(list(self.counters))
        counter, row = self.counters[name], self.counters[name].row
        if name not in self.plain.ring:
            row.deficit = min(row.deficit, 0)
            self.ring.join(counter)
            self.plain.ring.append(name)
        elif self.chance.random() < 0.1:
            self.ring.leave(counter)
            self.plain.ring.remove(name)
            self.plain.visitor = None if self.plain.visitor == name else self.plain.visitor
        elif self.chance.random() < 0.3:
            row.deficit += self.chance.choice([-60, -25, 5])
        elif self.chance.random() < 0.1:
            row.weight = self.chance.choice([1, 2, 5])
        elif self.chance.random() < 0.02:
            self.quantum += 3
        else:
            self.take(name, self.chance.randint(1, self.quantum))
        self.plain.left[name] = row.deficit
        self.ring.watch(counter, self.quantum)

    def take(self, name: str, cost: int) -> None:
        gets = {one: self.quantum * counter.row.weight for one, counter in self.counters.items()}
        ended = self.ring.take_of_deficit(self.counters[name], cost, self.quantum)
        assert [one.tenant for one in ended] == self.plain.take(name, cost, gets)
        for one in ended:
            self.ring.watch(one, self.quantum)


@pytest.mark.parametrize("seed", range(20))
def test_whoever_owes_a_visit_is_passed_as_by_a_walk_past_everybody(seed):
    both = Both(seed)
    for _ in range(1_000):
        both.step()
        assert [one.tenant for one in both.ring] == both.plain.ring
        left = {name: counter.row.deficit for name, counter in both.counters.items()}
        assert left == {name: both.plain.left.get(name, 0) for name in both.counters}


def test_a_visit_takes_as_many_steps_behind_many_that_cannot_go_as_behind_few():
    def steps(blocked: int) -> int:
        ring = Ring(LaneRow())
        for n in range(blocked + 1):
            last = Counter(f"t{n}", CounterRow(), b"")
            ring.join(last)
        return calls(lambda: ring.take_of_deficit(last, QUANTUM, QUANTUM))

    assert steps(100_000) == steps(10)


def test_nobody_is_remembered_as_owing_that_owes_no_longer():
    both = Both(1)
    for _ in range(20_000):
        both.step()
    assert len(both.ring.owing()) <= len(both.counters)
    assert len(both.ring._owing) == len(both.ring._watched) <= 10 * len(both.counters)
