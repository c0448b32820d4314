"""The chain rule: which records of a journal are entries, decided by the log alone.

Of two owners that extend the same entry both records land; the first one counts, and every reader
drops the other, since it no longer extends the last accepted entry:

>>> from functools import partial
>>> made = partial(Entry, generation=1, time_ms=0, clock_shift_ms=0, time_step_ms=None,
...                published=-1, core_version=1, state_hash=b"", inputs=(), events=(),
...                takeover=False)
>>> chain = Chain()
>>> chain.accept(0, made(previous=-1, height=0, epoch=1, owner=b"a", takeover=True))
True
>>> chain.accept(1, made(previous=0, height=1, epoch=2, owner=b"b", takeover=True))
True
>>> chain.accept(2, made(previous=0, height=1, epoch=1, owner=b"a"))
False
"""

from dataclasses import dataclass
from typing import NamedTuple

from .entry import Entry, EntryEvent, InputRun, Pulse
from .ids import CellId, OwnerId

__all__ = ["Chain", "Entry", "EntryEvent", "Head", "InputRun", "Position", "Pulse"]

CAUSE_TIME = -1
"""`EntryEvent.cause` of what happened because time passed."""
CAUSE_DISPATCH = -2
"""`EntryEvent.cause` of what the dispatch pass decided."""


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Where an event is, comparable over all topics of a cell."""

    cell: CellId
    generation: int
    offset: int
    index: int

    def __str__(self) -> str:
        return f"{self.cell}:{self.generation}:{self.offset}:{self.index}"

    @classmethod
    def parse(cls, text: str) -> "Position":
        """The position written by `str`.

        Raises:
            ValueError: the text is not of that form; nothing is assumed about it.
        """
        cell, generation, offset, index = text.rsplit(":", 3)
        return cls(CellId(cell), int(generation), int(offset), int(index))


class Head(NamedTuple):
    """The last accepted entry, as far as the rule needs it."""

    offset: int
    height: int
    epoch: int
    owner: OwnerId
    generation: int


class Chain:
    """The fold of the accept rule over a journal, from its start or from a known head.

    The rule (requirements R161): an entry is accepted if and only if `previous` is the offset of
    the last accepted entry, `height` is the next, and epoch and owner are the same, or it is a
    takeover with the epoch exactly one higher. Everything else is noise from a process that did
    not know it had been replaced, or from a stranger.
    """

    __slots__ = ("head",)

    def __init__(self, head: Head | None = None) -> None:
        self.head = head

    def extends(self, entry: Entry, offset: int) -> bool:
        """Whether the entry at `offset` would be accepted now; changes nothing."""
        head = self.head
        if head is None:
            return (
                offset == 0
                and entry.previous == -1
                and entry.height == 0
                and entry.epoch == 1
                and entry.takeover
            )
        if entry.previous != head.offset or entry.height != head.height + 1:
            return False
        if entry.takeover:
            return entry.epoch == head.epoch + 1
        return entry.epoch == head.epoch and entry.owner == head.owner

    def accept(self, offset: int, entry: Entry) -> bool:
        """Whether the entry is accepted; if so it is the head from now on."""
        if not self.extends(entry, offset):
            return False
        self.head = Head(offset, entry.height, entry.epoch, entry.owner, entry.generation)
        return True
