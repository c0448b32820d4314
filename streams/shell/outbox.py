"""Port to the public topics: copies of events in journal order, each with its position."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from schemas.envelope import Headers
from schemas.topics import Topic


class PublishFailed(Exception):
    """A public record was refused. The term ends before anything later goes out: no gap (R165)."""


class Outgoing(msgspec.Struct, frozen=True, gc=False):
    """One public record."""

    topic: Topic
    key: str
    value: bytes
    headers: Headers


class Outbox(Protocol):
    """One term's producer, primed before use: all goes out in order, or the term ends."""

    def publish(self, offset: int, records: Sequence[Outgoing]) -> None:
        """Hand over all outputs of the entry at `offset`; entries come in journal order.

        Deliveries go out at once, whatever else there is when `send_rest` is called.
        """
        ...

    def send_rest(self) -> None:
        """Let go out what was handed over and nobody waits for."""
        ...

    def published(self, wait_ms: int) -> int:
        """The last entry handed over of which, and of all before it, every output is out.

        Starts at -1 in each term. Asking lets reports come in, and waits up to
        `wait_ms` for one if something is under way.

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
