"""What the follower needs: the records of a journal, and a place for the rows of its views."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from schemas.journal import Head


class FollowerHalted(Exception):
    """What was read is not what the views were folded from, or cannot be read: stop, alert."""


class JournalMissing(FollowerHalted):
    """There is no such topic, or no broker that knows: nothing was read. Try again later."""


class JournalReplaced(FollowerHalted):
    """The journal is not the one of the views. Deleting the views is safe once that is wanted."""


class JournalTrimmed(FollowerHalted):
    """A record that is needed is gone; views folded from the rest would be wrong."""


class ViewsInUse(FollowerHalted):
    """Another process has the folder open. Nothing was read: each needs a folder of its own."""


class EntryUnreadable(FollowerHalted):
    """A newer program writes this journal. Update this one; skipping would be silently wrong."""


class Record(NamedTuple):
    """One record of the journal, an entry or noise."""

    offset: int
    value: bytes


class Entries(Protocol):
    """The journal topic of one cell, read in order, uncommitted reads only."""

    def topic_id(self) -> str:
        """The id that the cluster gave the topic; a recreated topic has another one.

        Raises:
            JournalMissing: nobody knows the topic.
        """
        ...

    def begin(self, offset: int) -> None:
        """Read from this offset on."""
        ...

    def read(self, limit: int, wait_ms: int) -> Sequence[Record]:
        """At most `limit` next records; waits up to `wait_ms` only if none is there.

        Raises:
            JournalTrimmed: the next offset does not exist any more.
        """
        ...

    def end(self) -> int | None:
        """The offset after the last record now; None if the broker did not answer."""
        ...

    def close(self) -> None:
        """Let go; does not wait."""
        ...


class Mark(NamedTuple):
    """How far the rows have come; written in the same batch as they are."""

    topic_id: str
    versions: dict[str, int]
    """Of the projections that made the rows."""
    head: Head
    head_digest: bytes
    """SHA-256 of the head's record, compared on opening with what the journal has there."""
    head_index: int
    """Place of the head's last event."""
    time_ms: int
    taken: list[tuple[int, int, int]]
    """(input topic, partition, offset after the last one taken)."""


class Snapshot(Protocol):
    """Rows and mark as one batch left them."""

    def get(self, key: bytes) -> bytes | None:
        """The row, or None."""
        ...

    def scan(self, first: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Rows with `first <= key < end` in key order, read as they are asked for."""
        ...

    def mark(self) -> Mark | None:
        """None while nothing has been folded."""
        ...


class ViewStore(Snapshot, Protocol):
    """The rows of all views; may be deleted at any time."""

    def snapshot(self) -> Snapshot:
        """What is there now; later writes do not change it."""
        ...

    def write(self, rows: Iterable[tuple[bytes, bytes | None]], mark: Mark) -> None:
        """Write all rows, None deletes, and the mark atomically."""
        ...

    def clear(self) -> None:
        """Forget everything."""
        ...

    def close(self) -> None:
        """Free every handle and the lock."""
        ...
