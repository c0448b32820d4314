"""What is due at an instant: one time-ordered index for the cell, the nearest part in memory."""

from enum import IntEnum
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from schemas.units import Millis

from .limits import TIMERS_NEAR
from .tables import Overlay, Table

_INSTANT_BYTES = 8
_END = b"\xff" * 64


class Kind(IntEnum):
    """What becomes due; numbers are in keys on disk."""

    DEADLINE = 1
    CLAIM_BY = 2
    MEMBER = 3
    FORGET = 4
    EARLY_CANCEL = 5
    LEASE = 6
    HOLD = 7
    RETRY = 8


class Timer(NamedTuple):
    """One row of the index; `subject` is the key of what it concerns."""

    due_ms: Millis
    kind: Kind
    subject: bytes


class Timers:
    """Rows are the truth; memory holds the nearest of them, so that asking costs no scan.

    Every row has a reason in the state, and the event that ends the reason deletes the row: a
    timer that fires always has something to say.
    """

    def __init__(self, rows: Overlay) -> None:
        self._rows = rows
        self._near: set[bytes] = set()
        self._heap: list[bytes] = []
        self._known_to = b""
        """Rows with keys up to here are in `_near`."""
        self._refill()

    def set(self, due_ms: Millis, kind: Kind, subject: bytes) -> None:
        """Make it due at that instant."""
        key = _key(due_ms, kind, subject)
        self._rows.put(Table.TIMER, key, True)  # noqa: FBT003 - the row says only that it exists
        if key <= self._known_to:
            self._near.add(key)
            heappush(self._heap, key)
            if len(self._heap) > 4 * TIMERS_NEAR:
                self._shrink()

    def unset(self, due_ms: Millis, kind: Kind, subject: bytes) -> None:
        """Take it back."""
        key = _key(due_ms, kind, subject)
        self._rows.delete(Table.TIMER, key)
        self._near.discard(key)

    def next_ms(self) -> Millis | None:
        """The instant of the earliest timer, or None."""
        key = self._first()
        return None if key is None else _timer(key).due_ms

    def due(self, now_ms: Millis) -> Timer | None:
        """The earliest timer if it is due; it stays until it is unset."""
        key = self._first()
        if key is None or _timer(key).due_ms > now_ms:
            return None
        return _timer(key)

    def _first(self) -> bytes | None:
        while True:
            heap = self._heap  # a refill makes another one
            while heap and heap[0] not in self._near:
                heappop(heap)
            if heap:
                return heap[0]
            if self._known_to == _END or not self._refill():
                return None

    def _refill(self) -> int:
        found = self._rows.scan(Table.TIMER, self._known_to + b"\x00", _END, TIMERS_NEAR)
        self._known_to = found[-1][0] if len(found) == TIMERS_NEAR else _END
        for key, _ in found:
            self._near.add(key)
        self._heap = list(self._near)
        heapify(self._heap)
        return len(found)

    def _shrink(self) -> None:
        nearest = sorted(self._near)[:TIMERS_NEAR]
        if len(nearest) == TIMERS_NEAR:
            self._known_to = nearest[-1]
        self._near = set(nearest)
        self._heap = nearest


_KIND_BYTES = {kind: bytes((kind,)) for kind in Kind}


def _key(due_ms: Millis, kind: Kind, subject: bytes) -> bytes:
    return due_ms.to_bytes(_INSTANT_BYTES, "big") + _KIND_BYTES[kind] + subject


def _timer(key: bytes) -> Timer:
    due = int.from_bytes(key[:_INSTANT_BYTES], "big")
    return Timer(Millis(due), Kind(key[_INSTANT_BYTES]), key[_INSTANT_BYTES + 1 :])
