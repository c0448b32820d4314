"""Judges a whole history by a small model of its own, from the log, the topics and the provider."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from schemas import events as e
from schemas import inputs as i
from schemas.codec import decode
from schemas.entry import Entry
from schemas.errors import WordError
from schemas.ids import StateHash
from schemas.journal import Position
from schemas.topics import routes
from streams.shell.inputs import Place, Source
from streams.shell.journal import Record
from streams.shell.tables import Applied
from tests.simulation.clock import EPOCH_MS, MILLI
from tests.simulation.crew import SEND_WITHIN_MS, TRANSIT_MS, Crew
from tests.simulation.inputs import InputTopics
from tests.simulation.lives import Lives, attempt_of
from tests.simulation.outbox import Lane, PublicTopics, Published, lane_of
from tests.simulation.workload import CELL, CLOCK_BOUND_MS, Sent

ANSWERS = (
    e.OperationAdmitted, e.OperationRejected, e.DuplicateObserved, e.SubmissionConflicted,
    e.InputQuarantined,
)  # fmt: skip

CLOCKS_MS = CLOCK_BOUND_MS + 2
"""How far two leaders' clocks differ at most, rounded."""


@dataclass
class Auditor:
    """Collects what was believed and folded while the world runs; judges at its end."""

    beliefs: list[tuple[str, Applied]] = field(default_factory=list)
    folded: dict[int, StateHash] = field(default_factory=dict)
    """Journal offset to the follower's hash after it."""

    def believed(self, name: str) -> Callable[[Applied], None]:
        return lambda applied: self.beliefs.append((name, applied))

    def findings(
        self, log: Sequence[Record], inputs: InputTopics, public: PublicTopics,
        sent: dict[Source, Sent], crew: Crew,
    ) -> Iterator[str]:  # fmt: skip
        """Everything that is wrong, as sentences; nothing if all is well."""
        accepted = dict(accepted_of(log))
        if list(accepted) != list(self.folded):
            yield f"Expected {list(accepted)} to be folded, but the follower has {self.folded}"
        for name, applied in self.beliefs:
            offset = applied.head.offset
            if offset not in accepted:
                yield f"Host {name} believed {offset}, which readers refuse"
            elif applied.state_hash != self.folded.get(offset):
                yield f"Host {name} had another state at {offset}"
        yield from _time_runs_on(accepted)
        yield from _taken_once(accepted, inputs)
        yield from _answered(accepted, sent)
        yield from _renewed(accepted, inputs)
        yield from _published(accepted, public)
        yield from _in_time(accepted, log, crew)
        lives = Lives()
        for offset, entry in accepted.items():
            lives.begin(entry)
            for recorded in entry.events:
                for complaint in lives.see(decode(recorded.body)):
                    yield f"{complaint} at {offset}"
        yield from lives.at_the_end(crew)


def accepted_of(log: Sequence[Record]) -> Iterator[tuple[int, Entry]]:
    """The accept rule once more, written down plainly: a second witness to `schemas.journal`."""
    last: tuple[int, Entry] | None = None
    for record in log:
        try:
            entry = decode(record.value)
        except WordError:
            continue
        if not isinstance(entry, Entry):
            continue
        if last is None:
            if record.offset == 0 and entry.previous == -1:
                last = 0, entry
                yield last
            continue
        offset, before = last
        extends = entry.previous == offset and entry.height == before.height + 1
        extends = extends and entry.generation == before.generation
        goes_on = (entry.epoch, entry.owner, entry.takeover) == (before.epoch, before.owner, False)
        begins = entry.takeover and entry.epoch == before.epoch + 1
        if extends and (goes_on or begins):
            last = record.offset, entry
            yield last


def _time_runs_on(accepted: dict[int, Entry]) -> Iterator[str]:
    before: Entry | None = None
    for offset, entry in accepted.items():
        if before is not None and entry.time_ms < before.time_ms:
            yield f"Time goes back at {offset}"
        if before is not None and entry.takeover:
            copied = (entry.time_ms, entry.published, entry.clock_shift_ms)
            if copied != (before.time_ms, before.published, before.clock_shift_ms):
                yield f"The takeover at {offset} does not copy its predecessor"
            if entry.inputs or entry.events:
                yield f"The takeover at {offset} decides something"
        before = entry


def _taken_once(accepted: dict[int, Entry], inputs: InputTopics) -> Iterator[str]:
    positions: dict[Place, int] = {}
    for offset, entry in accepted.items():
        for run in entry.inputs:
            place = Place(run.topic, run.partition)
            if run.first != positions.get(place, 0):
                yield f"{place} taken from {run.first} at {offset}, not {positions.get(place, 0)}"
            positions[place] = run.next
    for place, records in inputs.records.items():
        if positions.get(place, 0) != len(records):
            yield f"{len(records)} records at {place}, but {positions.get(place, 0)} were taken"


