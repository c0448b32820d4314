"""What the journal says has happened to each operation and reservation, believed and not judged.

The checks read the book as it was before an event; the book is folded after they have spoken.
"""

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from schemas import events as e
from schemas.ids import (
    DomainId,
    MemberId,
    OperationId,
    PayloadDigest,
    PoolId,
    TenantId,
    UserId,
)
from schemas.units import Millis

WAITING, PARKED, GRANTED, STARTED = "waiting", "parked", "granted", "started"
LIVE = frozenset({WAITING, PARKED, GRANTED, STARTED})
ENDED_BY_RESULT = {
    "success": "succeeded",
    "terminal": "failed",
    "policy_denied": "failed",
    "cancelled": "cancelled",
}

Queue = tuple[TenantId, str, PoolId, DomainId]
"""Tenant, lane, pool and domain."""


@dataclass(slots=True)
class Operation:
    """One incarnation of an operation id."""

    incarnation: int
    sequence: int
    queue: Queue
    member: MemberId | None
    user: UserId
    tokens: int
    """Prompt plus output ceiling: what a call reserves (R49)."""
    deadline_ms: Millis
    digest: PayloadDigest
    state: str = WAITING
    epoch: int = 0
    """The highest fencing epoch granted."""
    started_attempt: int = 0
    """The highest attempt with an accepted start."""
    cancelling: bool = False
    """Started work was asked to end: unless it succeeded, it ends as cancelled."""
    ended_ms: int = 0
    """When it became terminal; the guard horizon counts from then."""


class Refused(NamedTuple):
    """A key bound to a permanent refusal."""

    digest: PayloadDigest
    ended_ms: int


@dataclass(slots=True)
class Reservation:
    """One grant with what it holds, until it is closed."""

    grant: e.GrantIssued
    claimed: bool = False
    accepted_ms: int | None = None
    """When its start was accepted; None while unstarted."""
    latest_ms: int = 0
    """The last instant at which the call can arrive, once started."""
    claim_by_ms: int = 0
    ended: str | None = None
    """How the grant or the attempt ended: expired, revoked, not_sent or known."""
    closed: str | None = None
    """How the reservation was closed: expired, released or settled."""


Key = tuple[OperationId, int]
"""Operation and fencing epoch: names one reservation."""


class Book:
    """Operations by id, reservations while they are open, and totals of both."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.operations: dict[OperationId, Operation] = {}
        self.refused: dict[OperationId, Refused] = {}
        self.open: dict[Key, Reservation] = {}
        self.touched: dict[Key, Reservation] = {}
        """Reservations that ended or closed in this entry."""
        self.closed: Counter[str] = Counter()
        self.forgotten: Counter[str] = Counter()
        """Terminal operations that the owner no longer remembers."""

    def admitted(self, event: e.OperationAdmitted) -> None:
        """A new incarnation waits."""
        self.forget(event)
        self.operations[event.operation] = Operation(
            incarnation=event.incarnation,
            sequence=event.sequence,
            queue=(event.tenant, event.lane, event.pool, event.domain),
            member=event.member,
            user=event.user,
            tokens=event.prompt_tokens + event.output_tokens_max,
            deadline_ms=event.deadline_ms,
            digest=event.payload_digest,
        )

    def rejected(self, event: e.OperationRejected) -> None:
        """A permanent refusal binds its key."""
        if event.binds_key and event.payload_digest:
            self.forget(event)
            self.refused[event.operation] = Refused(event.payload_digest, self.now_ms)

    def forget(
        self, event: e.OperationForgotten | e.OperationAdmitted | e.OperationRejected
    ) -> None:
        """The guard horizon has passed; an earlier incarnation is known no more."""
        operation = self.operations.pop(event.operation, None)
        if operation is not None:
            self.forgotten[operation.state] += 1
        self.refused.pop(event.operation, None)

    def parked(self, event: e.OperationParked) -> None:
        """Out of the ready set."""
        self._move(event.operation, PARKED)

    def unparked(self, event: e.OperationUnparked) -> None:
        """Back at its sequence."""
        self._move(event.operation, WAITING)

    def expired(self, event: e.OperationExpired) -> None:
        """Ended at its deadline."""
        self._move(event.operation, "expired")

    def cancelled(self, event: e.OperationCancelled) -> None:
        """Ended by request."""
        self._move(event.operation, "cancelled")

    def signalled(self, event: e.CancelSignalled) -> None:
        """Its end, unless a success, will be a cancellation."""
        operation = self.operations.get(event.operation)
        if operation is not None:
            operation.cancelling = True

    def granted(self, event: e.GrantIssued) -> None:
        """The reservation is held."""
        self.open[event.operation, event.epoch] = Reservation(event, claim_by_ms=event.claim_by_ms)
        operation = self.operations.get(event.operation)
        if operation is not None:
            operation.state = GRANTED
            operation.epoch = max(operation.epoch, event.epoch)

    def claimed(self, event: e.LeaseClaimed) -> None:
        """The member has a lease."""
        reservation = self.open.get((event.operation, event.epoch))
        if reservation is not None:
            reservation.claimed = True

    def started(self, event: e.StartAccepted) -> None:
        """The reservation is in use."""
        reservation = self.open.get((event.operation, event.epoch))
        operation = self.operations.get(event.operation)
        if reservation is not None:
            reservation.accepted_ms = self.now_ms
            reservation.latest_ms = event.latest_arrival_ms
        if operation is not None:
            operation.state = STARTED
            operation.started_attempt = max(operation.started_attempt, event.attempt)

    def observed(self, event: e.SendObserved) -> None:
        """The call was sent earlier than assumed."""
        reservation = self.open.get((event.operation, event.epoch))
        if reservation is not None:
            reservation.latest_ms = event.latest_arrival_ms

    def grant_ended(self, event: e.GrantExpired | e.GrantRevoked) -> None:
        """The grant ended unstarted; the operation waits again."""
        how = "expired" if isinstance(event, e.GrantExpired) else "revoked"
        self._end((event.operation, event.epoch), how)
        self._move(event.operation, WAITING)

    def recorded(self, event: e.ResultRecorded) -> None:
        """The outcome is known."""
        not_sent = event.outcome == "not_sent"
        self._end((event.operation, event.epoch), "not_sent" if not_sent else "known")
        state = ENDED_BY_RESULT.get(event.outcome, WAITING)
        operation = self.operations.get(event.operation)
        if operation is not None and operation.cancelling and state == "failed":
            state = "cancelled"
        self._move(event.operation, state)

    def reservation_closed(
        self, event: e.ReservationSettled | e.ReservationReleased | e.ReservationExpired
    ) -> None:
        """The reservation is open no longer."""
        key = (event.operation, event.epoch)
        reservation = self.open.pop(key, None)
        if reservation is not None:
            reservation.closed = type(event).__name__.removeprefix("Reservation").lower()
            self.touched[key] = reservation
            self.closed[reservation.closed] += 1

    def step_time(self, step_ms: int) -> None:
        """Entry time was stepped forward: what was measured in it before moves with it."""
        if step_ms:
            for reservation in self.open.values():
                reservation.claim_by_ms += step_ms
                reservation.latest_ms += step_ms
                if reservation.accepted_ms is not None:
                    reservation.accepted_ms += step_ms

    def _end(self, key: Key, how: str) -> None:
        reservation = self.open.get(key) or self.touched.get(key)
        if reservation is not None:
            reservation.ended = how
            self.touched[key] = reservation

    def _move(self, operation_id: OperationId, state: str) -> None:
        operation = self.operations.get(operation_id)
        if operation is not None:
            operation.state = state
            operation.ended_ms = self.now_ms
