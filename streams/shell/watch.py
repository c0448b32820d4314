"""Port to whoever watches a cell: roles, progress, alerts, and what each entry took."""

from dataclasses import dataclass
from typing import Literal, Protocol

Alert = Literal[
    "halted",
    "stepped_down",
    "no_quick_report",
    "broker_clock_step",
    "slow_append",
    "publish_stalled",
]
"""What an operator must know, in the order of its weight; each comes with a sentence."""


@dataclass(slots=True, kw_only=True)
class EntryMeasures:
    """One accepted entry of this owner, measured after everything of it was handed on (R163)."""

    offset: int
    height: int
    bytes: int
    inputs: int
    events: int
    append_ms: int
    """From the produce call to the delivery report."""
    lag_entries: int
    """Entries whose outputs are not all known to be out."""


class Watch(Protocol):
    """Told after the fact; may never influence a decision and never waits."""

    def role(self, name: str, epoch: int) -> None:
        """The process entered this role."""
        ...

    def progress(self, offset: int, end: int) -> None:
        """Folded up to `offset` of `end` while restoring."""
        ...

    def entry(self, measures: EntryMeasures) -> None:
        """An entry was accepted, flushed and handed to the outbox."""
        ...

    def alert(self, name: Alert, detail: str) -> None:
        """Something that a person should know."""
        ...
