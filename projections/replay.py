"""Decide again: recorded inputs under the same rules must give the recorded events (R147, R148).

The deciding side and the recorded inputs are handed in; this file only compares. It has no effects:
nothing is published, and the tables that the decider folds into are thrown away.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Protocol

from schemas.ids import CellId, StateHash
from schemas.journal import Entry, EntryEvent, InputRun, Position

from .accepted import Judged


class InputRecord(NamedTuple):
    """One record of an input topic, as it is there now."""

    offset: int
    key: bytes | None
    value: bytes | None


class RecordedInputs(Protocol):
    """The input topics of a cell."""

    def read(self, run: InputRun) -> Sequence[InputRecord]:
        """The records behind a run, in order; fewer if retention has removed some.

        Runs of one partition are asked for in the order taken.
        """
        ...


class Taken(NamedTuple):
    """A run with the records behind it."""

    run: InputRun
    records: Sequence[InputRecord]


class Decider(Protocol):
    """The rules of one version, with the state that they have come to."""

    @property
    def core_version(self) -> int:
        """Version of these rules."""
        ...

    @property
    def state_hash(self) -> StateHash:
        """The running hash over the row images of everything folded so far."""
        ...

    def decide(self, entry: Entry, taken: Sequence[Taken]) -> Sequence[EntryEvent]:
        """What follows from the inputs at the entry's time; folded already."""
        ...

    def fold(self, entry: Entry) -> None:
        """Believe the entry's own events."""
        ...


class Difference(NamedTuple):
    """Where deciding again went another way, and how."""

    position: Position
    """The first event that differs; index 0 stands for the entry if its state differs."""
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The outcome of one replay."""

    through: Position | None
    """The last entry looked at."""
    decided: int
    """Entries decided again and found equal."""
    folded: int
    """Genesis and takeovers: they decide nothing."""
    noise: int
    events: int
    """Events compared."""
    other_version: int
    """Entries of another core version: folded, since these rules did not decide them.

    A process whose rules differ folds the journal anew, so the hashes of both versions' entries
    compare with a fold of the whole, each with its own.
    """
    without_inputs: int
    """Entries whose inputs retention has removed: folded, for want of anything to decide on."""
    difference: Difference | None
    """The first one; after it nothing was compared."""

    def as_json(self) -> dict[str, Any]:
        """The outcome as a JSON object."""
        found = self.difference
        return {
            **asdict(self),
            "through": None if self.through is None else str(self.through),
            "equal": found is None,
            "difference": None if found is None else f"{found.position}: {found.detail}",
        }


def verify(
    records: Iterable[Judged], decider: Decider, inputs: RecordedInputs, *, cell: CellId
) -> Verification:
    """Decide every entry again and compare each event and the running hash, up to a difference.

    Raises:
        EntryUnreadable, JournalTrimmed: the journal cannot be judged; see there.
    """
    replay = _Replay(decider, inputs, cell)
    for record in records:
        if record.entry is None:
            replay.noise += 1
        elif not replay.entry(record.offset, record.entry):
            break
    return replay.outcome()


class _Replay:
    def __init__(self, decider: Decider, inputs: RecordedInputs, cell: CellId) -> None:
        self._decider = decider
        self._inputs = inputs
        self._cell = cell
        self._through: Position | None = None
        self._difference: Difference | None = None
        self.noise = 0
        self._decided = self._folded = self._events = 0
        self._other_version = self._without_inputs = 0

    def entry(self, offset: int, entry: Entry) -> bool:
        """Look at the next accepted entry.

        Returns: False at a difference: what comes after it follows from another state.
        """
        self._through = Position(self._cell, entry.generation, offset, 0)
        own = entry.core_version == self._decider.core_version
        expected = self._decider.state_hash
        if own and entry.state_hash != expected:
            said = f"but the entry says {entry.state_hash.hex()}"
            return self._differs(0, f"Expected the state {expected.hex()} before it, {said}")
        taken = [Taken(run, self._inputs.read(run)) for run in entry.inputs]
        if entry.takeover:
            self._folded += 1
        elif not own:
            self._other_version += 1
        elif any(len(records) != run.next - run.first for run, records in taken):
            self._without_inputs += 1
        else:
            return self._compare(entry, self._decider.decide(entry, taken))
        self._decider.fold(entry)
        return True

    def _compare(self, entry: Entry, decided: Sequence[EntryEvent]) -> bool:
        for index, (recorded, again) in enumerate(zip(entry.events, decided, strict=False)):
            if recorded.body != again.body:
                return self._differs(
                    index, "Expected the event that is decided again, but it is another"
                )
            if recorded.cause != again.cause:
                causes = f"{again.cause}, but it is {recorded.cause}"
                return self._differs(index, f"Expected the cause {causes}")
        found, expected = len(entry.events), len(decided)
        if found != expected:
            counted = f"Expected {expected} events, but the entry has {found}"
            return self._differs(min(found, expected), counted)
        self._decided += 1
        self._events += found
        return True

    def _differs(self, index: int, detail: str) -> bool:
        assert self._through is not None
        self._through = Position(
            self._through.cell, self._through.generation, self._through.offset, index
        )
        self._difference = Difference(self._through, detail)
        return False

    def outcome(self) -> Verification:
        """What was found."""
        return Verification(
            through=self._through,
            decided=self._decided,
            folded=self._folded,
            noise=self.noise,
            events=self._events,
            other_version=self._other_version,
            without_inputs=self._without_inputs,
            difference=self._difference,
        )
