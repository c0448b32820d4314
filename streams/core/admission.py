"""From a submission to its one answer: admitted, rejected, duplicate or conflict.

The guards stand in a fixed order, which is part of the contract: names, the key's history, what the
operation asks for, its deadline, what can never fit, and last the caps, smallest scope first.
"""

from collections.abc import Sequence
from itertools import islice

from schemas.codes import Code
from schemas.digest import payload_digest
from schemas.events import (
    DuplicateObserved,
    Event,
    OperationAdmitted,
    OperationCancelled,
    OperationForgotten,
    OperationRejected,
    SubmissionConflicted,
)
from schemas.ids import OperationId, operation_id
from schemas.inputs import OperationSubmitted
from schemas.phase import Phase
from schemas.units import Millis, Tokens

from . import shape, waiting
from .budgets import earliest_ms, never_fits
from .costs import cost_ns
from .limits import HINT_QUEUES_MAX
from .operations import Extra, OperationRow
from .outcomes import Refusal
from .rows import CancelRow, cancel_key
from .state import State
from .tables import Table
from .timers import Kind


def admit(state: State, asked: OperationSubmitted) -> Sequence[Event]:
    """The one answer to a submission (R2); nothing else of the state changes on a refusal."""
    operation = operation_id(
        pool=asked.pool, tenant=asked.tenant, user=asked.user, idempotency_key=asked.idempotency_key
    )
    refusal = shape.names(asked)
    if refusal:
        return [_rejected(operation, asked, refusal)]
    known = state.operation(operation)
    if known and (known.forget_ms is None or state.now_ms < known.forget_ms):
        return [_repeat(operation, asked, known)]
    refusal = shape.content(state, asked) or shape.deadline(state, asked) or _fit(state, asked)
    refusal = refusal or _caps(state, asked)
    if refusal:
        return [_rejected(operation, asked, refusal)]
    admitted = _admitted(state, operation, asked, reuse=known is not None)
    if not state.cell.early_cancels:
        return [admitted]
    cancel: CancelRow | None = state.rows.get(Table.CANCEL, cancel_key(operation, asked.tenant))
    if cancel is None:
        return [admitted]
    cancelled = OperationCancelled(
        tenant=asked.tenant, operation=operation, reason=cancel.reason, member=asked.member
    )
    return [admitted, cancelled]


def _repeat(operation: OperationId, asked: OperationSubmitted, known: OperationRow) -> Event:
    if known.payload_digest != payload_digest(asked):
        return SubmissionConflicted(tenant=asked.tenant, operation=operation, member=asked.member)
    return DuplicateObserved(
        tenant=asked.tenant,
        operation=operation,
        state=known.phase,
        code=known.code,
        member=asked.member,
    )


def _fit(state: State, asked: OperationSubmitted) -> Refusal | None:
    windows = state.config.domains[asked.domain].levels(asked.tenant)
    never = never_fits(windows, shape.cost(state, asked))
    if never is None:
        return None
    return Refusal(
        Code.NEVER_FITS,
        f"Expected a cost within every limit, but it is above {never.level} {never.dimension}",
        binds_key=True,
        level=never.level,
        dimension=never.dimension,
    )


def _caps(state: State, asked: OperationSubmitted) -> Refusal | None:
    tenant, held_now = state.config.tenant(asked.tenant), state.waiting(asked.tenant)
    domain, cell, bounds = state.config.domains[asked.domain], state.cell, state.bounds
    size = asked.payload_bytes
    for code, count, count_max, held, held_max in (
        (
            Code.TENANT_QUEUE_FULL,
            held_now.count,
            tenant.waiting_count_max,
            held_now.bytes,
            tenant.waiting_bytes_max,
        ),
        (
            Code.DOMAIN_QUEUE_FULL,
            domain.row.count,
            domain.config.waiting_count_max,
            domain.row.bytes,
            domain.config.waiting_bytes_max,
        ),
        (
            Code.CELL_QUEUE_FULL,
            cell.waiting,
            bounds.waiting_count_max,
            cell.waiting_bytes,
            bounds.waiting_bytes_max,
        ),
    ):
        if count >= count_max:
            detail = f"Expected at most {count_max} waiting, but this would be number {count + 1}"
        elif held + size > held_max:
            detail = f"Expected at most {held_max} bytes waiting, but it would be {held + size}"
        else:
            continue
        return Refusal(code, detail, retry_at_ms=_room_ms(state, asked, code))
    return None


def _room_ms(state: State, asked: OperationSubmitted, code: Code) -> Millis | None:
    """The first known instant at which work leaves the full queue.

    Looks at one head: the tenant's own if its queue is full, else whose turn it is in the lane.

    Returns: None where no window tells: a call must end first, and nobody knows when.
    """
    domain = state.config.domains[asked.domain]
    lane = domain.lanes.get(asked.lane)
    if lane is None:
        return None
    if code is Code.TENANT_QUEUE_FULL:
        counter = lane.counters.get(asked.tenant)
    else:
        first = lane.first(lambda _: True)
        counter = None if first is None else first[0]
    if counter is None or not counter.queues:
        return None
    head = min(queue.head() for queue in islice(counter.queues.values(), HINT_QUEUES_MAX))
    levels = domain.levels(counter.tenant)
    fits_ms = earliest_ms(levels, domain.cost_of(head), now_ms=state.window_now_ms)
    if not fits_ms:  # it fits by now, so that a place is what it waits for; or no exit helps
        return None
    return Millis(fits_ms + state.cell.stepped_ms)


