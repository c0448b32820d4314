"""What a decision reads and what it can be: taken inputs, and how work fits or not."""

from typing import NamedTuple, Protocol

import msgspec

from schemas.codes import Code
from schemas.entry import InputRun
from schemas.ids import DimensionName
from schemas.inputs import Input
from schemas.units import Millis


class Header(Protocol):
    """What the core reads of an entry before its events; `schemas.entry.Entry` is one."""

    @property
    def generation(self) -> int:
        """Which beginning of the cell."""

    @property
    def height(self) -> int:
        """Accepted entries before it."""

    @property
    def epoch(self) -> int:
        """Authority epoch."""

    @property
    def takeover(self) -> bool:
        """Whether it begins a term."""

    @property
    def time_ms(self) -> Millis:
        """The only time there is."""

    @property
    def time_step_ms(self) -> Millis | None:
        """A forward step after a suspension."""

    @property
    def inputs(self) -> tuple[InputRun, ...]:
        """What was taken, in order."""


class Source(msgspec.Struct, frozen=True, order=True, gc=False):
    """Where an input record is; `topic` is an index into `schemas.topics.INPUT_TOPICS`."""

    topic: int
    partition: int
    offset: int


class Unreadable(NamedTuple):
    """An input that is no word, or whose key, partition and body disagree; it is quarantined."""

    code: Code
    detail: str


class Taken(msgspec.Struct, frozen=True, gc=False):
    """One record taken from an input partition, readable or not."""

    source: Source
    body: Input | Unreadable


class Fits(NamedTuple):
    """Every level and dimension has room."""


class Binds(NamedTuple):
    """The first level and dimension without room."""

    level: str
    dimension: DimensionName


class Paced(NamedTuple):
    """There is room, and a pace holds it back."""

    until_ms: Millis
    """From when the pace lets it through, in window time."""
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
    retry_at_ms: Millis | None = None
    """When a repeat may be admitted, as far as known."""
