"""How each provider fares: outcomes by class, what followed from them, and its pauses."""

from typing import Any, NamedTuple

import msgspec

from projections.keys import join
from projections.projection import Projection, Seen
from schemas import events as e


class Saver(NamedTuple):
    """The head whose whole cost is kept free, while it is as it was when it began to save."""

    operation: bytes
    tenant: str
    lane: str
    skips: int
    since_ms: int
    incarnation: int
    epoch: int
    tenant_version: int
    """Of the tenant's configuration: another one ends saving."""


class Domain(msgspec.Struct, array_like=True):
    """One budget domain; counts only grow."""

    outcomes: dict[str, int] = {}
    """Results by class, and attempts whose outcome became `unknown` (R139)."""
    reconciled: dict[str, int] = {}
    """Unknown outcomes that became known or bounded, by source; `forfeited` for none."""
    retries: dict[str, int] = {}
    """By cause."""
    dead: dict[str, int] = {}
    """Dead letters by reason."""
    reserve_taken: dict[str, int] = {}
    """Grants in lane bulk that took of the reserve, owed by the floor, by tenant."""
    reserve_held: dict[str, int] = {}
    """How often it was recorded that only the reserve held bulk back, by dimension."""
    pause_cause: str | None = None
    paused_until_ms: int | None = None
    """No grants before then; None beside a cause: until the domain is configured again."""
    saver: Saver | None = None
    """Who began to save last."""

    def is_paused(self, now_ms: int) -> bool:
        """Whether nothing is granted, because of what the provider said."""
        over = self.paused_until_ms is not None and self.paused_until_ms <= now_ms
        return self.pause_cause is not None and not over


def _by_domain(seen: Seen) -> bytes | None:
    event = seen.event
    if isinstance(event, e.ConfigActivated):
        return join(event.name) if event.domain is not None else None
    if isinstance(event, e.GrantIssued):
        return join(event.domain) if event.by_floor else None
    if isinstance(event, e.OperationDeferred):
        return join(event.domain) if event.held_by == "reserve" else None
    if isinstance(event, e.CooldownSet):
        return join(event.domain)
    known = seen.reserved or seen.operation
    assert known is not None, f"Expected to know the domain of {event}"
    return join(known.domain)


def _bump(counts: dict[str, int], name: str) -> None:
    counts[name] = counts.get(name, 0) + 1


def _apply(row: Domain, seen: Seen) -> Domain:
    match event := seen.event:
        case e.ConfigActivated():
            row.pause_cause = row.paused_until_ms = row.saver = None
        case e.CooldownSet():
            row.pause_cause, row.paused_until_ms = event.cause, event.until_ms
        case e.SavingStarted():
            row.saver = _saver(event, seen)
        case e.OperationParked():
            if row.saver is not None and row.saver.operation == event.operation:
                row.saver = None
        case _:
            _count(row, event)
    return row


def _saver(event: e.SavingStarted, seen: Seen) -> Saver:
    assert seen.operation is not None, f"Expected an operation for {event}"
    return Saver(
        operation=event.operation,
        tenant=event.tenant,
        lane=event.lane,
        skips=event.skips,
        since_ms=seen.time_ms,
        incarnation=seen.operation.incarnation,
        epoch=seen.operation.epoch,
        tenant_version=seen.config.tenant_version(event.tenant),
    )


def _count(row: Domain, event: Any) -> None:
    match event:
        case e.ResultRecorded():
            _bump(row.outcomes, event.outcome)
        case e.GrantIssued():
            _bump(row.reserve_taken, event.tenant)
        case e.OperationDeferred():
            _bump(row.reserve_held, event.dimension)
        case e.OutcomeMarkedUnknown():
            _bump(row.outcomes, "unknown")
        case e.OutcomeReconciled():
            _bump(row.reconciled, event.source)
        case e.ReservationForfeited():
            _bump(row.reconciled, "forfeited")
        case e.RetryScheduled():
            _bump(row.retries, event.cause)
        case e.OperationDeadLettered():
            _bump(row.dead, event.reason)
        case _:
            raise AssertionError(f"Expected an event of a domain, got {event}")


DOMAINS = Projection(
    name="domain",
    number=15,
    version=3,
    row=Domain,
    wants=(
        e.ConfigActivated,
        e.CooldownSet,
        e.ResultRecorded,
        e.GrantIssued,
        e.OperationDeferred,
        e.OperationParked,
        e.SavingStarted,
        e.OutcomeMarkedUnknown,
        e.OutcomeReconciled,
        e.ReservationForfeited,
        e.RetryScheduled,
        e.OperationDeadLettered,
    ),
    key=_by_domain,
    initial=Domain,
    apply=_apply,
)
