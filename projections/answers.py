"""What was decided on an input, for who has just written it: a memory of the newest entries.

Rows tell what something is now; only its events tell what became of one input, also of a repeat
that changed nothing.
"""

from collections import deque
from collections.abc import Sequence
from threading import Lock
from typing import Final

from schemas.codec import decode
from schemas.ids import CellId
from schemas.journal import Entry, Position

from .deliveries import Told
from .reflected import TakenInput

KEPT_BYTES_MAX: Final = 16 * 1024 * 1024
"""Seconds of a busy cell; who asks has waited for the very entry."""


class Answers:
    """The newest entries of one cell that took inputs."""

    def __init__(self, cell: CellId, kept_bytes_max: int = KEPT_BYTES_MAX) -> None:
        self._cell, self._kept_bytes_max = cell, kept_bytes_max
        self._kept: deque[tuple[int, Entry]] = deque()
        self._bytes = 0
        self._lock = Lock()

    def hear(self, entries: Sequence[tuple[int, Entry]]) -> None:
        """Remember the next accepted entries, each with its offset."""
        with self._lock:
            for offset, entry in entries:
                if entry.inputs:
                    self._kept.append((offset, entry))
                    self._bytes += _size(entry)
            while self._bytes > self._kept_bytes_max:
                self._bytes -= _size(self._kept.popleft()[1])

    def to(self, taken: TakenInput) -> Sequence[Told] | None:
        """The events that the input caused, in order; None if its entry is not kept (any more)."""
        with self._lock:
            asked = ((at, entry, _ordinal(entry, taken)) for at, entry in reversed(self._kept))
            found = next((one for one in asked if one[2] is not None), None)
        if found is None:
            return None
        offset, entry, ordinal = found
        return [
            Told(Position(self._cell, entry.generation, offset, index), decode(raw.body))
            for index, raw in enumerate(entry.events)
            if raw.cause == ordinal
        ]


def _size(entry: Entry) -> int:
    return sum(len(raw.body) for raw in entry.events)


def _ordinal(entry: Entry, taken: TakenInput) -> int | None:
    """The input's place among all that the entry took, as its events name their cause."""
    before = 0
    for run in entry.inputs:
        if (run.topic, run.partition) == taken[:2] and run.first <= taken.offset < run.next:
            return before + taken.offset - run.first
        before += run.next - run.first
    return None
