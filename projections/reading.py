"""One snapshot of the views: how far it is, and its rows by view and key."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from schemas.ids import CellId
from schemas.journal import Position

from .keys import after
from .ports import Snapshot
from .projection import Projection
from .reflected import TakenInput
from .rows import DECODE, NUMBERS, read


class Reading:
    """What all questions share; made for one request and dropped after it."""

    def __init__(self, cell: CellId, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        mark = snapshot.mark()
        self.time_ms = 0 if mark is None else mark.time_ms
        """Time of the last entry that is reflected."""
        self._taken = {} if mark is None else {(t, p): n for t, p, n in mark.taken}
        self.position = (
            Position(cell, 0, -1, 0)
            if mark is None
            else Position(cell, mark.head.generation, mark.head.offset, mark.head_index)
        )

    def taken(self, wanted: TakenInput) -> bool:
        """Whether an entry that is reflected has taken this input."""
        return self._taken.get((wanted.topic, wanted.partition), 0) > wanted.offset

    def inputs_taken(self, topic: int) -> int:
        """How many inputs of a topic, an index into `INPUT_TOPICS`, were ever taken."""
        return sum(n for (taken_topic, _), n in self._taken.items() if taken_topic == topic)

    def row(self, projection: Projection[Any], key: bytes) -> Any:
        """The row of a key, or None."""
        return read(self._snapshot, projection, key)

    def rows(
        self, projection: Projection[Any], prefix: bytes = b"", begin: bytes = b""
    ) -> Iterator[tuple[bytes, Any]]:
        """Keys with this prefix from `begin` on, and their rows, in key order."""
        number = NUMBERS[projection.number]
        first = number + max(prefix, begin)
        for key, row in self._snapshot.scan(first, after(number + prefix)):
            yield key[1:], DECODE[projection.number](row)

    def count(self, projection: Projection[Any], first: bytes, end: bytes, most: int) -> int:
        """Rows with `first <= key < end`, counted no further than `most`."""
        number = NUMBERS[projection.number]
        return sum(1 for _ in islice(self._snapshot.scan(number + first, number + end), most))
