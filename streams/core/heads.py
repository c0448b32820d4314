"""What stands in the index: a queue, or all alike heads of one tenant in pool self as one.

Each member of pool self is a place of its own (adr/0003), and a tenant may have many. Those of its
heads whose places are alike, free or taken, and whose costs are of one class, stand together: the
oldest goes before the others whatever the policy is, so that it alone has to be in order.
"""

from heapq import heappop, heappush
from typing import Protocol

from .queues import Queue, Waiting

Entry = tuple[int, int, Queue]
"""Admission sequence, a number of its own, and where the head waits."""


class Stand(Protocol):
    """What can stand in the index."""

    indexed: object
    """Where it stands; its newest item there is the valid one."""

    @property
    def at(self) -> str:
        """The place where it is looked for."""

    @property
    def pool(self) -> str:
        """The place that its head waits for."""

    @property
    def least(self) -> tuple[int, ...] | None:
        """None of several heads takes less of any unit; None if it is one queue."""

    @property
    def count(self) -> int:
        """Above 0 while it stands."""

    def head(self) -> Waiting:
        """The first that waits there."""


class Heads:
    """Heads of one tenant in pool self, each of a queue of its own; in order of admission."""

    __slots__ = ("_order", "_passed", "at", "indexed", "least")
    count = 1

    def __init__(self, at: str, least: tuple[int, ...]) -> None:
        self.at = at
        self.least = least
        self.indexed: object = None
        self._order: list[Entry] = []
        self._passed: list[Entry] = []

    @property
    def pool(self) -> str:
        """The place of the first."""
        return self._order[0][2].pool

    def head(self) -> Waiting:
        """The first that is not passed over."""
        return self._order[0][2].head()

    def oldest(self) -> Waiting:
        """The first, even if it is passed over."""
        return (self._passed or self._order)[0][2].head()

    def add(self, entry: Entry, amounts: tuple[int, ...]) -> None:
        """The head of another queue stands here, until that queue is entered elsewhere."""
        entry[2].indexed = entry
        heappush(self._order, entry)
        self.least = tuple(map(min, self.least, amounts))

    def drop_outdated(self) -> int:
        """Forget those at the front that stand here no longer; returns how many."""
        order, count = self._order, len(self._order)
        while order and (order[0][2].indexed is not order[0] or not order[0][2].count):
            heappop(order)
        return count - len(order)

    @property
    def is_empty(self) -> bool:
        """Whether nobody is left that is not passed over."""
        return not self._order

    def pass_over(self) -> None:
        """Look at the next one, until `rewind`."""
        self._passed.append(heappop(self._order))

    def rewind(self) -> None:
        """Whoever was passed over stands here as before."""
        for entry in self._passed:
            heappush(self._order, entry)
        self._passed.clear()
