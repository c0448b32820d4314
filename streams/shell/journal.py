"""Ports to the journal and to pulses: append one entry and learn where it landed, or read.

No port call blocks longer than the wait it is given, so that the loop above is a sequence of short
steps, and simulation may stop a process between any two of them.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class JournalError(Exception):
    """Something about the journal that ends this term or this process."""


class AppendFailed(JournalError):
    """No answer, or an error: nobody knows whether the entry is there. Step down, never retry."""


class JournalRecreated(JournalError):
    """The topic is not the one that the tables were folded from. Stop with an alert."""


class JournalTrimmed(JournalError):
    """The journal no longer begins at offset 0, or a wanted offset is gone. Stop with an alert."""


class Landing(NamedTuple):
    """Where the broker put a record, and its append time."""

    offset: int
    append_ms: int


class Record(NamedTuple):
    """One record of the journal or of the pulses; `append_ms` is the broker's clock."""

    offset: int
    append_ms: int
    leader_epoch: int | None
    value: bytes


class Writer(Protocol):
    """The journal producer of one term: primed before use, never used again after a failure."""

    def send(self, value: bytes) -> None:
        """Hand one record over. One in flight: `landed` must have answered the one before."""
        ...

    def landed(self, wait_ms: int) -> Landing | None:
        """Where the record in flight landed, or None if that is not known after `wait_ms`.

        Raises:
            AppendFailed: the record may or may not be on the journal.
        """
        ...

    def close(self) -> None:
        """Purge what is unsent and let go; does not wait. Abandoned records may still land."""
        ...


class Reader(Protocol):
    """Reads from one offset on, in order, uncommitted reads only (one history for all)."""

    def read(self, limit: int, wait_ms: int) -> Sequence[Record]:
        """The next records, at most `limit`; empty if none came within `wait_ms`.

        Raises:
            JournalTrimmed: the next offset does not exist any more.
        """
        ...

    def close(self) -> None:
        """Let go; does not wait."""
        ...


class Journal(Protocol):
    """The journal topic of one cell."""

    def topic_id(self) -> str | None:
        """The id that the cluster gave the topic; a recreated topic has another one.

        None if the topic is not there yet or the broker did not answer.
        """
        ...

    def start(self) -> int | None:
        """The first offset still there, 0 for a whole journal; None if not answered."""
        ...

    def end(self) -> int | None:
        """The offset after the last record, asked afresh; None if the broker did not answer.

        Needs no reader, so that an owner follows its journal without fetching its own entries.
        """
        ...

    def reader(self, offset: int) -> Reader:
        """A reader whose next record is the one at `offset`."""
        ...

    def writer(self) -> Writer:
        """A producer for one term, primed as far as the broker answers; never fails."""
        ...


class Pulses(Protocol):
    """The pulse topic, for one life as standby and owner: a hint that the owner lives, no proof."""

    def send(self, value: bytes) -> None:
        """Send one pulse; a lost pulse is no error."""
        ...

    def read(self, wait_ms: int) -> Sequence[Record]:
        """Pulses since the last call, from the end of the topic at the first call on."""
        ...

    def caught_up(self) -> bool | None:
        """Whether everything up to a fresh end has been read; None if the broker did not answer."""
        ...

    def close(self) -> None:
        """Let go; does not wait."""
        ...
