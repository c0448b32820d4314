"""The rows that one batch changes, over those that the store has; decoded once, written once."""

from typing import Any

import msgspec

from .catalogue import PROJECTIONS
from .ports import Mark, Snapshot, ViewStore
from .projection import Projection

CLEAN_ROWS_MAX = 8_192
"""Rows kept decoded over batches: an operation's next event mostly comes within as many."""

NUMBERS = {projection.number: bytes((projection.number,)) for projection in PROJECTIONS}
assert len(NUMBERS) == len(PROJECTIONS), "Expected every projection to have its own number"

DECODE = {
    projection.number: msgspec.msgpack.Decoder(projection.row).decode for projection in PROJECTIONS
}
_encode = msgspec.msgpack.Encoder().encode


def read(snapshot: Snapshot, projection: Projection[Any], key: bytes) -> Any:
    """The row as its projection declares it, or None."""
    stored = snapshot.get(NUMBERS[projection.number] + key)
    return None if stored is None else DECODE[projection.number](stored)


class Rows:
    """Read and changed by the fold of one batch; `flush` makes a batch of what has changed."""

    def __init__(self, store: ViewStore) -> None:
        self._store = store
        self._changed: dict[bytes, Any] = {}
        self._clean: dict[bytes, Any] = {}

    def get(self, key: bytes) -> Any:
        """The row as it is now, or None; `key` begins with its projection's number."""
        if key in self._changed:
            return self._changed[key]
        if key in self._clean:
            return self._clean[key]
        stored = self._store.get(key)
        return None if stored is None else DECODE[key[0]](stored)

    def put(self, key: bytes, row: Any) -> None:
        """The row from now on; None deletes it."""
        self._changed[key] = row

    def flush(self, mark: Mark) -> None:
        """Write what has changed since the last flush, and the mark, as one batch."""
        self._store.write(
            ((key, None if row is None else _encode(row)) for key, row in self._changed.items()),
            mark,
        )
        if len(self._clean) + len(self._changed) > CLEAN_ROWS_MAX:
            self._clean.clear()
        self._clean.update(self._changed)
        self._changed.clear()
