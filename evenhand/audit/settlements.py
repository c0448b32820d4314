"""Every reservation is closed once, in the entry that ended its attempt, and for that reason (R53).

An expired grant expires its reservation, a revoked one and an attempt without a call release it, a
known result settles it. What a settlement says was held is what the grant reserved.
"""

from collections.abc import Callable
from typing import Any

from schemas import events as e

from .book import Book
from .cursor import Cursor

CHECK = "settlements"
_CLOSED_BY = {
    "expired": "expired",
    "revoked": "released",
    "not_sent": "released",
    "known": "settled",
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
        }

    def end(self) -> None:
        """The entry is over: what ended must be closed, and what closed must have ended."""
        for (operation, epoch), reservation in self._book.touched.items():
            expected = _CLOSED_BY.get(reservation.ended or "")
            if reservation.closed != expected:
                self._cursor.index = 0
                ended, closed = reservation.ended or "going on", reservation.closed or "open"
                about = f"the reservation of {operation.hex()}, epoch {epoch}"
                self._found(f"Expected {about} {expected or 'open'} ({ended}), but it is {closed}")
        self._book.touched.clear()

    def _returned(self, event: Any) -> None:
        if (event.operation, event.epoch) not in self._book.open:
            name = type(event).__name__
            self._found(f"Expected an open reservation before {name}, epoch {event.epoch}")

    def _settled(self, event: e.ReservationSettled) -> None:
        self._returned(event)
        reservation = self._book.open.get((event.operation, event.epoch))
        if reservation is None:
            return
        grant = reservation.grant
        self._equal("domain", event.domain, grant.domain)
        self._equal("tokens reserved", event.tokens_reserved, grant.tokens)
        self._equal("cost reserved", event.cost_reserved_ns, grant.cost_ns)
        actual = grant.tokens if event.tokens_actual is None else event.tokens_actual
        self._equal("overdraft", event.overdraft_tokens, max(0, actual - grant.tokens))

    def _equal(self, what: str, said: Any, expected: Any) -> None:
        if said != expected:
            self._found(f"Expected {what} {expected} in the settlement, but it is {said}")

    def _found(self, detail: str) -> None:
        self._cursor.found(CHECK, detail)
