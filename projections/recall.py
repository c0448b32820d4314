"""The entries that views end with, read once more: what was folded before this process began.

Members over HTTP read on at any process of the API. One that has just started has in its rows what
they have not heard yet, but no events; a look at the end of the journal brings them back.
"""

from typing import Final

from schemas.journal import Entry, Head

from .accepted import entry_in
from .ports import Entries

RECALL_MAX: Final = 1_024
"""Records: seconds of a busy cell, and who hears deliveries is milliseconds behind."""
READ_MAX: Final = 256
SILENCE_MS_MAX: Final = 1_000
"""A broker that gives nothing for so long is not waited for: then nothing is recalled."""


def recalled(entries: Entries, head: Head) -> list[tuple[int, Entry]]:
    """The newest accepted entries up to `head`, oldest first, each with its offset.

    Each entry names the one that it extends, so going back from an accepted one meets only
    accepted ones. The reader must be placed anew afterwards.

    Raises:
        JournalTrimmed: the journal does not reach so far back any more.
        EntryUnreadable: a newer program wrote it.
    """
    found: dict[int, Entry] = {}
    next_offset = max(0, head.offset + 1 - RECALL_MAX)
    entries.begin(next_offset)
    while next_offset <= head.offset:
        records = entries.read(READ_MAX, SILENCE_MS_MAX)
        if not records:
            return []
        next_offset = records[-1].offset + 1
        found.update((r.offset, entry) for r in records if (entry := entry_in(r)) is not None)
    line = []
    offset = head.offset
    while offset in found:
        entry = found[offset]
        line.append((offset, entry))
        offset = entry.previous
    return line[::-1]
