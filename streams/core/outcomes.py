"""What a decision reads and what it can be: taken inputs, and the ways in which work fits or not."""

from typing import NamedTuple

from schemas.ids import DimensionName
from schemas.inputs import Input
from schemas.units import Millis


class Source(NamedTuple):
    """Where an input record is; `topic` is an index into `schemas.topics.INPUT_TOPICS`."""

    topic: int
    partition: int
    offset: int


class Unreadable(NamedTuple):
    """An input that is no word, or whose key, partition and body disagree; it is quarantined."""

    code: str
    detail: str


class Taken(NamedTuple):
    """One record taken from an input partition, readable or not."""

    source: Source
    body: Input | Unreadable


class Fits(NamedTuple):
    """Every level and dimension has room."""


class Binds(NamedTuple):
    """The first level and dimension without room, and when there will be."""

    level: str
    dimension: DimensionName
    until_ms: Millis | None
    """Earliest instant at which it can fit; None when no time helps by itself (slots)."""


class NeverFits(NamedTuple):
    """A dimension whose whole limit is smaller than the need."""

    level: str
    dimension: DimensionName
