"""What the fold remembers as rows: the numbered tables, the read port, and the overlay of changes.

A row lives in memory while the entry that changed it is decided; `Overlay.drain` then gives the
images of all changed rows once, for the write batch and for the running hash.
"""

import hashlib
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from schemas.ids import StateHash


class Table:
    """Numbers are on disk: never reused, never skipped. Key layout and the question answered.

    Plain integers: Python 3.11 takes 0.1 us to find a member of an enum, fifty times a lifecycle.
    """

    CELL: Final = 0
    """() -> what is one per cell: height, epoch, sequence, totals."""
    TAKEN: Final = 1
    """(input topic, partition) -> up to where have inputs been taken?"""
    CONFIG: Final = 2
    """(scope, name) -> which configuration is active?"""
    OPERATION: Final = 3
    """operation id -> is this key known, and what became of it?"""
    WAITING: Final = 4
    """(queue, admission sequence) -> which operation is next in this queue?"""
    QUEUE: Final = 5
    """queue = (tenant, lane, pool, domain) -> how much waits there?"""
    TIMER: Final = 6
    """(instant, kind, subject) -> what is due?"""
    TENANT: Final = 7
    """tenant -> how much waits in all its queues?"""
    COUNTER: Final = 8
    """(domain, lane, tenant) -> what has it been served, and when is its turn?"""
    LANE: Final = 9
    """(domain, lane) -> V, M and ring of the tenants in it?"""
    WINDOW: Final = 10
    """(level, domain, dimension) -> what counts in this budget, and until when?"""
    MEMBER: Final = 11
    """member -> which life, state and places has it?"""
    POOL: Final = 12
    """pool -> how many member slots are taken?"""
    ATTEMPT: Final = 13
    """operation id -> which live attempt, reservation and charges does it have?"""
    CANCEL: Final = 14
    """(operation id, tenant) -> was it cancelled before it was submitted?"""
    BUCKET: Final = 15
    """(level, domain, dimension, epoch, exit) -> how much leaves the window at that instant?"""
    DOMAIN: Final = 16
    """domain -> how much waits in it, and what was last deferred?"""
    PARKED: Final = 17
    """(domain, admission sequence) -> which operations wait for a condition?"""
    LIFE: Final = 18
    """number -> which life of a member is over, so that it cannot join again?"""
    LEASE: Final = 19
    """(member, its life) -> until when do its renewed leases last, and when is it looked at?"""
    HOLD: Final = 20
    """(operation id, epoch) -> which uncertain reservation of an older attempt is still held?"""
    RETRY: Final = 21
    """(domain, tenant) -> how many retries has it left, in hundredths; none means all?"""


TABLES: Final = range(22)
"""The numbers of all tables."""


LOAD_PAGE_ROWS = 10_000
"""Rows read at once at opening, so that loading never holds a table twice."""


Image = tuple[int, bytes, bytes | None]
"""One changed row as bytes: table, key, and value, None for a deleted row."""


class Rows(Protocol):
    """Read access to the rows of all accepted entries so far, ordered by key within a table."""

    def get(self, table: int, key: bytes) -> bytes | None:
        """The row, or None."""
        ...

    def scan(
        self, table: int, first: bytes, end: bytes, limit: int
    ) -> Sequence[tuple[bytes, bytes]]:
        """At most `limit` rows with `first <= key < end`, in key order."""
        ...


def pack(*parts: str | int) -> bytes:
    """A key whose byte order is the order of its parts; parts of one place have one type.

    Texts end with a zero byte, which no accepted name contains; integers take eight bytes.

    >>> pack("a", 2) < pack("a", 10) < pack("ab", 1)
    True
    """
    out = b""
    for part in parts:
        if isinstance(part, int):
            out += part.to_bytes(8, "big")
        else:
            out += part.encode() + b"\x00"
    return out


def after(prefix: bytes) -> bytes:
    """The smallest key greater than every key that begins with `prefix`."""
    return prefix + b"\xff" * 9


class Overlay:
    """Rows as values: those changed since the last `drain` over those in the store.

    A row that was handed out and then changed must be `put` again, or the change is lost with
    the entry. `resident` tables are read once, at `load`; after that they are only written.
    """

    def __init__(self, rows: Rows, kinds: Mapping[int, type]) -> None:
        self._rows = rows
        self._changed: list[dict[bytes, Any]] = [{} for _ in TABLES]
        self._read: list[dict[bytes, Any]] = [{} for _ in TABLES]
        self._decoders: dict[int, Any] = {
            table: msgspec.msgpack.Decoder(kind) for table, kind in kinds.items()
        }
        self._encode = msgspec.msgpack.Encoder().encode

    def get(self, table: int, key: bytes) -> Any:
        """The row, or None."""
        found = self._changed[table].get(key, self)
        if found is self:
            found = self._read[table].get(key, self)
        if found is self:
            stored = self._rows.get(table, key)
            found = None if stored is None else self._decoders[table].decode(stored)
            self._read[table][key] = found
        return found

    def put(self, table: int, key: bytes, row: Any) -> None:
        """Keep the row under its key; the same object may go on being changed until `drain`."""
        self._changed[table][key] = row

    def delete(self, table: int, key: bytes) -> None:
        """Forget the row."""
        self._changed[table][key] = None

    def scan(self, table: int, first: bytes, end: bytes, limit: int) -> list[tuple[bytes, Any]]:
        """At most `limit` rows with `first <= key < end` in key order, changes included."""
        changed = {key: row for key, row in self._changed[table].items() if first <= key < end}
        decoder = self._decoders[table]
        # Each deletion can hide one stored row, so that many more are read than are wanted.
        stored = self._rows.scan(table, first, end, limit + len(changed))
        merged = {key: decoder.decode(value) for key, value in stored if key not in changed}
        merged.update((key, row) for key, row in changed.items() if row is not None)
        if len(stored) == limit + len(changed):
            # Beyond the last row read the store may hold more: keys after it are not known.
            last = stored[-1][0]
            merged = {key: row for key, row in merged.items() if key <= last}
        return sorted(merged.items(), key=lambda item: item[0])[:limit]

    def load(self, table: int) -> list[tuple[bytes, Any]]:
        """All rows of a resident table, at opening."""
        decoder = self._decoders[table]
        found: list[tuple[bytes, Any]] = []
        first = b""
        while page := self._rows.scan(table, first, b"\xff" * 64, LOAD_PAGE_ROWS):
            found += ((key, decoder.decode(value)) for key, value in page)
            first = page[-1][0] + b"\x00"
        return found

    def drain(self) -> list[Image]:
        """The images of all changed rows, in table and key order; the overlay is empty then."""
        encode = self._encode
        images: list[Image] = []
        for table, changed in enumerate(self._changed):
            for key in sorted(changed):
                row = changed[key]
                images.append((table, key, None if row is None else encode(row)))
            changed.clear()
            self._read[table].clear()
        return images


_HASHED = struct.Struct(">BIBI").pack
"""Table, length of the key, whether there is a value, and its length."""


def chain_hash(previous: StateHash, images: Iterable[Image]) -> StateHash:
    """The running hash after one more batch of row images (journal.md section 6)."""
    parts: list[bytes] = [previous]
    for table, key, value in images:
        if value is None:
            parts += (_HASHED(table, len(key), 0, 0), key)
        else:
            parts += (_HASHED(table, len(key), 1, len(value)), key, value)
    return StateHash(hashlib.sha256(b"".join(parts)).digest())
