"""Port to the public topics: copies of events in journal order, each with its position."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from schemas.envelope import Headers
from schemas.topics import Topic


class PublishFailed(Exception):
    """A public record was refused. The term ends before anything later goes out: no gap (R165)."""


class Outgoing(NamedTuple):
    """One public record."""

    topic: Topic
    key: str
    value: bytes
    headers: Headers


class Outbox(Protocol):
    """Everything handed over goes out in order per partition, or the term ends."""

    def publish(self, offset: int, records: Sequence[Outgoing]) -> None:
        """Hand over all outputs of the entry at `offset`; entries come in journal order."""
        ...

    def published(self) -> int:
        """The offset up to which all outputs are known to be out; -1 for none.

        Raises:
            PublishFailed: a report said no, now or before.
        """
        ...

    def lag(self) -> tuple[int, int]:
        """Entries and bytes handed over and not yet known to be out."""
        ...

    def close(self) -> None:
        """Purge what is unsent; does not wait."""
        ...
