"""What a cell would have decided under another policy: recorded inputs, the real rules, one change.

Submissions, cancellations, members and configuration come at the entries at which they were taken.
What workers said cannot: under another policy they would have got their grants at other times. So
each start, send report and result comes as many entries after its grant as it was recorded to, at
the latest when the recorded time has passed. For a grant that was never recorded a start comes with
the next entry, a result after the service time. The recorded policy gives the recorded order.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from msgspec.structs import replace

from schemas import events as e
from schemas import inputs as i
from schemas.entry import InputRun
from schemas.ids import MemberEpoch, MemberId, OperationId
from schemas.topics import INPUT_TOPICS, Topic
from schemas.units import Millis

from .decider import Acted, Decided, as_recorded, step
from .evolution import evolve
from .limits import RENEWALS_MAX
from .memory import MemoryRows
from .opening import open_state
from .outcomes import Header, Source, Taken
from .state import State

TAIL_STEP_MS = Millis(10)
"""Distance of the entries that follow the recorded ones until nothing waits any more."""
TAIL_ENTRIES_MAX = 100_000
"""A thousand seconds; work that waits longer waits for something that does not come."""
HEARTBEAT_EVERY_MS = Millis(1_000)
"""Members go on living while the tail runs."""

_MEMBERS, _STARTS, _RESULTS = map(INPUT_TOPICS.index, (Topic.MEMBERS, Topic.STARTS, Topic.RESULTS))
_NEVER = 1 << 62
"""No entry has this number: only time brings it."""
_SAID = (i.StartRequested, i.SendReported, i.ResultReported)

ServiceMs = Callable[[e.GrantIssued], int]


class Recorded(NamedTuple):
    """One accepted entry: what it says of itself, the inputs it took and what was decided."""

    header: Header
    taken: Sequence[Taken]
    decided: Sequence[Decided]


class Replayed(NamedTuple):
    """The same entry decided again, or one of the tail."""

    time_ms: Millis
    decided: Sequence[Decided]


@dataclass(slots=True, kw_only=True)
class _Tail:
    """The header of an entry that nobody recorded."""

    generation: int = 1
    height: int
    epoch: int
    takeover: bool = False
    time_ms: Millis
    time_step_ms: Millis | None = None
    inputs: tuple[InputRun, ...] = ()


class _Line(NamedTuple):
    """What a worker said about one grant: how long after it, and where in that entry."""

    entries_after: int
    ms_after: int
    ordinal: int
    said: Any
    source: Source


class _Script:
    """What is still to be said about one grant, in order."""

    def __init__(self, lines: Iterable[_Line], number: int, time_ms: Millis) -> None:
        self._lines = deque(lines)
        self._number, self._time_ms = number, time_ms

    @property
    def is_over(self) -> bool:
        return not self._lines

    def due(self, number: int, time_ms: Millis) -> Iterator[_Line]:
        """What is taken with this entry: one line, and those that were taken together with it."""
        entries, passed_ms = number - self._number, time_ms - self._time_ms
        together = None
        while self._lines:
            line = self._lines[0]
            if line.entries_after > entries and line.ms_after >= passed_ms:
                return
            if together is not None and line.entries_after != together:
                return
            together = line.entries_after
            yield self._lines.popleft()


class _Workers:
    """What workers say, and when, in a run whose grants come at other entries."""

    def __init__(self, recorded: Sequence[Recorded], service_ms: ServiceMs) -> None:
        self._service_ms = service_ms
        self._recorded: defaultdict[OperationId, deque[list[_Line]]] = defaultdict(deque)
        self.scripts: list[_Script] = []
        """What is still to be said."""
        self.scripted: set[Source] = set()
        """Inputs that follow their grant and not the entry that took them."""
        self._read(recorded)

    def hear(self, grant: e.GrantIssued, number: int, time_ms: Millis) -> None:
        """A grant was issued in this entry."""
        attempts = self._recorded[grant.operation]
        lines = attempts.popleft() if attempts else []
        if not any(isinstance(line.said, i.ResultReported) for line in lines):
            lines = self._improvised(grant)
        who = _identity(grant)
        lines = [line._replace(said=replace(line.said, **who)) for line in lines]
        self.scripts.append(_Script(lines, number, time_ms))

    def said(self, number: int, time_ms: Millis) -> list[tuple[int, Taken]]:
        """What is taken with this entry, each with its place among the inputs."""
        found = [
            (line.ordinal, Taken(line.source, line.said))
            for script in self.scripts
            for line in script.due(number, time_ms)
        ]
        if found:
            self.scripts = [script for script in self.scripts if not script.is_over]
        return found

    def _read(self, recorded: Sequence[Recorded]) -> None:
        attempts: dict[tuple[OperationId, int, int], tuple[int, Millis, list[_Line]]] = {}
        for number, (header, taken, decided) in enumerate(recorded):
            for ordinal, one in enumerate(taken):
                said = one.body
                if not isinstance(said, _SAID):
                    continue
                attempt = attempts.get((said.operation, said.incarnation, said.epoch))
                if attempt is not None:
                    at_number, at_ms, lines = attempt
                    passed_ms = header.time_ms - at_ms
                    lines.append(_Line(number - at_number, passed_ms, ordinal, said, one.source))
                    self.scripted.add(one.source)
            for grant in _grants(decided):
                key = (grant.operation, grant.incarnation, grant.epoch)
                attempts[key] = (number, header.time_ms, [])
                self._recorded[grant.operation].append(attempts[key][2])

    def _improvised(self, grant: e.GrantIssued) -> list[_Line]:
        """A start with the next entry, and a success when the call would have ended."""
        identity, ends_ms = _identity(grant), self._service_ms(grant)
        start = i.StartRequested(**identity)
        result = i.ResultReported(**identity, outcome="success")
        lines = ((1, start, _STARTS), (_NEVER, result, _RESULTS))
        return [_Line(after, ends_ms, 0, said, Source(n, 0, -1)) for after, said, n in lines]


_IDENTITY = ("tenant", "operation", "incarnation", "attempt", "epoch", "member", "member_epoch")


def _identity(grant: e.GrantIssued) -> dict[str, Any]:
    return {name: getattr(grant, name) for name in _IDENTITY}


def replayed(
    recorded: Sequence[Recorded], *, service_ms: ServiceMs, policy: str | None = None
) -> Iterator[Replayed]:
    """Decide a whole journal again, from its first entry on.

    Args:
        recorded: all accepted entries in order.
        service_ms: how long a call takes that no recorded grant started.
        policy: replaces that of every domain; None keeps what was recorded.

    Returns: one for each recorded entry, then as many as it takes until nothing waits.
    """
    run = _Run(open_state(rows := MemoryRows()), rows, _Workers(recorded, service_ms))
    last_grant = max(
        (n for n, entry in enumerate(recorded) if _grants(entry.decided)), default=len(recorded)
    )
    for number, (header, taken, decided) in enumerate(recorded):
        if header.height == 0 or header.takeover:
            yield run.folded(header, decided)
            continue
        kept = [
            (ordinal, _under(policy, one))
            for ordinal, one in enumerate(taken)
            if one.source not in run.workers.scripted
            # Whoever left when the record had no more work would have stayed while there was.
            and not (number > last_grant and isinstance(one.body, i.LeaveAnnounced))
        ]
        # An owner that may not let time act yet says nothing of it; under another policy it may.
        acted = as_recorded(decided)
        if policy is not None:
            kept, acted = run.renewing(kept), acted._replace(timers=True)
        yield run.decided(number, header, kept, acted)
    yield from run.tail(len(recorded), recorded[-1].header)


class _Run:
    """One run: the state, its rows and the workers around it."""

    def __init__(self, state: State, rows: MemoryRows, workers: _Workers) -> None:
        self.workers = workers
        self._state, self._rows = state, rows
        self._beat_ms = 0

    def folded(self, header: Header, decided: Sequence[Decided]) -> Replayed:
        """An entry in which nothing is decided: the first one, and takeovers."""
        self._state.begin(header)
        for one in decided:
            evolve(self._state, one.event)
        self._rows.write(self._state.drain())
        return Replayed(header.time_ms, decided)

    def renewing(self, inputs: Sequence[tuple[int, Taken]]) -> list[tuple[int, Taken]]:
        """Members that live renew what they hold now, which is not what they held then."""
        return [
            (ordinal, replace(taken, body=self._beat(taken.body.member, taken.body.member_epoch)))
            if isinstance(taken.body, i.HeartbeatReported)
            else (ordinal, taken)
            for ordinal, taken in inputs
        ]

    def _beat(self, member: MemberId, member_epoch: MemberEpoch) -> i.HeartbeatReported:
        attempts = self._state.attempts
        leases = [
            i.LeaseName(operation=operation, epoch=attempts[operation].epoch)
            for operation in self._state.pools.held_by(member, member_epoch)
            if attempts[operation].lease_ms is not None
        ]
        return i.HeartbeatReported(
            member=member, member_epoch=member_epoch, leases=tuple(leases[:RENEWALS_MAX])
        )

    def decided(
        self, number: int, header: Header, inputs: Sequence[tuple[int, Taken]], acted: Acted
    ) -> Replayed:
        """An entry decided again, with what the workers say by now."""
        said = [*inputs, *self.workers.said(number, header.time_ms)]
        said.sort(key=lambda one: one[0])
        self._state.begin(header)
        decided = step(self._state, [taken for _, taken in said], acted)
        self._rows.write(self._state.drain())
        for grant in _grants(decided):
            self.workers.hear(grant, number, header.time_ms)
        return Replayed(header.time_ms, decided)

    def tail(self, number: int, last: Header) -> Iterator[Replayed]:
        """Entries at a steady pace until nothing waits and nobody has anything to say."""
        time_ms, height = last.time_ms, last.height
        for further in range(TAIL_ENTRIES_MAX):
            if not self._state.cell.waiting and not self.workers.scripts:
                return
            time_ms, height = Millis(time_ms + TAIL_STEP_MS), height + 1
            header = _Tail(height=height, epoch=last.epoch, time_ms=time_ms)
            yield self.decided(number + further, header, self._heartbeats(time_ms), Acted())

    def _heartbeats(self, time_ms: Millis) -> list[tuple[int, Taken]]:
        if time_ms < self._beat_ms + HEARTBEAT_EVERY_MS:
            return []
        self._beat_ms = time_ms
        beats = (
            self._beat(name, row.member_epoch)
            for name, row in sorted(self._state.pools.members.items())
        )
        return [(-1, Taken(Source(_MEMBERS, 0, -1), beat)) for beat in beats]


def _grants(decided: Iterable[Decided]) -> list[e.GrantIssued]:
    return [one.event for one in decided if isinstance(one.event, e.GrantIssued)]


def _under(policy: str | None, taken: Taken) -> Taken:
    body = taken.body
    if policy is None or not isinstance(body, i.ConfigProposed) or body.domain is None:
        return taken
    return replace(taken, body=replace(body, domain=replace(body.domain, policy=policy)))
