"""Rows in memory, quick at a million, that count what is read."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from itertools import islice

from sortedcontainers import SortedList

from streams.core.tables import Image


class MemoryRows:
    """Tables of the core. One is put in order when it is scanned, not when it is written."""

    def __init__(self) -> None:
        self.values: dict[tuple[int, bytes], bytes] = {}
        self._ordered: dict[int, SortedList] = defaultdict(SortedList)
        self._new: dict[int, dict[bytes, None]] = defaultdict(dict)
        """Keys that no scan has seen yet."""
        self.steps = 0
        """Rows read, so that a test can say that nothing is scanned."""

    def get(self, table: int, key: bytes) -> bytes | None:
        self.steps += 1
        return self.values.get((table, key))

    def scan(
        self, table: int, first: bytes, end: bytes, limit: int
    ) -> Sequence[tuple[bytes, bytes]]:
        ordered = self._ordered[table]
        ordered.update(self._new.pop(table, ()))
        keys = islice(ordered.irange(first, end, inclusive=(True, False)), limit)
        found = [(key, self.values[table, key]) for key in keys]
        self.steps += len(found) + 1
        return found

    def write(self, images: Sequence[Image]) -> None:
        for table, key, value in images:
            known = (table, key) in self.values
            if value is not None:
                self.values[table, key] = value
                if not known:
                    self._new[table][key] = None
            elif known:
                del self.values[table, key]
                new = self._new[table]
                if key in new:
                    del new[key]
                else:
                    self._ordered[table].remove(key)

    def digest(self) -> str:
        digest = hashlib.sha256()
        for (table, key), value in sorted(self.values.items()):
            digest.update(repr((int(table), key, value)).encode())
        return digest.hexdigest()
