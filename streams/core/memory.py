"""Rows of one run in memory, gone after it."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence

from .tables import TABLES, Image


class MemoryRows:
    """Rows of one run, gone after it."""

    def __init__(self) -> None:
        self._values: dict[tuple[int, bytes], bytes] = {}
        self._keys: dict[int, list[bytes]] = {table: [] for table in TABLES}

    def get(self, table: int, key: bytes) -> bytes | None:
        """The row, or None."""
        return self._values.get((table, key))

    def scan(
        self, table: int, first: bytes, end: bytes, limit: int
    ) -> Sequence[tuple[bytes, bytes]]:
        """At most `limit` rows with `first <= key < end`, in key order."""
        keys = self._keys[table]
        left, right = bisect_left(keys, first), bisect_left(keys, end)
        return [(key, self._values[table, key]) for key in keys[left : min(right, left + limit)]]

    def write(self, images: Iterable[Image]) -> None:
        """Take over the changes of one entry."""
        for table, key, value in images:
            known = (table, key) in self._values
            if value is not None:
                self._values[table, key] = value
                if not known:
                    insort(self._keys[table], key)
            elif known:
                del self._values[table, key]
                keys = self._keys[table]
                del keys[bisect_left(keys, key)]
