"""How a view is declared: a value that says which row an event concerns and what becomes of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from schemas.units import Millis

if TYPE_CHECKING:
    from .views.config import Config
    from .views.operation import Operation
    from .views.unknown import Unknown
from schemas.phase import Phase

R = TypeVar("R")


class Source(msgspec.Struct, frozen=True, gc=False):
    """Where an input record is; `topic` is an index into `schemas.topics.INPUT_TOPICS`."""

    topic: int
    partition: int
    offset: int


@dataclass(slots=True)
class Seen:
    """One event with what every view may know of it, joined once for all of them."""

    event: Any
    """A word of `schemas.events`; a view is shown only those that it wants."""
    time_ms: Millis
    """Time of its entry."""
    offset: int
    """Journal offset of its entry."""
    index: int
    """Its place in the entry."""
    source: Source | None
    """The input that caused it, if one did."""
    operation: "Operation | None"
    """The operation that it names, as it was before."""
    reserved: "Operation | Unknown | None"
    """Who knows what the attempt that it names reserved: that operation while the attempt is the
    newest, else the row of the unknown attempt."""
    before: "Phase | None"
    after: "Phase | None"
    """Phases of that operation; None where there is none (any more)."""
    config: "Config"
    """What is configured, this event included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection(Generic[R]):
    """A read model: rows by key, each a pure fold of the events that concern it.

    `apply` may change the row that it is given, which belongs to the fold alone, and nothing else.
    """

    name: str
    number: int
    """Begins every key on disk: never reused."""
    version: int
    """Raising it rebuilds the views."""
    row: Any
    """What a row is: a type that msgspec reads back."""
    wants: tuple[type, ...]
    """Events it is shown; others are not even decoded."""
    key: Callable[[Seen], bytes | None]
    """Which row the event concerns; None for none."""
    initial: Callable[[], R]
    """The row before its first event."""
    apply: Callable[[R, Seen], R | None]
    """The row after the event; None deletes it."""
