"""What a decision reads and what it can be: taken inputs, and how work fits or not."""

from typing import NamedTuple

from schemas.codes import Code
from schemas.ids import DimensionName
from schemas.inputs import Input


class Source(NamedTuple):
    """Where an input record is; `topic` is an index into `schemas.topics.INPUT_TOPICS`."""

    topic: int
    partition: int
    offset: int


class Unreadable(NamedTuple):
    """An input that is no word, or whose key, partition and body disagree; it is quarantined."""

    code: Code
    detail: str


class Taken(NamedTuple):
    """One record taken from an input partition, readable or not."""

    source: Source
    body: Input | Unreadable


class Fits(NamedTuple):
    """Every level and dimension has room."""


class Binds(NamedTuple):
    """The first level and dimension without room."""

    level: str
    dimension: DimensionName


class NeverFits(NamedTuple):
    """A dimension whose whole limit is smaller than the need."""

    level: str
    dimension: DimensionName


class Refusal(NamedTuple):
    """Why a submission is not admitted; `detail` is a sentence "Expected ..., but ..."."""

    code: Code
    detail: str
    binds_key: bool = False
    """The same key gets this answer again."""
    level: str | None = None
    dimension: DimensionName | None = None
