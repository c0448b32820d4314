"""How each event changes the book: one method a kind, in the words of the event."""

from collections.abc import Callable
from typing import Any, get_args

from schemas import events as e

from .amounts import charged_by, corrected_by
from .book import Book
from .config import Config
from .records import (
    CANCELLED,
    DEAD,
    ENDED_BY_RESULT,
    EXPIRED,
    FAILED,
    GRANTED,
    LEASED,
    NOTHING,
    PARKED,
    REFUSED,
    STARTED,
    SUCCEEDED,
    UNKNOWN,
    UNKNOWN_CLOSED,
    WAITING,
    Reservation,
    attempt_of,
    key_of,
    said_of,
)

Closing = (
    e.ReservationSettled | e.ReservationReleased | e.ReservationExpired | e.ReservationForfeited
)
CLOSINGS = get_args(Closing)
_RECONCILED = {"completed": SUCCEEDED, "failed": FAILED, "not_executed": WAITING}
UNDECIDED = frozenset({"ended", "abandoned"})
"""Verdicts after which the outcome is as unknown as before."""


class Folds:
    """Writes the book, after every check has seen the event."""

    def __init__(self, book: Book, config: Config) -> None:
        self._book = book
        self._config = config

    def handlers(self) -> dict[type, Callable[[Any], None]]:
        """What to call for which event."""
        book = self._book
        return {
            e.OperationAdmitted: book.admitted,
            e.OperationRejected: book.rejected,
            e.OperationForgotten: book.forget,
            **dict.fromkeys(_MOVES, self.moved),
            e.CancelSignalled: self.signalled,
            e.RetryScheduled: self.scheduled,
            e.ManualRetryAccepted: self.retried,
            e.CheckpointRecorded: self.checkpointed,
            e.GrantIssued: self.granted,
            e.LeaseClaimed: self.claimed,
            e.LeasesRenewed: self.renewed,
            e.LeasesExtended: self.extended,
            e.LeaseExpired: self.lapsed,
            e.StartAccepted: self.started,
            e.SendObserved: self.observed,
            e.OutcomeMarkedUnknown: self.marked,
            e.EvidenceRecorded: self.noted,
            e.OutcomeReconciled: self.reconciled,
            e.ResultRefusedStale: self.contradicted,
            e.GrantExpired: self.grant_ended,
            e.GrantRevoked: self.grant_ended,
            e.ResultRecorded: self.recorded,
            **dict.fromkeys(CLOSINGS, self.reservation_closed),
            e.UsageCorrected: self.corrected,
        }

    # -- operations ------------------------------------------------------------------------------

    def moved(self, event: Any) -> None:
        """One of the events that say by their kind where an operation is now."""
        self._book.move(event.operation, _MOVES[type(event)])

    def signalled(self, event: e.CancelSignalled) -> None:
        """Its end, unless a success, will be a cancellation."""
        operation = self._book.operations.get(event.operation)
        if operation is not None:
            operation.cancelling = True

    def scheduled(self, event: e.RetryScheduled) -> None:
        """Another attempt follows; one that stayed unknown is counted now."""
        operation = self._book.operations.get(event.operation)
        if operation is not None:
            operation.tries += operation.state == UNKNOWN
            self._book.move(event.operation, PARKED)
            operation.not_before_ms = event.not_before_ms

    def retried(self, event: e.ManualRetryAccepted) -> None:
        """A person takes the responsibility: everything is counted afresh."""
        operation = self._book.operations.get(event.operation)
        if operation is not None:
            operation.deadline_ms = event.deadline_ms
            operation.tries = operation.throttles = 0
            operation.cancelling = False
            operation.doubts.clear()
            self._book.move(event.operation, WAITING)

    def checkpointed(self, event: e.CheckpointRecorded) -> None:
        """The next grant names it."""
        operation = self._book.operations.get(event.operation)
        if operation is not None:
            operation.checkpoint, operation.checkpoint_ref = event.number, event.state_ref

    # -- attempts --------------------------------------------------------------------------------

    def granted(self, event: e.GrantIssued) -> None:
        """The reservation is held."""
        domain = self._config.domains.get(event.domain)
        prices = None if domain is None or event.requests == 0 else domain.prices
        made = Reservation(
            event, prices=prices, granted_ms=self._book.now_ms, claim_by_ms=event.claim_by_ms
        )
        self._book.open[key_of(event)] = made
        self._book.take_place(key_of(event), made)
        self._book.move(event.operation, GRANTED)
        operation = self._book.operations.get(event.operation)
        if operation is not None:
            operation.epoch = max(operation.epoch, event.epoch)

    def claimed(self, event: e.LeaseClaimed) -> None:
        """The member has a lease; none is told in journals from before leases."""
        reservation = self._book.open.get(key_of(event))
        if reservation is not None:
            reservation.claimed = True
            self._book.hand_over(reservation, event.member, event.member_epoch)
            if event.expires_ms is not None:
                reservation.lease_ms = event.expires_ms - self._book.shift_ms
        self._book.move(event.operation, LEASED)

    def renewed(self, event: e.LeasesRenewed) -> None:
        """All leases of this life but the unnamed ones end then."""
        unnamed = {(one.operation, one.epoch) for one in event.unnamed}
        for key, held in self._book.held.get((event.member, event.member_epoch), {}).items():
            if held.lease_ms is not None and (key.operation, key.epoch) not in unnamed:
                held.lease_ms = event.expires_ms - self._book.shift_ms

    def extended(self, event: e.LeasesExtended) -> None:
        """No lease pays for a silence of the scheduler."""
        self._book.shift_ms += event.by_ms

    def lapsed(self, event: e.LeaseExpired) -> None:
        """The holder has lost its authority; something must follow in the same entry."""
        reservation = self._book.open.get(key_of(event))
        if reservation is not None:
            reservation.lapsed, reservation.lease_ms = True, None
            self._book.touched[key_of(event)] = reservation

    def started(self, event: e.StartAccepted) -> None:
        """The reservation is in use."""
        reservation = self._book.open.get(key_of(event))
        operation = self._book.operations.get(event.operation)
        if reservation is not None:
            reservation.accepted_ms = self._book.now_ms
            reservation.latest_ms = event.latest_arrival_ms
        if operation is not None:
            self._book.move(event.operation, STARTED)
            operation.started_attempt = max(operation.started_attempt, event.attempt)
            operation.committed = True
            operation.doubts.add(event.epoch)
            if reservation is not None:
                most = self._config.tenant(operation.queue[0]).runtime_ms_max
                runtime_ms = min(operation.runtime_ms or most, most)
                reservation.runs_until_ms = self._book.lease_now_ms + runtime_ms

    def observed(self, event: e.SendObserved) -> None:
        """The call was sent earlier than assumed."""
        reservation = self._book.open.get(key_of(event))
        if reservation is not None:
            reservation.latest_ms = event.latest_arrival_ms

    def marked(self, event: e.OutcomeMarkedUnknown) -> None:
        """The place is free; slot and tokens are not."""
        reservation = self._book.open.get(key_of(event))
        if reservation is not None:
            domain = self._config.domains.get(reservation.grant.domain)
            reservation.hold_until_ms = event.hold_until_ms
            reservation.call_ms_max = None if domain is None else domain.call_ms_max
            reservation.lease_ms = None
            self._book.leave_place(key_of(event), reservation)
            self._book.touched[key_of(event)] = reservation
        self._book.move(event.operation, UNKNOWN)

    def noted(self, event: e.EvidenceRecorded) -> None:
        """A step that decides nothing."""
        reservation = self._book.find(event)
        if reservation is not None:
            reservation.evidence.add(event.evidence)

    def reconciled(self, event: e.OutcomeReconciled) -> None:
        """What became of an attempt; its operation goes on if it was the newest."""
        if event.verdict == "abandoned":
            return
        held = "not_sent" if event.verdict in ("not_executed", "not_sent") else "known"
        self._book.end(key_of(event), held)
        if event.verdict in UNDECIDED:
            return
        known, operation = self._book.operations.get(event.operation), self._book.newest(event)
        if known is not None and known.incarnation == event.incarnation:
            known.doubts.discard(event.epoch)
            known.usage.add(event.evidence or "")
        state = _RECONCILED.get(event.verdict)
        if operation is None or state is None or event.source == "late_result":
            return
        if operation.state not in (WAITING, PARKED, UNKNOWN, UNKNOWN_CLOSED):
            return
        if state == WAITING and operation.state != UNKNOWN:
            return
        if state != WAITING and operation.charged_epoch != event.epoch:
            operation.charged_epoch, operation.charged = event.epoch, NOTHING
            operation.charged_by = attempt_of(event) if event.member_epoch else None
        unwanted = operation.cancelling and state == FAILED
        self._book.move(event.operation, CANCELLED if unwanted else state)

    def contradicted(self, event: e.ResultRefusedStale) -> None:
        """Evidence: it ends the attempt that it is about, if that is still uncertain."""
        key = key_of(event)
        reservation = self._book.open.get(key)
        if reservation is None or not reservation.is_uncertain:
            return
        if attempt_of(event) == attempt_of(reservation.grant):
            self._book.end(key, "not_sent" if event.outcome == "not_sent" else "known")
            operation = self._book.operations.get(event.operation)
            if operation is not None and operation.incarnation == event.incarnation:
                operation.doubts.discard(event.epoch)

    def grant_ended(self, event: e.GrantExpired | e.GrantRevoked) -> None:
        """The grant ended unstarted; the operation waits again."""
        how = "expired" if isinstance(event, e.GrantExpired) else "revoked"
        self._book.end(key_of(event), how)
        self._book.move(event.operation, WAITING)

    def recorded(self, event: e.ResultRecorded) -> None:
        """The outcome is known."""
        key = key_of(event)
        self._book.end(key, "not_sent" if event.outcome == "not_sent" else "known")
        state = ENDED_BY_RESULT.get(event.outcome, WAITING)
        operation = self._book.operations.get(event.operation)
        if operation is None:
            return
        operation.doubts.discard(event.epoch)
        operation.tries += event.outcome == "retryable"
        operation.throttles += event.outcome in REFUSED
        operation.said, operation.said_epoch = said_of(event), event.epoch
        unwanted = operation.cancelling and state == FAILED
        self._book.move(event.operation, CANCELLED if unwanted else state)

    def reservation_closed(self, event: Closing) -> None:
        """The reservation is open no longer; the outcome may still matter."""
        key = key_of(event)
        reservation = self._book.open.pop(key, None)
        if reservation is None:
            return
        reservation.closed = type(event).__name__.removeprefix("Reservation").lower()
        if reservation.closed == "forfeited":
            reservation.ended = "forfeited"
        self._book.touched[key] = reservation
        self._book.closed[reservation.closed] += 1
        self._book.leave_place(key, reservation)
        operation = self._book.newest(event)
        if operation is None:
            return
        charge = charged_by(event, reservation.grant)
        if charge is not None or event.epoch == operation.said_epoch:
            operation.charged_epoch, operation.charged = event.epoch, charge or NOTHING
            operation.prices = reservation.prices
            operation.charged_by = attempt_of(reservation.grant)
        if operation.state == UNKNOWN:
            self._book.doubtful[key] = reservation

    def corrected(self, event: e.UsageCorrected) -> None:
        """The ledgers follow the figure."""
        operation = self._book.newest(event) or self._book.operations.get(event.operation)
        if operation is not None and operation.charged_epoch == event.epoch:
            _, operation.charged = corrected_by(event)
            operation.usage |= {event.evidence} - {""}


_MOVES: dict[type, str] = {
    e.OperationParked: PARKED,
    e.OperationUnparked: WAITING,
    e.OperationExpired: EXPIRED,
    e.OperationCancelled: CANCELLED,
    e.OperationDeadLettered: DEAD,
    e.OperatorActionNeeded: UNKNOWN_CLOSED,
}
