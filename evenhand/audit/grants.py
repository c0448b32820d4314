"""A grant reserves what was admitted, under the configuration and authority in force (R41, R49).

It also carries a fencing epoch that no grant of the operation had before (R68).
"""

from collections.abc import Callable
from typing import Any

from schemas import events as e

from .amounts import price
from .book import Book
from .config import Config
from .cursor import Cursor

CHECK = "grants"


class Grants:
    """Looks at each grant beside the admission that it follows from."""

    def __init__(self, cursor: Cursor, config: Config, book: Book) -> None:
        self._cursor = cursor
        self._config = config
        self._book = book

    def handlers(self) -> dict[type, Callable[[Any], None]]:
        """What to call for which event."""
        return {e.GrantIssued: self._granted}

    def _granted(self, event: e.GrantIssued) -> None:
        operation = self._book.operations.get(event.operation)
        if operation is None:
            return
        queue = (event.tenant, event.lane, event.pool, event.domain)
        self._equal("queue", queue, operation.queue)
        self._equal("user", event.user, operation.user)
        self._equal("deadline", event.deadline_ms, operation.deadline_ms)
        calls = 0 if operation.turns_max is not None else 1  # a run calls nobody itself (R74)
        self._equal("requests and slots", (event.requests, event.slots), (calls, calls))
        reserved = operation.reserved
        self._equal("tokens", event.tokens, reserved.tokens)
        self._equal("prompt tokens", event.prompt_tokens, reserved.input_tokens)
        progress = (event.checkpoint, event.checkpoint_ref)
        self._equal("checkpoint", progress, (operation.checkpoint, operation.checkpoint_ref))
        self._equal("authority epoch", event.authority_epoch, self._cursor.epoch)
        version = self._config.version("domain", event.domain)
        self._equal("configuration version", event.config_version, version)
        self._equal("weight", event.weight, self._config.tenant(event.tenant).weight)
        if event.epoch <= operation.epoch:
            self._found(f"Expected an epoch above {operation.epoch}, but it is {event.epoch}")
        if event.attempt <= operation.started_attempt:
            started = operation.started_attempt
            self._found(f"Expected an attempt after {started}, which has started")
        if event.deadline_ms <= self._cursor.time_ms:
            self._found(f"Expected no grant at or after the deadline {event.deadline_ms}")
        domain = self._config.domains.get(event.domain)
        if domain is not None:
            claim_by = min(self._cursor.time_ms + domain.claim_by_ms, event.deadline_ms)
            self._equal("claim-by", event.claim_by_ms, claim_by)
            self._equal("send-within", event.send_within_ms, domain.send_within_ms)
            money = calls * price(domain.prices, reserved)
            self._equal("money", event.money_micros, money)

    def _equal(self, what: str, granted: Any, expected: Any) -> None:
        if granted != expected:
            self._found(f"Expected {what} {expected} in the grant, but it is {granted}")

    def _found(self, detail: str) -> None:
        self._cursor.found(CHECK, detail)
