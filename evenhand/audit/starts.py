"""No call without an accepted start, and each accepted start is asked for and allowed (R43, R62).

A start is accepted for a live grant, before claim-by and deadline, at the request of the member
and member epoch that the grant names, unless the request stands; at most once for an (operation,
incarnation, attempt), and the first of an operation uses up its entitlement (R57). A send report
may only move the latest arrival earlier, and not before the call can have been sent. A result is
that of the newest attempt (R69).
"""

from collections.abc import Callable
from typing import Any

from schemas import events as e
from schemas import inputs as i
from schemas.journal import CAUSE_DISPATCH
from schemas.units import Millis

from .book import Book
from .config import Config
from .cursor import Cursor
from .records import NOBODY, Reservation, attempt_of, key_of

CHECK = "starts"


class Starts:
    """Looks at claims, starts, send reports and results beside the grant that they name."""

    def __init__(self, cursor: Cursor, config: Config, book: Book) -> None:
        self._cursor = cursor
        self._config = config
        self._book = book

    def handlers(self) -> dict[type, Callable[[Any], None]]:
        """What to call for which event."""
        return {
            e.LeaseClaimed: self._claimed,
            e.StartAccepted: self._started,
            e.SendObserved: self._observed,
            e.ResultRecorded: self._recorded,
        }

    def _claimed(self, event: e.LeaseClaimed) -> None:
        self._asked_for(event, i.StartRequested, i.ClaimRequested)
        reservation = self._granted(event)
        if reservation is not None and reservation.claimed:
            self._found("Expected one lease for a grant, but this is a second")
        if reservation is not None:
            self._in_time(reservation)

    def _started(self, event: e.StartAccepted) -> None:
        self._asked_for(event, i.StartRequested)
        operation = self._book.operations.get(event.operation)
        if operation is not None and event.attempt <= operation.started_attempt:
            self._found(f"Expected one accepted start for attempt {event.attempt}, not a second")
        self._commits(event)
        reservation = self._granted(event)
        if reservation is None:
            return
        if not reservation.claimed:
            self._found("Expected a lease before the start")
        if reservation.accepted_ms is not None:
            self._found("Expected one accepted start for a grant, but this is a second")
        self._in_time(reservation)
        grant = reservation.grant
        if event.send_within_ms != grant.send_within_ms:
            self._found(f"Expected send-within {grant.send_within_ms} as granted")
        latest = self._cursor.time_ms + grant.send_within_ms + self._transit_ms(reservation)
        if event.latest_arrival_ms < latest:
            self._found(f"Expected a latest arrival of {latest}, not {event.latest_arrival_ms}")

    def _commits(self, event: e.StartAccepted) -> None:
        operation = self._book.operations.get(event.operation)
        reservation = self._book.open.get(key_of(event))
        if operation is None or reservation is None or reservation.lease_ms is None:
            return  # a journal from before leases does not tell
        if event.commits_entitlement is operation.committed:
            times = "first" if event.commits_entitlement else "a later"
            self._found(f"Expected one start to use up the entitlement, but this is {times} one")

    def _observed(self, event: e.SendObserved) -> None:
        reservation = self._in_use(event)
        if reservation is None or reservation.accepted_ms is None:
            return
        if reservation.closed:
            self._found("Expected no send report to move what is settled")
        if event.latest_arrival_ms > reservation.latest_ms:
            self._found(f"Expected an arrival no later than {reservation.latest_ms}")
        earliest = reservation.accepted_ms + self._transit_ms(reservation)
        word = self._cursor.word
        if isinstance(word, i.SendReported | i.ResultReported):
            earliest += word.send_delay_ms or 0
        if event.latest_arrival_ms < earliest:
            self._found(f"Expected an arrival of {earliest} or later, as the report allows")

    def _recorded(self, event: e.ResultRecorded) -> None:
        word = self._caused_by(event, i.ResultReported)
        if isinstance(word, i.ResultReported) and word.outcome != event.outcome:
            self._found(f"Expected the outcome {word.outcome} as reported, not {event.outcome}")
        if self._book.newest(event) is None:
            self._found(f"Expected a result of the newest attempt, not of epoch {event.epoch}")
        self._in_use(event)

    def _granted(self, event: Any) -> Reservation | None:
        """The attempt that the event names, by holder and epoch, which must not be over."""
        reservation = self._book.find(event)
        name = type(event).__name__
        over = reservation is not None and reservation.ended and not reservation.is_uncertain
        if reservation is None or over:
            self._found(f"Expected a live grant for {name}, epoch {event.epoch}")
            return None
        named, granted = attempt_of(event), attempt_of(reservation.grant)
        if isinstance(event, e.LeaseClaimed) and reservation.grant.member == NOBODY:
            named, granted = named[:-2], granted[:-2]  # the first to claim it
        if named != granted:
            self._found(f"Expected {name} of {granted}, as granted, but it is of {named}")
        return reservation

    def _in_use(self, event: Any) -> Reservation | None:
        """The attempt with an accepted start that the event names."""
        reservation = self._granted(event)
        if reservation is not None and reservation.accepted_ms is None:
            self._found(f"Expected an accepted start before {type(event).__name__}")
        return reservation

    def _in_time(self, reservation: Reservation) -> None:
        now_ms = self._cursor.time_ms
        for name, bound in (
            ("claim-by", reservation.claim_by_ms),
            ("deadline", reservation.grant.deadline_ms),
        ):
            if now_ms >= bound:
                self._found(f"Expected it before {name} {bound}, but it is {now_ms}")

    def _asked_for(self, event: e.LeaseClaimed | e.StartAccepted, *kinds: type) -> None:
        """By its holder, or by a free place that stands for that (see `Standing`)."""
        reservation = self._book.open.get(key_of(event))
        stands = reservation is not None and reservation.grant.started_ms is not None
        if not stands or self._cursor.cause != CAUSE_DISPATCH:
            self._caused_by(event, *kinds)

    def _caused_by(self, event: Any, *kinds: type) -> Any:
        """The input behind the event, which must be of a kind and name the same attempt."""
        if self._cursor.is_gone:
            return None
        word = self._cursor.word
        if not isinstance(word, kinds) or attempt_of(word) != attempt_of(event):
            asked_for = " or ".join(kind.__name__ for kind in kinds)
            self._found(f"Expected {type(event).__name__} to follow a {asked_for} of its holder")
        return word

    def _transit_ms(self, reservation: Reservation) -> Millis:
        domain = self._config.domains.get(reservation.grant.domain)
        return Millis(0) if domain is None else domain.transit_ms

    def _found(self, detail: str) -> None:
        self._cursor.found(CHECK, detail)
