"""What an audit says at its end: what was counted, what was wrong, and where."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from schemas.journal import Position

FINDINGS_MAX = 1000
"""Findings kept; a journal with more is broken throughout, and the rest is only counted."""


class Finding(NamedTuple):
    """One thing that must not be so."""

    check: str
    """Which promise is broken; the name of the check's file."""
    position: Position
    """The event concerned; index 0 also stands for its whole entry."""
    detail: str
    """Expected what, but what."""

    def as_json(self) -> dict[str, str]:
        """The finding as a JSON object."""
        return {"check": self.check, "position": str(self.position), "detail": self.detail}


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The outcome of one audit."""

    cell: str
    through: Position | None
    """The last entry audited; None for a journal without entries."""
    entries: int
    noise: int
    """Records on the journal that the chain rule refuses; no fault of the owner's."""
    events: int
    submissions: Mapping[str, int]
    """How the submissions taken were answered; what did not happen is not named, here and below."""
    operations: Mapping[str, int]
    """In which states the admitted operations are at the end."""
    reservations: Mapping[str, int]
    """How the reservations ended, and how many are still open."""
    pending: Mapping[str, int]
    """Not yet decided or not yet published; no finding, unless the audit is strict."""
    findings: tuple[Finding, ...]
    """In journal order, at most FINDINGS_MAX."""
    found: int
    """How many there were in all."""

    @property
    def clean(self) -> bool:
        """Whether nothing was wrong."""
        return self.found == 0

    @property
    def first(self) -> Finding | None:
        """The finding at the first offending position."""
        return self.findings[0] if self.findings else None

    def as_json(self) -> dict[str, Any]:
        """The whole outcome as a JSON object."""
        plain = {name: value for name, value in asdict(self).items() if name != "findings"}
        return {
            **plain,
            "through": None if self.through is None else str(self.through),
            "clean": self.clean,
            "findings": [finding.as_json() for finding in self.findings],
        }
