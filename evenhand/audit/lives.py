"""Every operation goes only the ways that the state machine has (requirements C1)."""

from collections.abc import Callable
from typing import Any

from schemas import events as e

from .book import Book
from .cursor import Cursor
from .records import (
    DEAD,
    GRANTED,
    LEASED,
    PARKED,
    STARTED,
    UNKNOWN,
    UNKNOWN_CLOSED,
    WAITING,
)

CHECK = "lives"

_FROM: dict[type, frozenset[str]] = {
    e.OperationParked: frozenset({WAITING, PARKED}),
    e.OperationUnparked: frozenset({PARKED}),
    e.OperationExpired: frozenset({WAITING, PARKED}),
    e.OperationCancelled: frozenset({WAITING, PARKED}),
    e.GrantIssued: frozenset({WAITING}),
    e.GrantExpired: frozenset({GRANTED, LEASED}),
    e.GrantRevoked: frozenset({GRANTED, LEASED}),
    e.LeaseClaimed: frozenset({GRANTED}),
    e.LeaseExpired: frozenset({LEASED, STARTED}),
    e.StartAccepted: frozenset({LEASED}),
    e.SendObserved: frozenset({STARTED, UNKNOWN}),
    e.CancelSignalled: frozenset({STARTED, UNKNOWN}),
    e.CheckpointRecorded: frozenset({STARTED}),
    # In the last two an unknown attempt is still the newest, while another one is due.
    e.ResultRecorded: frozenset({STARTED, UNKNOWN, WAITING, PARKED}),
    e.OutcomeMarkedUnknown: frozenset({STARTED}),
    e.OperatorActionNeeded: frozenset({UNKNOWN}),
    e.RetryScheduled: frozenset({WAITING, UNKNOWN}),
    e.OperationDeadLettered: frozenset({WAITING}),
    e.ManualRetryAccepted: frozenset({DEAD, UNKNOWN_CLOSED}),
}
"""From which states an event may lead on; the others concern no living operation."""


class Lives:
    """Looks at each event beside the state that its operation has before it."""

    def __init__(self, cursor: Cursor, book: Book) -> None:
        self._cursor = cursor
        self._book = book
        self._sequence = -1

    def handlers(self) -> dict[type, Callable[[Any], None]]:
        """What to call for which event."""
        return {
            **dict.fromkeys(_FROM, self._moves),
            e.OperationAdmitted: self._admitted,
            e.OperationExpired: self._expired,
            e.OperationUnparked: self._unparked,
        }

    def _moves(self, event: Any) -> None:
        name = type(event).__name__
        operation = self._book.operations.get(event.operation)
        if operation is None:
            self._found(f"Expected {event.operation.hex()} admitted before {name}")
            return
        allowed = _FROM[type(event)]
        if operation.state not in allowed:
            states = " or ".join(sorted(allowed))
            about = f"{event.operation.hex()} {states} before {name}"
            self._found(f"Expected {about}, but it is {operation.state}")
        if event.tenant != operation.queue[0]:
            self._found(f"Expected {name} of {operation.queue[0]}, but it names {event.tenant}")
        incarnation = getattr(event, "incarnation", operation.incarnation)
        if incarnation != operation.incarnation:
            self._found(f"Expected incarnation {operation.incarnation}, but it is {incarnation}")

    def _admitted(self, event: e.OperationAdmitted) -> None:
        if event.sequence <= self._sequence:
            self._found(f"Expected a sequence above {self._sequence}, but it is {event.sequence}")
        self._sequence = max(self._sequence, event.sequence)
        if event.deadline_ms <= self._cursor.time_ms:
            self._found(
                f"Expected a deadline after {self._cursor.time_ms}, not {event.deadline_ms}"
            )

    def _expired(self, event: e.OperationExpired) -> None:
        self._moves(event)
        operation = self._book.operations.get(event.operation)
        early = operation is not None and self._cursor.time_ms < operation.deadline_ms
        if early and event.reason == "deadline":
            self._found(f"Expected {event.operation.hex()} to live until its deadline")

    def _unparked(self, event: e.OperationUnparked) -> None:
        self._moves(event)
        operation = self._book.operations.get(event.operation)
        not_before_ms = None if operation is None else operation.not_before_ms
        if not_before_ms is not None and self._cursor.time_ms < not_before_ms:
            self._found(f"Expected {event.operation.hex()} to wait until {not_before_ms}")

    def _found(self, detail: str) -> None:
        self._cursor.found(CHECK, detail)
