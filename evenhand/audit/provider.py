"""The provider's own record beside the journal: no call without an accepted start (R43).

One JSON object a line, as the provider wrote it when the call arrived; `idempotency_key` is the
operation's id and incarnation. For each of them the provider may have seen at most as many calls
as starts were accepted, less those that their holder reported as not sent.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from schemas import events as e
from schemas.ids import provider_key
from schemas.journal import Position

from .cursor import Cursor

CHECK = "provider"


class RecordUnreadable(Exception):
    """A line of the provider's record is no JSON object: nothing was compared with it."""


class Provider:
    """Calls that may have gone out, by the key that the provider sees."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._allowed: Counter[str] = Counter()
        self._started: dict[str, Position] = {}

    def handlers(self) -> dict[type, Callable[[Any], None]]:
        """What to call for which event."""
        return {e.StartAccepted: self._accepted, e.ReservationReleased: self._released}

    def finish(self, record: Iterable[str]) -> None:
        """Compare with the provider's record.

        Raises:
            RecordUnreadable: names the line.
        """
        seen: Counter[str] = Counter()
        for number, line in enumerate(record, 1):
            call = _call(line, number)
            key = call.get("idempotency_key") or ""
            seen[key] += 1
            if call.get("over"):
                self._found(f"Expected no call over {call['over']}, but line {number} is one", key)
            if seen[key] == self._allowed[key] + 1:
                allowed = f"{self._allowed[key]} calls of {key or 'nobody'}"
                self._found(f"Expected at most {allowed}, but line {number} is one more", key)

    def _accepted(self, event: e.StartAccepted) -> None:
        key = provider_key(event.operation, event.incarnation)
        self._allowed[key] += 1
        self._started[key] = self._cursor.position

    def _released(self, event: e.ReservationReleased) -> None:
        if event.reason == "not_sent":
            self._allowed[provider_key(event.operation, event.incarnation)] -= 1

    def _found(self, detail: str, key: str) -> None:
        self._cursor.found(CHECK, detail, self._started.get(key))


def _call(line: str, number: int) -> dict[str, Any]:
    try:
        call = json.loads(line)
    except ValueError:
        call = None
    if not isinstance(call, dict):
        raise RecordUnreadable(f"Expected a JSON object in line {number} of the provider's record")
    return call
