"""What the fold remembers as rows: the numbered tables, the read port, and the overlay of changes.

A row lives in memory while the entry that changed it is decided; `Overlay.drain` then gives the
images of all changed rows once, for the write batch and for the running hash.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

import msgspec

from schemas.ids import StateHash


class Table(IntEnum):
    """Numbers are on disk: never reused, never skipped. Key layout and the question answered."""

    CELL = 0
    """() -> what is one per cell: height, epoch, sequence, totals."""
    TAKEN = 1
    """(input topic, partition) -> up to where have inputs been taken?"""
    CONFIG = 2
    """(scope, name) -> which configuration is active?"""
    OPERATION = 3
    """operation id -> is this key known, and what became of it?"""
    WAITING = 4
    """(queue, admission sequence) -> which operation is next in this queue?"""
    QUEUE = 5
    """queue = (tenant, lane, pool, domain) -> how much waits there?"""
    TIMER = 6
    """(instant, kind, subject) -> what is due?"""
    TENANT = 7
    """tenant -> how much waits in all its queues?"""
    COUNTER = 8
    """(domain, lane, tenant) -> what has it been served, and when is its turn?"""
    LANE = 9
    """(domain, lane) -> V, M, ring and round of the tenants in it?"""
    WINDOW = 10
    """(level, domain, dimension) -> what counts in this budget, and until when?"""
    MEMBER = 11
    """member -> which life, state and places has it?"""
    POOL = 12
    """pool -> how many member slots are taken?"""
    ATTEMPT = 13
    """operation id -> which live attempt, reservation and charges does it have?"""
    CANCEL = 14
    """operation id -> was it cancelled before it was submitted?"""


class Image(NamedTuple):
    """One changed row as bytes; `value` None means deleted."""

    table: Table
    key: bytes
    value: bytes | None


class Rows(Protocol):
    """Read access to the rows of all accepted entries so far, ordered by key within a table."""

    def get(self, table: Table, key: bytes) -> bytes | None:
        """The row, or None."""
        ...

    def scan(
        self, table: Table, first: bytes, end: bytes, limit: int
    ) -> Sequence[tuple[bytes, bytes]]:
        """At most `limit` rows with `first <= key < end`, in key order."""
        ...


def chain_hash(previous: StateHash, images: Iterable[Image]) -> StateHash:
    """The running hash after one more batch of row images (journal.md section 6)."""
    digest = hashlib.sha256(previous)
    for image in images:
        value = b"" if image.value is None else image.value
        mark = b"\x00" if image.value is None else b"\x01"
        digest.update(bytes((image.table, *len(image.key).to_bytes(4, "big"))))
        digest.update(image.key)
        digest.update(mark + len(value).to_bytes(4, "big"))
        digest.update(value)
    return StateHash(digest.digest())
