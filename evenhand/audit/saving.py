"""Saving mode: who may save, one at a time, and what a grant must leave to the saver (R36).

A head may save once it was passed over `skips_max` times, or `age_max_ms` after the first time. Of
a saver of lane bulk the audit only judges what its own lane leaves it: whether bulk is owed its
floor decides about the others.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from schemas import events as e
from schemas.ids import SELF_POOL, DomainId, OperationId
from schemas.inputs import DimensionConfig
from schemas.lanes import LANES

from .amounts import amount_waiting
from .book import Book
from .config import Config
from .cursor import Cursor
from .lanes import ABOUT_ONE
from .places import Places
from .records import WAITING

CHECK = "saving"


@dataclass(slots=True)
class _Skips:
    domain: DomainId
    tenant: str
    since_ms: int
    count: int = 0


class Saving:
    """How often heads were passed over, and who saves in each domain."""

    def __init__(self, cursor: Cursor, config: Config, book: Book, places: Places) -> None:
        self._cursor = cursor
        self._config = config
        self._book = book
        self._places = places
        self._skips: dict[OperationId, _Skips] = {}
        self._savers: dict[DomainId, OperationId] = {}

    def handlers(self) -> dict[type, Callable[[Any], None]]:
        """What to call for which event."""
        return {
            e.GrantIssued: self._granted,
            e.SavingStarted: self._started,
            e.ConfigActivated: self._configured,
        }

    def returns(self) -> dict[type, Callable[[Any], None]]:
        """What to call after an event was folded: who cannot go any more saves no longer."""
        leaves = (e.MemberDrainRequested, e.MemberLost, e.MemberSlotReturned)
        return dict.fromkeys(ABOUT_ONE, self._follow) | dict.fromkeys(leaves, self._bereft)

    def saver(self, domain: DomainId) -> OperationId | None:
        """Who saves in the domain."""
        return self._savers.get(domain)

    def kept(self, event: e.GrantIssued, level: str, dimension: DimensionConfig) -> int:
        """What the grant must leave free of a dimension for the saver."""
        saving = self.saver(event.domain)
        saver = None if saving is None else self._book.operations.get(saving)
        operation = self._book.operations.get(event.operation)
        if saver is None or operation is None or saver is operation:
            return 0
        tenant, lane = saver.queue[:2]
        if level != "domain" and tenant != event.tenant:
            return 0
        if operation.queue == saver.queue and operation.sequence < saver.sequence:
            return 0  # it came back to its place before the saver: first in, first out
        held_back = LANES.index(event.lane) >= LANES.index(lane)
        prices = self._config.domains[event.domain].prices
        return amount_waiting(saver, dimension, prices) if held_back else 0

    def _granted(self, event: e.GrantIssued) -> None:
        if event.skipped is None:
            return
        operation = self._book.operations.get(event.skipped)
        waits = operation is not None and operation.state == WAITING
        if operation is None or not waits or operation.queue[3] != event.domain:
            self._found(f"Expected {event.skipped.hex()} to wait in {event.domain}")
            return
        now_ms = self._cursor.time_ms
        new = _Skips(event.domain, operation.queue[0], now_ms)
        self._skips.setdefault(event.skipped, new).count += 1

    def _started(self, event: e.SavingStarted) -> None:
        domain, skips = self._config.domains.get(event.domain), self._skips.get(event.operation)
        if event.domain in self._savers:
            self._found(f"Expected one saver in {event.domain}, but there is another")
        if domain is None or skips is None:
            self._found("Expected a saver that was passed over")
        elif (
            skips.count < domain.skips_max
            and self._cursor.time_ms - skips.since_ms < domain.age_max_ms
        ):
            detail = f"Expected {domain.skips_max} skips or {domain.age_max_ms} ms"
            self._found(f"{detail} before it saves, but it has {skips.count}")
        if not self._is_served(event.operation):
            self._found("Expected a saver that somebody can run")
        self._savers[event.domain] = event.operation

    def _configured(self, event: e.ConfigActivated) -> None:
        """Another configuration of the domain or of the tenant ends it, and what was counted."""
        for operation_id, skips in list(self._skips.items()):
            if event.domain is not None and event.name == skips.domain:
                self._forget(operation_id)
            if event.tenant is not None and event.name == skips.tenant:
                self._forget(operation_id)

    def _follow(self, event: Any) -> None:
        operation = self._book.operations.get(event.operation)
        if operation is None or operation.state != WAITING:
            self._forget(event.operation)

    def _bereft(self, _: Any) -> None:
        """Nobody is left to run it: it ends, but what was counted stays."""
        for domain, saver in list(self._savers.items()):
            if not self._is_served(saver):
                del self._savers[domain]

    def _is_served(self, saver: OperationId) -> bool:
        operation = self._book.operations.get(saver)
        if operation is None:
            return False
        pool = operation.queue[2]
        return self._places.are_served(pool, operation.member if pool == SELF_POOL else None)

    def _forget(self, operation_id: OperationId) -> None:
        skips = self._skips.pop(operation_id, None)
        if skips is not None and self._savers.get(skips.domain) == operation_id:
            del self._savers[skips.domain]

    def _found(self, detail: str) -> None:
        self._cursor.found(CHECK, detail)
