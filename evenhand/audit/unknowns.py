"""Unknown outcomes: marked for a cause, held to their bound, made known by evidence only (C3, R82).

An outcome is unknown when its lease has ended or its holder says so. Each step that makes it known
is caused by what it names as its source, says what that source said, and is about an attempt that
is unknown; time alone proves an end no earlier than the provider's longest call after the latest
arrival, and forfeits no earlier than the bound. Evidence is recorded once, and bounded (R81).
"""

from collections.abc import Callable
from typing import Any

from schemas import events as e
from schemas import inputs as i
from schemas.journal import CAUSE_TIME

from .book import Book
from .config import Config
from .cursor import Cursor
from .records import UNKNOWN_CLOSED, Reservation, attempt_of, key_of

CHECK = "unknowns"
EVIDENCE_MAX = 16
"""Steps without a decision that are recorded of one attempt."""
_SOURCES: dict[str, Any] = {
    "late_result": i.ResultReported,
    "provider_lookup": i.OutcomeEvidence,
    "usage_report": i.UsageReported,
    "operator": i.ReconcileRequested,
}


class Unknowns:
    """Looks at each step from an accepted start to what is known of it in the end."""

    def __init__(self, cursor: Cursor, config: Config, book: Book) -> None:
        self._cursor = cursor
        self._config = config
        self._book = book

    def handlers(self) -> dict[type, Callable[[Any], None]]:
        """What to call for which event."""
        return {
            e.OutcomeMarkedUnknown: self._marked,
            e.EvidenceRecorded: self._noted,
            e.OutcomeReconciled: self._reconciled,
            e.ReservationForfeited: self._forfeited,
            e.OperatorActionNeeded: self._closed,
        }

    def _marked(self, event: e.OutcomeMarkedUnknown) -> None:
        reservation = self._book.open.get(key_of(event))
        if reservation is None or reservation.accepted_ms is None:
            self._found(f"Expected an accepted start of epoch {event.epoch}")
            return
        if attempt_of(event) != attempt_of(reservation.grant):
            self._found(f"Expected the attempt as granted, {attempt_of(reservation.grant)}")
        if event.cause == "lease_expired":
            if not reservation.lapsed:
                self._found("Expected the end of a lease before an outcome unknown for that")
        else:
            word = self._word(event, i.ResultReported)
            if word is not None and (word.outcome, attempt_of(word)) != (
                "unknown",
                attempt_of(event),
            ):
                self._found("Expected its holder to say that the outcome is unknown")
        domain = self._config.domains.get(event.domain)
        if domain is not None:
            bound_ms = reservation.accepted_ms + domain.unknown_hold_ms
            if event.hold_until_ms != max(self._cursor.time_ms, bound_ms):
                self._found(f"Expected a hold until {bound_ms}, not {event.hold_until_ms}")

    def _noted(self, event: e.EvidenceRecorded) -> None:
        self._word(event, i.OutcomeEvidence)
        reservation = self._uncertain(event)
        if reservation is not None and event.evidence in reservation.evidence:
            self._found(f"Expected the evidence {event.evidence!r} once, but this is a second time")
        if reservation is not None and len(reservation.evidence) >= EVIDENCE_MAX:
            self._found(f"Expected at most {EVIDENCE_MAX} pieces of evidence of one attempt")

    def _reconciled(self, event: e.OutcomeReconciled) -> None:
        if event.source == "elapsed_maximum":
            self._proved(event)
            return
        word = self._word(event, _SOURCES[event.source]) if event.source in _SOURCES else None
        if word is not None and _said(word) != event.verdict:
            self._found(f"Expected what {event.source} says, but the verdict is {event.verdict}")
        if word is not None and word.epoch not in (event.epoch, None):
            self._found(f"Expected it of epoch {word.epoch}, not of {event.epoch}")
        operation = self._book.newest(event)
        by_hand = event.source == "operator" and operation is not None
        if by_hand and operation is not None and operation.state == UNKNOWN_CLOSED:
            return  # a person may know more than the cell remembers
        self._uncertain(event)

    def _proved(self, event: e.OutcomeReconciled) -> None:
        self._by_time(event)
        reservation = self._uncertain(event)
        if reservation is None:
            return
        if reservation.call_ms_max is None:
            self._found("Expected no proof by time: the provider promises no longest call")
            return
        proof_ms = reservation.latest_ms + reservation.call_ms_max
        if self._cursor.time_ms < proof_ms or event.verdict != "ended":
            self._found(f"Expected that it has ended to be proved at {proof_ms}, not before")

    def _forfeited(self, event: e.ReservationForfeited) -> None:
        self._by_time(event)
        reservation = self._uncertain(event)
        if reservation is not None:
            self._at_bound(reservation)

    def _closed(self, event: e.OperatorActionNeeded) -> None:
        if event.reason == "abandoned":
            word = self._word(event, i.ReconcileRequested)
            if word is not None and word.verdict != "abandoned":
                self._found(f"Expected an operator to abandon it, not to say {word.verdict}")
            return
        self._by_time(event)
        key = key_of(event)
        reservation = self._book.find(event) or self._book.touched.get(key)
        if reservation is None or not reservation.is_uncertain:
            self._found(f"Expected an unknown attempt of epoch {event.epoch}")
        else:
            self._at_bound(reservation)

    def _at_bound(self, reservation: Reservation) -> None:
        if self._cursor.time_ms < (reservation.hold_until_ms or 0):
            self._found(f"Expected it held until {reservation.hold_until_ms}")

    def _uncertain(self, event: Any) -> Reservation | None:
        """The attempt that the event is about, which must be unknown."""
        reservation = self._book.find(event)
        is_over = reservation is not None and reservation.ended and not reservation.closed
        if reservation is None or not reservation.is_uncertain or is_over:
            self._found(f"Expected an unknown attempt of epoch {event.epoch}")
            return None
        return reservation

    def _word(self, event: Any, kind: Any) -> Any:
        """The input behind the event; None if it is gone, or is not what it must be."""
        if self._cursor.is_gone:
            return None
        word = self._cursor.word
        if isinstance(word, kind) and (word.tenant, word.operation) == (
            event.tenant,
            event.operation,
        ):
            return word
        self._found(f"Expected {type(event).__name__} to follow a {kind.__name__} about it")
        return None

    def _by_time(self, event: Any) -> None:
        if self._cursor.cause != CAUSE_TIME:
            self._found(f"Expected time alone to be the cause of {type(event).__name__}")

    def _found(self, detail: str) -> None:
        self._cursor.found(CHECK, detail)


def _said(word: Any) -> str:
    """The verdict of a source; that of a usage report is that the call ran."""
    match word:
        case i.ResultReported():
            return word.outcome
        case i.UsageReported():
            return "completed"
        case _:
            verdict: str = word.verdict
            return verdict
