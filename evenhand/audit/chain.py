"""Which records of the journal are entries, by a second writing of the accept rule (R161).

Also what every accepted header promises: time never goes back, `published` never falls and names
the past, and a takeover decides nothing (journal.md sections 1 and 2).
"""

from schemas.entry import Entry

from .cursor import Cursor

CHECK = "chain"


class Chain:
    """The rule, written from its text and not from the code that the owner runs."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._last: Entry | None = None
        self._offset = -1
        self._height = -1

    def accepts(self, offset: int, entry: Entry) -> bool:
        """Whether the record at `offset` is the next entry; if so it is the last one now."""
        if entry.previous != self._offset or entry.height != self._height + 1:
            return False
        last = self._last
        if last is None:
            genesis = offset == 0 and entry.takeover and entry.epoch == 1
            if not genesis:
                return False
        else:
            same_term = entry.epoch == last.epoch and entry.owner == last.owner
            next_term = entry.epoch == last.epoch + 1
            if not (next_term if entry.takeover else same_term):
                return False
        self._last, self._offset, self._height = entry, offset, entry.height
        return True

    def check(self, before: Entry | None, entry: Entry) -> None:
        """Look at the header of an accepted entry, beside the accepted one before it."""
        if before is None:
            return
        found = self._cursor.found
        if entry.generation != before.generation:
            found(CHECK, f"Expected generation {before.generation}, not {entry.generation}")
        if entry.time_ms < before.time_ms:
            found(CHECK, f"Expected time {before.time_ms} or later, but it is {entry.time_ms}")
        if entry.published < before.published:
            found(CHECK, f"Expected `published` {before.published} or more, not {entry.published}")
        if entry.published > entry.previous:
            found(CHECK, f"Expected `published` before the entry, but it is {entry.published}")
        if entry.takeover and (entry.inputs or entry.events):
            found(CHECK, "Expected a takeover that takes and decides nothing")
        if entry.takeover and (entry.time_ms, entry.published) != (
            before.time_ms,
            before.published,
        ):
            found(CHECK, "Expected a takeover that copies time and `published`")
