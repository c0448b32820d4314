"""Where the audit is in the journal, and what it has found so far; every check holds the one."""

from collections.abc import Sequence
from typing import Any

from schemas.ids import CellId
from schemas.journal import Position

from .asked import Asked
from .findings import FINDINGS_MAX, Finding


class Cursor:
    """The entry and event under audit, with what the entry's header says."""

    __slots__ = (
        "cause",
        "cell",
        "epoch",
        "findings",
        "found_count",
        "generation",
        "index",
        "offset",
        "taken",
        "time_ms",
    )

    def __init__(self, cell: CellId) -> None:
        self.cell = cell
        self.generation = 0
        self.offset = -1
        self.index = 0
        self.epoch = 0
        self.time_ms = 0
        self.cause = 0
        self.taken: Sequence[Asked] = ()
        """The inputs of the entry, in the order taken."""
        self.findings: list[Finding] = []
        self.found_count = 0

    @property
    def position(self) -> Position:
        """Position of the event under audit."""
        return Position(self.cell, self.generation, self.offset, self.index)

    @property
    def asked(self) -> Asked | None:
        """The input that caused the event; None for time and for the dispatch pass."""
        return self.taken[self.cause] if 0 <= self.cause < len(self.taken) else None

    @property
    def word(self) -> Any:
        """What that input says; None where there is none, or it cannot be read or is gone."""
        asked = self.asked
        return None if asked is None else asked.word

    @property
    def is_gone(self) -> bool:
        """Whether retention has removed that input: nothing can be compared with it."""
        asked = self.asked
        return asked is not None and asked.gone

    def found(self, check: str, detail: str, position: Position | None = None) -> None:
        """Record a finding, here or at another position."""
        self.found_count += 1
        if len(self.findings) < FINDINGS_MAX:
            self.findings.append(Finding(check, position or self.position, detail))
