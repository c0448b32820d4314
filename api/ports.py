"""What the door needs: somewhere to send inputs to, and views to ask."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from projections.deliveries import Delivered, Told
from projections.queries import Queries
from projections.reflected import Progress, TakenInput, Wanted
from schemas.ids import MemberId
from schemas.inputs import Input
from schemas.journal import Position
from schemas.topics import INPUT_TOPICS, Topic


class NotWritten(Exception):
    """No confirmation came: the input may be on the log or not. The client repeats its key."""


class Sent(NamedTuple):
    """Where an input is on the log, with the declared replication."""

    topic: Topic
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}:{self.partition}:{self.offset}"

    @property
    def wanted(self) -> TakenInput:
        """What to wait for until it has been decided."""
        return TakenInput(INPUT_TOPICS.index(self.topic), self.partition, self.offset)


class Sender(Protocol):
    """Writes inputs."""

    async def send(self, topic: Topic, word: Input) -> Sent:
        """The input on its topic, keyed as it must be; returns once it is durable (R6).

        Raises:
            NotWritten: it may be there or not; nothing may be concluded.
        """
        ...


class Views(Protocol):
    """Read models that follow the journal."""

    def ask(self) -> Queries:
        """Answers that all reflect one position."""
        ...

    async def reach(self, wanted: Wanted, wait_ms: int) -> bool:
        """Whether a position or an input is reflected, at once or within `wait_ms`."""
        ...

    async def ended(self, operation: bytes, wait_ms: int) -> bool:
        """Whether an operation is over, at once or within `wait_ms`."""
        ...

    def answers(self, taken: TakenInput) -> Sequence[Told] | None:
        """What an input caused, in order; None if that is not known (any more)."""
        ...

    async def deliveries(self, member: MemberId, after: Position | None, wait_ms: int) -> Delivered:
        """What a member over HTTP has not heard, at once or within `wait_ms`.

        Raises:
            DeliveriesGone: the answer would have a gap.
        """
        ...

    def progress(self) -> Progress:
        """How far the views are."""
        ...
