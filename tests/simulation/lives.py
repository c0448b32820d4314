"""The auditor's own idea of an operation's life: what may follow what, and what must end."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from schemas import events as e
from schemas.entry import Entry
from tests.simulation import provider
from tests.simulation.clock import EPOCH_MS, MILLI
from tests.simulation.crew import PLACES, Crew, Life
from tests.simulation.lanes import Lanes
from tests.simulation.provider import Attempt

ENDS = {"success", "terminal", "policy_denied", "cancelled"}
ENDING = (
    e.OperationExpired,
    e.OperationCancelled,
    e.OperationDeadLettered,
    e.OperatorActionNeeded,
)
CLOSING = (
    e.ReservationSettled,
    e.ReservationReleased,
    e.ReservationExpired,
    e.ReservationForfeited,
)


@dataclass
class Lives:
    """Operations that wait or run, and what their attempts hold."""

    open: dict[bytes, str] = field(default_factory=dict)
    """Operation to its effect class, until it ends."""
    effects: dict[bytes, str] = field(default_factory=dict)
    runs: set[bytes] = field(default_factory=set)
    held: dict[Attempt, str] = field(default_factory=dict)
    """Attempt to its member, as long as its reservation is not closed."""
    placed: set[Attempt] = field(default_factory=set)
    """Attempts that take a place of their member."""
    starts: dict[Attempt, int] = field(default_factory=dict)
    recorded: dict[Attempt, int] = field(default_factory=dict)
    granted: dict[Attempt, int] = field(default_factory=dict)
    charged: dict[Attempt, int] = field(default_factory=dict)
    """Attempt to when it was granted, unless it was given back."""
    doubts: dict[bytes, set[Attempt]] = field(default_factory=dict)
    """Operation to its starts of which nobody knows how they ended."""
    unknown: dict[Attempt, int] = field(default_factory=dict)
    """Attempt to the bound of its hold."""
    lanes: Lanes = field(default_factory=Lanes)
    proved: set[Attempt] = field(default_factory=set)
    """Attempts that are known to have ended, if not how."""
    paused_until_ms: int = 0
    lapsed: list[tuple[Attempt, Life, int]] = field(default_factory=list)
    """Attempts that became unknown because their lease had ended, with holder and entry time."""
    admitted: int = 0
    succeeded: int = 0
    now_ms: int = 0

    def begin(self, entry: Entry) -> None:
        """The next entry: a step of time moves every hold."""
        self.now_ms = entry.time_ms
        for moved in (self.unknown, self.charged):
            for attempt in moved:
                moved[attempt] += entry.time_step_ms or 0

    def see(self, event: e.Event) -> Iterator[str]:  # noqa: C901, PLR0912 - one arm an event
        match event:
            case e.OperationAdmitted():
                yield from self._admitted(event)
            case e.GrantIssued():
                yield from self._granted(event)
            case e.StartAccepted():
                yield from self._started(event)
            case e.GrantExpired() | e.GrantRevoked():
                if attempt_of(event) in self.starts:
                    yield f"{attempt_of(event)} ends unstarted after its start"
            case e.ResultRecorded():
                yield from self._recorded(event)
            case e.ResultRefusedStale():
                self._known(attempt_of(event), event.outcome != "unknown")
            case e.OutcomeMarkedUnknown():
                yield from self._marked(event)
            case e.OutcomeReconciled():
                yield from self._reconciled(event)
            case e.SavingStarted():
                yield from self.lanes.saves(event)
            case e.ConfigActivated():
                self.lanes.configured(event)
            case e.MemberLost() | e.MemberDrainRequested() | e.MemberSlotReturned():
                self.lanes.loses_a_member()
            case e.OperationParked():
                self.lanes.leaves_queue(event.operation)
            case e.CooldownSet():
                self.paused_until_ms = max(self.paused_until_ms, event.until_ms or 0)
            case e.ManualRetryAccepted():
                self.open[event.operation] = "waiting"
                self.doubts.pop(event.operation, None)
            case _ if isinstance(event, CLOSING):
                yield from self._closed(event)
            case _ if isinstance(event, ENDING):
                yield from self._ends(event.operation)
            case _:
                pass

    def _admitted(self, event: e.OperationAdmitted) -> Iterator[str]:
        if event.operation in self.open:
            yield f"{event.operation.hex()} is admitted twice"
        self.open[event.operation] = "waiting"
        self.effects[event.operation] = event.effect
        if event.turns_max is not None:
            self.runs.add(event.operation)
        self.admitted += 1
        yield from self.lanes.admitted(event)

    def _granted(self, event: e.GrantIssued) -> Iterator[str]:
        key = attempt_of(event)
        self.granted[key] = self.granted.get(key, 0) + 1
        if self.granted[key] > 1 or event.operation not in self.open:
            yield f"{key} is granted twice, or to nobody who waits"
        if any(operation == event.operation for operation, _, _ in self.placed):
            yield f"{event.operation.hex()} is granted while an attempt of it lives"
        if event.started_ms is not None and event.effect == "unsafe":
            yield f"{key} is unsafe and starts with its grant"
        if self.now_ms < self.paused_until_ms:
            yield f"{key} is granted in a pause"
        self.held[key] = f"{event.member} {event.member_epoch}"
        self.placed.add(key)
        slots = [one for one in self.held if one[0] not in self.runs]
        self.charged[key] = self.now_ms
        yield from self.lanes.granted(event, len(slots), self._requests())
        if len(slots) > provider.SLOTS_MAX:
            yield f"{len(slots)} reservations hold {provider.SLOTS_MAX} slots"
        if sum(self.held[one] == self.held[key] for one in self.placed) > PLACES:
            yield f"{event.member} has more grants than places"

    def _requests(self) -> int:
        """Calls that count in the shortest time that a charge can take to leave."""
        since_ms = self.now_ms - provider.WINDOW_MS
        return sum(
            at_ms > since_ms and one[0] not in self.runs for one, at_ms in self.charged.items()
        )

    def _started(self, event: e.StartAccepted) -> Iterator[str]:
        key = attempt_of(event)
        self.starts[key] = self.starts.get(key, 0) + 1
        if key not in self.placed or self.starts[key] > 1:
            yield f"{key} starts without a hold or twice"
        doubts = self.doubts.setdefault(event.operation, set())
        if doubts and self.effects[event.operation] == "unsafe":
            yield f"{key} is unsafe and starts though nobody knows how {doubts} ended"
        doubts.add(key)

    def _recorded(self, event: e.ResultRecorded) -> Iterator[str]:
        key = attempt_of(event)
        self.recorded[key] = self.recorded.get(key, 0) + 1
        if key not in self.starts or self.recorded[key] > 1:
            yield f"{key} has a result without a start, or two"
        self._known(key)
        if event.outcome in ENDS:
            yield from self._ends(event.operation)
        self.succeeded += event.outcome == "success"

    def _marked(self, event: e.OutcomeMarkedUnknown) -> Iterator[str]:
        key = attempt_of(event)
        if key not in self.starts or key not in self.held or key in self.unknown:
            yield f"{key} is unknown without a start, or twice"
        self.unknown[key] = event.hold_until_ms
        self.placed.discard(key)
        if event.cause == "lease_expired":
            self.lapsed.append((key, (event.member, event.member_epoch), self.now_ms))

    def _reconciled(self, event: e.OutcomeReconciled) -> Iterator[str]:
        key = attempt_of(event)
        if key not in self.unknown:
            yield f"{key} is reconciled, and was never unknown"
        if event.verdict == "ended":
            self.proved.add(key)
        if event.verdict in ("ended", "abandoned"):
            return
        self._known(key)
        newest = max(epoch for operation, _, epoch in self.granted if operation == key[0])
        ends = event.source != "late_result" and event.verdict in ("completed", "failed")
        if ends and event.epoch == newest:
            self.open.pop(event.operation, None)
            self.lanes.leaves_queue(event.operation)

    def _closed(self, event: e.Event) -> Iterator[str]:
        key = attempt_of(event)
        self.placed.discard(key)
        if self.held.pop(key, None) is None:
            yield f"{key} gives back what it does not hold"
        if isinstance(event, e.ReservationReleased | e.ReservationExpired):
            self.charged.pop(key, None)
        bound_ms = self.unknown.get(key)
        if isinstance(event, e.ReservationForfeited):
            if bound_ms is None or self.now_ms < bound_ms:
                yield f"{key} is forfeited before {bound_ms}"
        elif bound_ms is not None and key not in self.proved:
            yield f"{key} gives its slot back though nobody knows how it ended"

    def _known(self, key: Attempt, is_known: bool = True) -> None:
        self.placed.discard(key)
        if is_known:
            self.proved.add(key)
            self.doubts.get(key[0], set()).discard(key)

    def _ends(self, operation: bytes) -> Iterator[str]:
        self.lanes.leaves_queue(operation)
        if self.open.pop(operation, None) is None:
            yield f"{operation.hex()} ends without having begun"

    def at_the_end(self, crew: Crew) -> Iterator[str]:
        """What a healed world must not leave behind, or have done."""
        if self.open:
            yield f"{len(self.open)} admitted operations never ended"
        if self.held:
            yield f"{len(self.held)} reservations were never closed"
        for key, life, at_ms in self.lapsed:
            ran = crew.was_running(key, (at_ms - EPOCH_MS) * MILLI)
            if ran and life not in crew.excused:
                yield f"{key} became unknown, though {life} went on renewing its lease"


def attempt_of(event: object) -> Attempt:
    """Which attempt an event is about."""
    names = ("operation", "incarnation", "epoch")
    operation, incarnation, epoch = (getattr(event, name) for name in names)
    return operation, incarnation, epoch
