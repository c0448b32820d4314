"""A second look at a stretch of the journal: which of its records the chain rule accepts."""

from schemas.journal import Chain, Entry, Head
from streams.shell.journal import Journal, Record
from streams.shell.restore import entry_in

WALK_MAX = 64
"""Records looked at in one step, so that pulses go on in between."""
WAIT_MS = 5


class Walk:
    """Accepted entries from one offset up to an end, in short steps; keeps no state of the cell.

    Args:
        head: the last accepted entry before `first`. Without it the record at `first` is taken
            as accepted, which is true of every offset that an entry named as published.
    """

    def __init__(self, journal: Journal, *, head: Head | None, first: int, end: int) -> None:
        self._reader = journal.reader(first)
        self._chain = Chain(head)
        self._trusts_first = head is None and first > 0
        self._next_offset = first
        self.end = end

    @property
    def head(self) -> Head | None:
        """The last accepted entry of what was walked so far."""
        return self._chain.head

    @property
    def is_done(self) -> bool:
        """Whether everything before the end was looked at."""
        return self._next_offset >= self.end

    def step(self) -> list[tuple[Record, Entry]]:
        """The next accepted entries; empty if none came within a few milliseconds."""
        accepted = []
        limit = min(WALK_MAX, self.end - self._next_offset)
        for record in self._reader.read(limit, WAIT_MS) if limit > 0 else ():
            self._next_offset = record.offset + 1
            entry = entry_in(record)
            if entry is None:
                continue
            if self._trusts_first:
                self._trusts_first = False
                self._chain.head = Head(
                    record.offset, entry.height, entry.epoch, entry.owner, entry.generation
                )
            elif self._chain.accept(record.offset, entry):
                accepted.append((record, entry))
        return accepted

    def close(self) -> None:
        """Let go of the reader."""
        self._reader.close()
