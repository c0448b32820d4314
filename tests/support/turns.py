"""One lane without a cell, for tests of whose turn it is."""

from collections.abc import Iterator

from streams.core.fairness import Lane
from streams.core.queues import Waiting
from streams.core.rows import KINDS
from streams.core.tables import Overlay
from tests.support import core as c


class Endless:
    """A queue in which something always waits."""

    count = 1
    indexed = least = None

    def __init__(self, sequence: int, place: str = "p") -> None:
        self.pool = self.at = place
        self._head = Waiting(sequence, b"", 1, 1, 10**9)

    def head(self) -> Waiting:
        return self._head


class Turns:
    """One lane whose tenants always have something waiting, unless they are said not to."""

    def __init__(self, policy: str, weights: str, cost: int = 12) -> None:
        config = c.domain(c.dimension("slots", 1), policy=policy).domain
        self.lane = Lane(Overlay(c.MemoryRows(), KINDS), "d", "interactive", config)
        self.cost = cost
        self.lane.admitted(cost)
        for name, weight in zip("ABCDEF", weights, strict=False):
            self.join(name, int(weight))

    def join(self, name: str, weight: int = 1) -> None:
        counter = self.lane.counter(name)
        self.lane.reweigh(counter, weight)
        counter.queues["p"] = counter.shared["p"] = Endless(len(self.lane.counters))
        self.lane.queues += 1
        self.lane.activate(counter)

    def order(self) -> Iterator[str]:
        """Tenants, the one whose turn it is first."""
        return (one.tenant for one, _ in self.lane.in_order(lambda _: True))

    def leave(self, name: str) -> None:
        counter = self.lane.counter(name)
        counter.queues.pop("p").count = 0
        counter.shared.clear()
        self.lane.queues -= 1
        self.lane.deactivate(counter)

    def take(self, count: int, *, blocked: str = "", cost: int | None = None) -> str:
        """Who goes, while none of the `blocked` can."""
        found = ""
        for _ in range(count):
            name = next(one for one in self.order() if one not in blocked)
            self.lane.charge(self.lane.counter(name), cost or self.cost)
            found += name
        return found

    def key(self, name: str) -> int:
        return self.lane.counter(name).key
