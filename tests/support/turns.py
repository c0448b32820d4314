"""One lane without a cell, for tests of whose turn it is."""

from streams.core.fairness import Lane
from streams.core.rows import KINDS
from streams.core.tables import Overlay
from tests.support import core as c


class Turns:
    """One lane whose tenants always have something waiting, unless they are said not to."""

    def __init__(self, policy: str, weights: str, cost: int = 12, *windows_ms: int) -> None:
        dimensions = [c.dimension(f"tokens-{ms}", 1, window_ms=ms) for ms in windows_ms]
        config = c.domain(c.dimension("slots", 1), *dimensions, policy=policy).domain
        self.lane = Lane(Overlay(c.MemoryRows(), KINDS), "d", "interactive", config)
        self.cost = cost
        self.lane.admitted(cost)
        for name, weight in zip("ABCDEF", weights, strict=False):
            self.join(name, int(weight))

    def join(self, name: str, weight: int = 1) -> None:
        counter = self.lane.counter(name)
        self.lane.reweigh(counter, weight)
        counter.queues["p"] = "something waits"
        self.lane.activate(counter)

    def leave(self, name: str) -> None:
        self.lane.counter(name).queues.clear()
        self.lane.deactivate(self.lane.counter(name))

    def take(
        self, count: int, *, blocked: str = "", held: str = "", cost: int | None = None
    ) -> str:
        """Who goes; `blocked` by the budget of the domain, `held` back by places or own caps."""
        found = ""
        for _ in range(count):
            counter = next(one for one in self.lane.in_order() if one.tenant not in blocked + held)
            self.lane.charge(counter, cost or self.cost, lambda other: other.tenant in held)
            found += counter.tenant
        return found

    def key(self, name: str) -> int:
        return self.lane.counter(name).key
