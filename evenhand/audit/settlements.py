"""Every reservation is closed once, in the entry that ended its attempt, and for that reason (R53).

An expired grant expires its reservation, a revoked one and an attempt without a call release it, a
known result settles it. An unknown outcome keeps it until evidence settles or releases it, or its
bound forfeits it. What a settlement says was held is what the grant reserved, and later usage
corrects what it charged.
"""

from collections.abc import Callable
from typing import Any

from schemas import events as e

from .amounts import corrected_by, price, used_by
from .book import Book
from .cursor import Cursor
from .records import Charged, key_of

CHECK = "settlements"
_CLOSED_BY = {
    "expired": "expired",
    "revoked": "released",
    "not_sent": "released",
    "known": "settled",
    "forfeited": "forfeited",
}


class Settlements:
    """Looks at how reservations are closed, and at the end of an entry whether both sides agree."""

    def __init__(self, cursor: Cursor, book: Book) -> None:
        self._cursor = cursor
        self._book = book

    def handlers(self) -> dict[type, Callable[[Any], None]]:
        """What to call for which event."""
        return {
            e.ReservationSettled: self._settled,
            e.ReservationReleased: self._returned,
            e.ReservationExpired: self._returned,
            e.ReservationForfeited: self._forfeited,
            e.UsageCorrected: self._corrected,
        }

    def end(self) -> None:
        """The entry is over: what ended must be closed, and what closed must have ended."""
        for key, reservation in self._book.touched.items():
            expected = _CLOSED_BY.get(reservation.ended or "")
            about = f"the reservation of {key.operation.hex()}, epoch {key.epoch}"
            if reservation.closed != expected:
                self._cursor.index = 0
                ended, closed = reservation.ended or "going on", reservation.closed or "open"
                self._found(f"Expected {about} {expected or 'open'} ({ended}), but it is {closed}")
            if reservation.lapsed and not (reservation.ended or reservation.is_uncertain):
                self._cursor.index = 0
                self._found(f"Expected {about} returned or unknown, since its lease has ended")
        self._book.touched.clear()

    def _returned(self, event: Any) -> None:
        if key_of(event) not in self._book.open:
            name = type(event).__name__
            self._found(f"Expected an open reservation before {name}, epoch {event.epoch}")

    def _settled(self, event: e.ReservationSettled) -> None:
        self._returned(event)
        reservation = self._book.open.get(key_of(event))
        if reservation is None:
            return
        grant = reservation.grant
        self._equal("domain", event.domain, grant.domain)
        self._equal("tokens reserved", event.tokens_reserved, grant.tokens)
        self._equal("cost reserved", event.cost_reserved_ns, grant.cost_ns)
        used = used_by(event) or Charged(grant.prompt_tokens, grant.output_tokens_max, 0)
        paid = price(reservation.prices, used)
        self._equal("money", event.money_micros, paid)
        if used.output_tokens < 0 or used.input_tokens < 0:
            self._found(f"Expected input and output of 0 or more, but {used}")
        actual = grant.tokens if event.tokens_actual is None else event.tokens_actual
        self._equal("overdraft", event.overdraft_tokens, max(0, actual - grant.tokens))

    def _forfeited(self, event: e.ReservationForfeited) -> None:
        self._returned(event)
        reservation = self._book.open.get(key_of(event))
        if reservation is not None:
            self._equal("tokens reserved", event.tokens_reserved, reservation.grant.tokens)
            self._equal("cost", event.cost_ns, reservation.grant.cost_ns)

    def _corrected(self, event: e.UsageCorrected) -> None:
        operation = self._book.operations.get(event.operation)
        if operation is None or operation.charged_epoch != event.epoch:
            self._found(f"Expected a correction of the newest charge, not of epoch {event.epoch}")
        else:
            before, actual = corrected_by(event)
            self._equal("what was charged", before, operation.charged)
            paid = price(operation.prices, actual)
            self._equal("money", actual.money, paid)

    def _equal(self, what: str, said: Any, expected: Any) -> None:
        if said != expected:
            self._found(f"Expected {what} {expected} in the settlement, but it is {said}")

    def _found(self, detail: str) -> None:
        self._cursor.found(CHECK, detail)
