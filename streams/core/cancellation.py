"""Cancellation in every state: before its submission, waiting, granted, started, over."""

from collections.abc import Sequence

from schemas.codes import Code
from schemas.events import (
    CancellationForgotten,
    CancellationRemembered,
    CancelSignalled,
    Event,
    GrantRevoked,
    OperationCancelled,
    ReservationReleased,
)
from schemas.ids import OPERATION_ID_BYTES, OperationId, TenantId
from schemas.inputs import CancellationRequested
from schemas.phase import Phase
from schemas.units import Millis

from . import waiting
from .limits import EARLY_CANCELS_MAX
from .operations import OperationRow
from .outcomes import Unreadable
from .rows import CancelRow, cancel_key
from .shape import valid_name
from .state import State
from .tables import Table
from .timers import Kind


def cancel(state: State, asked: CancellationRequested) -> Sequence[Event] | Unreadable:
    """What a cancellation does; repeats change nothing (R20).

    An unknown operation may still be on its way, since cancellations are taken before
    submissions: it is remembered for a while.
    """
    tenant, operation = asked.tenant, asked.operation
    if not valid_name(tenant) or len(asked.reason.encode()) > state.bounds.reference_bytes_max:
        return Unreadable(Code.INVALID_FIELD, "Expected a tenant and a short reason")
    row = state.operation(operation)
    if row is None:
        return _remember(state, asked)
    if row.tenant != tenant:
        return Unreadable(Code.NOT_FOUND, "Expected an operation of the tenant")
    cancelled = cancelled_work(operation, row, asked.reason)
    match row.phase:
        case Phase.WAITING | Phase.PARKED:
            return [cancelled]
        case Phase.GRANTED | Phase.LEASED:
            attempt = state.attempts[operation]
            named = attempt.named(operation)
            return [
                GrantRevoked(**named, reason="cancelled"),
                ReservationReleased(**named, reason="cancelled"),
                cancelled,
            ]
        case Phase.STARTED | Phase.UNKNOWN if row.cancel_reason is None:
            attempt = state.attempts[operation]
            return [CancelSignalled(**attempt.named(operation), cause=asked.reason)]
        case _:
            return []


def cancelled_work(operation: OperationId, row: OperationRow, reason: str) -> OperationCancelled:
    """The event that ends waiting work which nobody wants any more."""
    return OperationCancelled(
        tenant=row.tenant, operation=operation, reason=reason, member=row.member
    )


def _remember(state: State, asked: CancellationRequested) -> Sequence[Event] | Unreadable:
    if state.rows.get(Table.CANCEL, cancel_key(asked.operation, asked.tenant)) is not None:
        return []
    if state.cell.early_cancels >= EARLY_CANCELS_MAX:
        return Unreadable(Code.CELL_QUEUE_FULL, "Too many cancellations without an operation")
    until_ms = Millis(state.now_ms + state.bounds.early_cancel_ms)
    return [
        CancellationRemembered(
            tenant=asked.tenant,
            operation=asked.operation,
            reason=asked.reason,
            until_ms=until_ms,
        )
    ]


def forget_due(key: bytes) -> Sequence[Event]:
    """No submission came in time."""
    operation = OperationId(key[:OPERATION_ID_BYTES])
    tenant = TenantId(key[OPERATION_ID_BYTES:-1].decode())
    return [CancellationForgotten(tenant=tenant, operation=operation)]


# -- folds --------------------------------------------------------------------------------------


def remembered(state: State, event: CancellationRemembered) -> None:
    """Keep it until its submission comes or its time is over."""
    key = cancel_key(event.operation, event.tenant)
    state.rows.put(Table.CANCEL, key, CancelRow(event.reason, event.until_ms))
    state.timers.set(event.until_ms, Kind.EARLY_CANCEL, key)
    state.cell.early_cancels += 1


def forgotten(state: State, event: CancellationForgotten | OperationCancelled) -> None:
    """Keep it no longer."""
    key = cancel_key(event.operation, event.tenant)
    row: CancelRow | None = state.rows.get(Table.CANCEL, key)
    if row is not None:
        state.rows.delete(Table.CANCEL, key)
        state.timers.unset(row.until_ms, Kind.EARLY_CANCEL, key)
        state.cell.early_cancels -= 1


def cancelled(state: State, event: OperationCancelled) -> None:
    """Over, and out of its queue: what was granted or not sent has gone back to it before."""
    row = state.operation(event.operation)
    assert row is not None
    waiting.leave_queue(state, event.operation, row)
    forgotten(state, event)
    state.finish(event.operation, row, Phase.CANCELLED)


def signalled(state: State, event: CancelSignalled) -> None:
    """Flagged; the slot stays until the end of the call is known."""
    row = state.operation(event.operation)
    assert row is not None
    row.cancel_reason = event.cause
    state.put(event.operation, row)
    attempt = state.attempts[event.operation]
    if attempt.runtime_ms is not None:  # asked once is enough
        attempt.runtime_ms = None
        state.put_attempt(event.operation, attempt)
