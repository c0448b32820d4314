"""By when time alone changes the windows of a domain: only those are looked at that are due."""

from collections.abc import Iterator
from heapq import heappop, heappush, heapreplace
from typing import Generic, Protocol, TypeVar

from schemas.units import Millis


class Changing(Protocol):
    """Something that time changes."""

    watched_ms: Millis | None
    """When it is looked at; kept by `Due`."""

    @property
    def due_ms(self) -> Millis | None:
        """When time alone changes it next; it may get later unasked, but not earlier."""


One = TypeVar("One", bound=Changing)


class Due(Generic[One]):
    """Windows in the order in which they are to be looked at, in their own time."""

    def __init__(self) -> None:
        self.now_ms = Millis(0)
        """When the windows were looked at last."""
        self._heap: list[tuple[Millis, int, One]] = []
        self._serial = 0

    def watch(self, one: One, at_ms: Millis | None) -> None:
        """Look at it then, unless it is looked at before; None: not for this."""
        if at_ms is not None and (one.watched_ms is None or at_ms < one.watched_ms):
            one.watched_ms = at_ms
            self._serial += 1
            heappush(self._heap, (at_ms, self._serial, one))

    def next_ms(self) -> Millis | None:
        """When the next of them changes."""
        heap = self._heap
        while heap:
            at_ms, serial, one = heap[0]
            due_ms = one.due_ms if one.watched_ms == at_ms else None
            if due_ms == at_ms:
                return at_ms
            if one.watched_ms == at_ms:
                one.watched_ms = due_ms
            if due_ms is None:
                heappop(heap)
            else:
                heapreplace(heap, (due_ms, serial, one))
        return None

    def pass_to(self, now_ms: Millis) -> Iterator[One]:
        """Those that are due by now, to be looked at and watched anew."""
        self.now_ms = now_ms
        while (at_ms := self.next_ms()) is not None and at_ms <= now_ms:
            one = heappop(self._heap)[2]
            one.watched_ms = None
            yield one
