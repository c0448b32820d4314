"""Up to where views reflect their journal, and what somebody may wait for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from schemas.journal import Position


@dataclass(frozen=True, slots=True)
class Reflected:
    """Made anew by every batch and never changed, so that any thread may read it."""

    position: Position
    time_ms: int
    next_offset: int
    """Journal offset to read on from; noise may lie before it."""
    taken: Mapping[tuple[int, int], int]
    """(input topic, partition) -> offset after the last record that an entry has taken."""


class TakenInput(NamedTuple):
    """The input at this offset; `topic` is an index into `schemas.topics.INPUT_TOPICS`."""

    topic: int
    partition: int
    offset: int


Wanted = Position | TakenInput


def reflects(reflected: Reflected, wanted: Wanted) -> bool:
    """Whether everything up to `wanted`, and what was decided on it, can be read."""
    if isinstance(wanted, TakenInput):
        return reflected.taken.get((wanted.topic, wanted.partition), 0) > wanted.offset
    at = reflected.position
    return (at.generation, at.offset) >= (wanted.generation, wanted.offset)


@dataclass(frozen=True, slots=True)
class Progress:
    """How the restore went and goes on."""

    position: Position
    offset: int
    """Journal offset after the last record read."""
    end: int | None
    """The journal's end as seen at start; None until the broker has answered."""
    failure: str | None
    """Why the follower halted; None while it runs."""
    idle_s: float
    """Since the loop last came round."""

    @property
    def ready(self) -> bool:
        """Everything that was there at start is reflected, and the follower still runs."""
        return self.failure is None and self.end is not None and self.offset >= self.end