def _rejected(operation: OperationId, asked: OperationSubmitted, refusal: Refusal) -> Event:
    return OperationRejected(
        tenant=asked.tenant,
        operation=operation,
        code=refusal.code,
        detail=refusal.detail,
        binds_key=refusal.binds_key,
        payload_digest=payload_digest(asked) if refusal.binds_key else None,
        level=refusal.level,
        dimension=refusal.dimension,
        retry_at_ms=refusal.retry_at_ms,
        member=asked.member,
    )


def _admitted(
    state: State, operation: OperationId, asked: OperationSubmitted, *, reuse: bool
) -> OperationAdmitted:
    relative = asked.start_within_ms
    instants = [
        *([] if asked.deadline_ms is None else [asked.deadline_ms]),
        *([] if relative is None else [Millis(state.now_ms + relative)]),
    ]
    return OperationAdmitted(
        tenant=asked.tenant,
        operation=operation,
        incarnation=state.cell.height,
        sequence=state.cell.sequence + 1,
        reuse=reuse,
        user=asked.user,
        pool=asked.pool,
        domain=asked.domain,
        lane=asked.lane,
        tier=asked.tier,
        connection=asked.connection,
        effect=asked.effect,
        prompt_tokens=asked.prompt_tokens,
        output_tokens_max=asked.output_tokens_max or Tokens(0),
        payload_bytes=asked.payload_bytes,
        payload_ref=asked.payload_ref,
        payload_digest=payload_digest(asked),
        deadline_ms=min(instants),
        member=asked.member,
        runtime_ms=asked.runtime_ms,
        turns_max=asked.turns_max,
        tools=asked.tools,
        parent=asked.parent,
    )


def forget_due(state: State, operation: OperationId) -> Sequence[Event]:
    """The guard's horizon has passed."""
    row = state.operation(operation)
    assert row is not None
    return [OperationForgotten(tenant=row.tenant, operation=operation)]


# -- folds --------------------------------------------------------------------------------------


def admitted(state: State, event: OperationAdmitted) -> None:
    """It waits; an operation of an earlier incarnation is forgotten now."""
    _forget_earlier(state, event.operation)
    state.cell.sequence = event.sequence
    row = OperationRow(
        phase=Phase.WAITING,
        tenant=event.tenant,
        payload_digest=event.payload_digest,
        incarnation=event.incarnation,
        sequence=event.sequence,
        user=event.user,
        pool=event.pool,
        domain=event.domain,
        lane=event.lane,
        tier=event.tier,
        connection=event.connection,
        effect=event.effect,
        prompt_tokens=event.prompt_tokens,
        output_tokens_max=event.output_tokens_max,
        payload_bytes=event.payload_bytes,
        payload_ref=event.payload_ref,
        deadline_ms=event.deadline_ms,
        member=event.member,
    )
    if event.runtime_ms is not None or event.turns_max is not None or event.parent is not None:
        row.extra = Extra(
            runtime_ms=event.runtime_ms,
            turns_max=event.turns_max,
            tools=event.tools,
            parent=event.parent,
        )
    waiting.wait(state, event.operation, row)
    domain = state.config.domains[event.domain]
    lane = state.lane(event.domain, event.lane)
    hold_ms = lane.counter(event.tenant).row.hold_ms or domain.config.hold_initial_ms
    cost = cost_ns(domain.dimensions(), domain.cost_of(row), hold_ms=hold_ms)
    lane.admitted(cost)
    if cost > domain.row.cost_max_ns:
        domain.row.cost_max_ns = cost
        state.put_domain(domain)
    _count_turn(state, event)


def _count_turn(state: State, event: OperationAdmitted) -> None:
    if event.parent is not None:
        parent = state.operation(event.parent)
        assert parent is not None, "Expected a parent that was running"
        parent.extend().turns += 1
        state.put(event.parent, parent)


def rejected(state: State, event: OperationRejected) -> None:
    """A refusal for good is remembered with its key, and replayed (R188)."""
    if not event.binds_key:
        return
    _forget_earlier(state, event.operation)
    assert event.payload_digest is not None
    row = OperationRow(
        phase=Phase.REJECTED,
        tenant=event.tenant,
        payload_digest=event.payload_digest,
        incarnation=state.cell.height,
        code=event.code,
    )
    state.finish(event.operation, row, Phase.REJECTED)


def _forget_earlier(state: State, operation: OperationId) -> None:
    known = state.operation(operation)
    if known is not None:
        assert known.forget_ms is not None, f"Expected {operation.hex()} to be over"
        state.timers.unset(known.forget_ms, Kind.FORGET, operation)


def forgotten(state: State, operation: OperationId) -> None:
    """The guard's horizon has passed: the key is as good as new."""
    _forget_earlier(state, operation)
    state.rows.delete(Table.OPERATION, operation)
