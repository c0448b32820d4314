"""Port to the input topics: records taken in the order of urgency, submissions last."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from schemas.inputs import Input
from streams.core.outcomes import Source, Taken, Unreadable

__all__ = ["Input", "InputTrimmed", "Inputs", "Place", "Source", "Taken", "Unreadable"]


class Place(NamedTuple):
    """One partition of one input topic; `topic` is an index into `schemas.topics.INPUT_TOPICS`."""

    topic: int
    partition: int


class InputTrimmed(Exception):
    """A wanted input offset is gone. Stop with an alert: skipping would lose work silently."""


class Inputs(Protocol):
    """All input partitions of a cell, for one term; assigned by hand from the fold's positions."""

    def assign(self, positions: Mapping[Place, int]) -> None:
        """Read from these next offsets on; a partition that is not named begins at 0."""
        ...

    def take(self, submissions_max: int, wait_ms: int) -> Sequence[Taken]:
        """What has arrived: everything but submissions first, then at most `submissions_max`.

        Waits up to `wait_ms` only if nothing is there. Records that cannot be read come as
        `Unreadable`; each record is given once.

        Raises:
            InputTrimmed: a wanted offset does not exist any more.
        """
        ...

    def ends(self) -> Mapping[Place, int] | None:
        """The offset after the last record of every partition now; None if one did not answer.

        Works before `assign` too: a standby that cannot see every input must not take over.
        """
        ...

    def readable(self) -> bool:
        """Whether reading works at present; an owner that cannot read must not look alive."""
        ...

    def close(self) -> None:
        """Let go; does not wait."""
        ...