def _answered(accepted: dict[int, Entry], sent: dict[Source, Sent]) -> Iterator[str]:
    """Each submission has exactly one answer, and the one that its key's history asks for."""
    bound: dict[tuple[str, str], i.OperationSubmitted] = {}
    unanswered = dict(sent)
    for entry in accepted.values():
        sources = [Source(r.topic, r.partition, o) for r in entry.inputs
                   for o in range(r.first, r.next)]  # fmt: skip
        for recorded in entry.events:
            event = decode(recorded.body)
            if not isinstance(event, ANSWERS) or recorded.cause < 0:
                continue
            source = sources[recorded.cause]
            asked = unanswered.pop(source, None)
            if asked is None:
                yield f"What came at {source} is answered twice, or was never sent"
            elif type(event) not in _due(asked, bound):
                yield f"{asked.kind} at {source} was answered by {type(event).__name__}"
            elif asked.body is not None and _binds(event):
                bound.setdefault((asked.body.tenant, asked.body.idempotency_key), asked.body)
    for source in unanswered:
        yield f"What came at {source} was never answered"


def _renewed(accepted: dict[int, Entry], inputs: InputTopics) -> Iterator[str]:
    """Leases are renewed by a heartbeat of that life, and by nothing else (R66)."""
    for offset, entry in accepted.items():
        words = [inputs.records[Place(r.topic, r.partition)][o] for r in entry.inputs
                 for o in range(r.first, r.next)]  # fmt: skip
        for recorded in entry.events:
            event = decode(recorded.body)
            if not isinstance(event, e.LeasesRenewed):
                continue
            word = words[recorded.cause] if recorded.cause >= 0 else None
            life = (event.member, event.member_epoch)
            if not isinstance(word, i.HeartbeatReported) or life != (
                word.member,
                word.member_epoch,
            ):
                yield f"The leases of {life} are renewed by {word} at {offset}"


def _due(asked: Sent, bound: dict[tuple[str, str], i.OperationSubmitted]) -> tuple[type, ...]:
    """Which answers are right; what a temporary refusal did not bind is decided anew (R188)."""
    if asked.body is None:
        return (e.InputQuarantined,)
    first = bound.get((asked.body.tenant, asked.body.idempotency_key))
    if first is not None:
        same = first == asked.body
        return (e.DuplicateObserved, e.OperationRejected) if same else (e.SubmissionConflicted,)
    if asked.kind == "impossible":
        return (e.OperationRejected,)
    return (e.OperationAdmitted, e.OperationRejected)


def _binds(event: e.Event) -> bool:
    refused = isinstance(event, e.OperationRejected) and event.binds_key
    return refused or isinstance(event, e.OperationAdmitted)


def _in_time(accepted: dict[int, Entry], log: Sequence[Record], crew: Crew) -> Iterator[str]:
    """No call arrives later after its start was accepted than it may be on its way (R171)."""
    starts = {
        attempt_of(event): log[offset].append_ms
        for offset, entry in accepted.items()
        for event in (decode(one.body) for one in entry.events)
        if isinstance(event, e.StartAccepted)
    }
    for call in crew.provider.calls:
        begun_ms = starts.get(call.attempt)
        if begun_ms is None:
            yield f"{call.attempt} was called without a start"
            continue
        after_ms = EPOCH_MS + call.arrived_us // MILLI - begun_ms
        if after_ms > SEND_WITHIN_MS + TRANSIT_MS + CLOCKS_MS:
            yield f"{call.attempt} arrives {after_ms} ms after its start"


def _published(accepted: dict[int, Entry], public: PublicTopics) -> Iterator[str]:
    """After dropping repeats by position, each lane is exactly the journal's part for it."""
    expected: dict[Lane, list[Published]] = {lane: [] for lane in public.records}
    for offset, entry in accepted.items():
        for index, recorded in enumerate(entry.events):
            position = Position(CELL, entry.generation, offset, index)
            for topic, key in routes(decode(recorded.body)):
                expected[lane_of(topic, key)].append(Published(position, key, recorded.body))
    for lane, records in public.records.items():
        last: Position | None = None
        kept = []
        for record in records:
            if last is None or record.position > last:
                last = record.position
                kept.append(record)
        if kept != expected[lane]:
            yield f"{lane} has {len(kept)} records where the journal has {len(expected[lane])}"
