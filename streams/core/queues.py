"""The FIFO of one tenant in one lane, pool and domain: rows are the queue, memory has its front."""

from bisect import insort
from collections import deque

import msgspec

from schemas.ids import OperationId
from schemas.units import Millis, Tokens

from .limits import FRONT_MAX
from .tables import Overlay, Table, after, pack

FREE, TAKEN = "self", "self:"
"""Where heads of pool self are looked for: whose member has a free place, and the others."""


class QueueRow(msgspec.Struct, array_like=True, gc=False):
    """How much waits in the queue."""

    count: int = 0


class Waiting(msgspec.Struct, array_like=True, gc=False, frozen=True, order=True):
    """What dispatch must know of a waiting operation before it reads the operation itself."""

    sequence: int
    operation: OperationId
    prompt_tokens: Tokens
    output_tokens_max: Tokens
    deadline_ms: Millis
    is_run: bool = False


class Queue:
    """Operations in admission sequence; one that comes back takes its old place."""

    least: None = None
    """It is one queue; see `Stand`."""

    def __init__(self, rows: Overlay, domain: str, lane: str, pool: str, tenant: str) -> None:
        self.pool = pool
        self._rows = rows
        self._key = pack(domain, lane, pool, tenant)
        self._row: QueueRow = rows.get(Table.QUEUE, self._key) or QueueRow()
        self._front: deque[Waiting] = deque()
        self._rest_from = 0 if self._row.count else None
        """Rows from this sequence on may not be in the front; None when the front is everything."""
        self.at = pool
        """Where the index of its lane looks for it; in pool self `FREE` or `TAKEN`."""
        self.indexed: object = None
        """Where its head stands there."""

    @property
    def count(self) -> int:
        """How many wait."""
        return self._row.count

    def head(self) -> Waiting:
        """The first; the queue must not be empty."""
        if not self._front:
            self._refill()
        return self._front[0]

    def add(self, item: Waiting) -> None:
        """Put an operation at the place of its sequence."""
        self._rows.put(Table.WAITING, self._key + item.sequence.to_bytes(8, "big"), item)
        self._row.count += 1
        self._rows.put(Table.QUEUE, self._key, self._row)
        front = self._front
        before_the_last = bool(front) and item.sequence < front[-1].sequence
        if before_the_last or (self._rest_from is None and len(front) < FRONT_MAX):
            insort(front, item)
        elif self._rest_from is None:
            self._rest_from = item.sequence
        else:
            self._rest_from = min(self._rest_from, item.sequence)

    def remove(self, sequence: int) -> None:
        """Take an operation out, wherever it is."""
        self._rows.delete(Table.WAITING, self._key + sequence.to_bytes(8, "big"))
        self._row.count -= 1
        if self._row.count:
            self._rows.put(Table.QUEUE, self._key, self._row)
        else:
            self._rows.delete(Table.QUEUE, self._key)
        front = self._front
        if front and front[0].sequence == sequence:
            front.popleft()
        else:
            self._front = deque(item for item in front if item.sequence != sequence)

    def _refill(self) -> None:
        assert self._rest_from is not None, "Expected rows behind an empty front"
        first = self._key + pack(self._rest_from)
        found = self._rows.scan(Table.WAITING, first, after(self._key), FRONT_MAX)
        self._front.extend(item for _, item in found)
        self._rest_from = self._front[-1].sequence + 1 if len(found) == FRONT_MAX else None
