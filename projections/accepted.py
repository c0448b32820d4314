"""The records of a journal from its start: entries that the chain rule accepts, and noise."""

from collections.abc import Iterator
from typing import NamedTuple

from schemas.codec import decode_entry
from schemas.errors import UnknownSchema
from schemas.journal import Chain, Entry

from .ports import Entries, EntryUnreadable, Record

READ_MAX = 500
WAIT_MS = 200
"""A record that comes ends the wait at once."""


class Judged(NamedTuple):
    """One record; `entry` is None for noise."""

    offset: int
    entry: Entry | None


def entry_in(record: Record) -> Entry | None:
    """The entry in a record, accepted or not; None for a stranger's bytes.

    Raises:
        EntryUnreadable: a newer program wrote it. Update this one; skipping would be wrong (R142).
    """
    try:
        return decode_entry(record.value)
    except UnknownSchema as error:
        raise EntryUnreadable(f"Journal offset {record.offset}: {error}") from error


def judged(entries: Entries, *, end: int | None) -> Iterator[Judged]:
    """Every record from the start on; only that shows which of them are entries.

    Args:
        entries: the journal; placed at its start by this.
        end: where to stop; None follows the journal for ever, waiting for what comes.

    Raises:
        JournalTrimmed: the start of the journal is gone; nothing can be judged.
        EntryUnreadable: as in `entry_in`.
    """
    chain = Chain()
    entries.begin(0)
    next_offset = 0
    while end is None or next_offset < end:
        for record in entries.read(READ_MAX, WAIT_MS):
            if end is not None and record.offset >= end:
                return
            entry = entry_in(record)
            accepted = entry is not None and chain.accept(record.offset, entry)
            yield Judged(record.offset, entry if accepted else None)
            next_offset = record.offset + 1
