"""How an attempt ends: a known result settles it, an unstarted grant expires or is revoked."""

import hashlib
from collections.abc import Sequence

import msgspec

from schemas.codes import Code
from schemas.events import (
    Event,
    GrantExpired,
    GrantRevoked,
    OperationCancelled,
    OperationExpired,
    ReservationExpired,
    ReservationReleased,
    ReservationSettled,
    ResultRecorded,
    ResultRefusedStale,
)
from schemas.ids import OperationId
from schemas.inputs import ResultReported
from schemas.phase import Phase
from schemas.units import Millis, Tokens

from . import membership
from .budgets import call_cost, give_back, settle, settled_cost_ns
from .limits import NOT_SENT_MAX, RESULT_DIGEST_BYTES, TOKENS_MAX
from .operations import AttemptRow, OperationRow
from .outcomes import Unreadable
from .starts import named, observe, stale
from .state import State
from .tables import Table
from .timers import Kind

NOT_SENT = "not_sent"
ENDS = {
    "success": Phase.SUCCEEDED,
    "terminal": Phase.FAILED,
    "policy_denied": Phase.FAILED,
    "cancelled": Phase.CANCELLED,
}
"""What each known outcome makes of the operation."""


def result(state: State, asked: ResultReported) -> Sequence[Event] | Unreadable:
    """Record an outcome and close its reservation in the same entry; stale ones are evidence."""
    if asked.outcome not in ENDS and asked.outcome != NOT_SENT:
        return Unreadable(
            Code.UNKNOWN_OUTCOME_CLASS, f"Expected a known outcome, but got {asked.outcome!r:.40}"
        )
    prompt_tokens, output_tokens = _tokens(asked.prompt_tokens), _tokens(asked.output_tokens)
    code = stale(state, asked)
    if code is None and state.attempts[asked.operation].accepted_ms is None:
        code = Code.START_REFUSED
    if code is not None:
        evidence = ResultRefusedStale(
            **named(asked),
            code=code,
            outcome=asked.outcome,
            prompt_tokens=prompt_tokens,
            output_tokens=output_tokens,
        )
        return _second(state, evidence, _short(state, asked.result_ref))
    attempt, row = state.attempts[asked.operation], state.operation(asked.operation)
    assert row is not None
    name = named(asked)
    recorded = ResultRecorded(
        **name,
        outcome=asked.outcome,
        late=state.now_ms >= row.deadline_ms,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        result_ref=_short(state, asked.result_ref),
        error=_short(state, asked.error),
    )
    if asked.outcome == NOT_SENT:
        released = ReservationReleased(**name, reason=NOT_SENT)
        events = [recorded, released, *_after_return(state, asked.operation, row, not_sent=1)]
    else:
        used = _used(attempt, prompt_tokens, output_tokens)
        events = [
            *observe(state, attempt, name, asked.send_delay_ms),
            recorded,
            _settled(state, asked.operation, attempt, used),
        ]
    return [*events, *membership.after_end(state, attempt, [asked.operation])]


def _second(state: State, evidence: ResultRefusedStale, result_ref: str | None) -> Sequence[Event]:
    """A result after the recorded one of the same attempt: a repeat, or a conflict (R53)."""
    row = state.operation(evidence.operation)
    if row is None or not row.result_digest or evidence.code != Code.EPOCH_SUPERSEDED:
        return [evidence]
    if (evidence.incarnation, evidence.epoch) != (row.incarnation, row.result_epoch):
        return [evidence]
    if _said(evidence, result_ref) == row.result_digest:
        return []
    conflict = msgspec.structs.replace(evidence, code=Code.SETTLEMENT_CONFLICT)
    return [conflict]


def _said(told: ResultRecorded | ResultRefusedStale, result_ref: str | None) -> bytes:
    """Who says what about an attempt, without the prose, in a few bytes."""
    said = (
        told.member,
        told.member_epoch,
        told.outcome,
        told.prompt_tokens,
        told.output_tokens,
        result_ref,
    )
    return hashlib.sha256(msgspec.json.encode(said)).digest()[:RESULT_DIGEST_BYTES]


def _tokens(reported: Tokens | None) -> Tokens | None:
    """A broken figure is no figure: the reservation is then charged as it was made (F20)."""
    return reported if reported is not None and 0 <= reported <= TOKENS_MAX else None


def _used(attempt: AttemptRow, prompt: Tokens | None, output: Tokens | None) -> Tokens | None:
    """Tokens used; None if unknown. Half a figure counts when it alone is above the reservation."""
    least = Tokens((prompt or 0) + (output or 0))
    known = prompt is not None and output is not None
    return least if known or least > attempt.tokens else None


def _short(state: State, text: str | None) -> str | None:
    """A reference or reason that is too long is left out; the slot and its usage settle anyway."""
    longest = state.bounds.reference_bytes_max
    return None if text is None or len(text.encode()) > longest else text


def _settled(
    state: State, operation: OperationId, attempt: AttemptRow, used: Tokens | None
) -> ReservationSettled:
    held_ms = Millis(state.now_ms - attempt.granted_ms)
    return ReservationSettled(
        **attempt.named(operation),
        domain=attempt.domain,
        tokens_reserved=attempt.tokens,
        tokens_actual=used,
        overdraft_tokens=Tokens(0 if used is None else max(0, used - attempt.tokens)),
        held_ms=held_ms,
        cost_reserved_ns=attempt.cost_ns,
        cost_ns=settled_cost_ns(
            state.config.domains[attempt.domain].dimensions(),
            call_cost(attempt.tokens),
            tokens_actual=used,
            hold_ms=held_ms,
        ),
    )


def claim_by_due(state: State, operation: OperationId) -> Sequence[Event]:
    """An unstarted grant ends at its claim-by; the work waits again, or its deadline has come."""
    attempt, row = state.attempts[operation], state.operation(operation)
    assert row is not None
    name = attempt.named(operation)
    return [
        GrantExpired(**name),
        ReservationExpired(**name),
        *_after_return(state, operation, row),
        *membership.after_end(state, attempt, [operation]),
    ]


def deadline_due(state: State, operation: OperationId) -> Sequence[Event]:
    """Waiting or parked work whose deadline has come."""
    row = state.operation(operation)
    assert row is not None
    return [_expired(operation, row)]


def _after_return(
    state: State, operation: OperationId, row: OperationRow, *, not_sent: int = 0
) -> Sequence[Event]:
    """What becomes of work that came back without a call (WAITING+ in requirements C1)."""
    if row.cancel_reason is not None:
        return [
            OperationCancelled(
                tenant=row.tenant, operation=operation, reason=row.cancel_reason, member=row.member
            )
        ]
    if state.now_ms >= row.deadline_ms:
        return [_expired(operation, row)]
    if row.not_sent + not_sent >= NOT_SENT_MAX:
        return [_expired(operation, row, reason=NOT_SENT)]
    return []


def _expired(
    operation: OperationId, row: OperationRow, reason: str = "deadline"
) -> OperationExpired:
    return OperationExpired(
        tenant=row.tenant, operation=operation, reason=reason, member=row.member
    )


# -- folds --------------------------------------------------------------------------------------


def grant_ended(state: State, event: GrantExpired | GrantRevoked) -> None:
    """Unstarted: the place is free and the work waits at its old sequence."""
    row, attempt = state.operation(event.operation), state.attempts[event.operation]
    assert row is not None
    state.timers.unset(attempt.claim_by_ms, Kind.CLAIM_BY, event.operation)
    state.vacate(event.operation, attempt)
    state.wait(event.operation, row)


def recorded(state: State, event: ResultRecorded) -> None:
    """The end of the call is known: the place is free."""
    row, attempt = state.operation(event.operation), state.attempts[event.operation]
    assert row is not None
    state.vacate(event.operation, attempt)
    row.result_epoch, row.result_digest = event.epoch, _said(event, event.result_ref)
    if event.outcome == NOT_SENT:
        row.not_sent += 1
        state.wait(event.operation, row)
        return
    phase = ENDS[event.outcome]
    if row.cancel_reason is not None and phase is not Phase.SUCCEEDED:
        phase = Phase.CANCELLED
    state.finish(event.operation, row, phase)


def returned(state: State, event: ReservationReleased | ReservationExpired) -> None:
    """The reservation ended unused: every window and the counter get it back."""
    attempt = _close(state, event.operation)
    give_back(state.held(attempt), state.clocking)
    lane, counter = state.counted(attempt)
    lane.correct(counter, -attempt.cost_ns, weight=attempt.weight, lift=attempt.lift)


def settled(state: State, event: ReservationSettled) -> None:
    """The reservation is closed by what the call really took."""
    attempt = _close(state, event.operation)
    domain = state.config.domains[attempt.domain]
    settle(
        state.held(attempt),
        tokens_actual=event.tokens_actual,
        now_ms=state.now_ms,
        send_within_ms=attempt.send_within_ms,
        clocking=state.clocking,
    )
    lane, counter = state.counted(attempt)
    lane.correct(
        counter,
        event.cost_ns - event.cost_reserved_ns,
        weight=attempt.weight,
        lift=attempt.lift,
    )
    lane.settled_hold(counter, event.held_ms, domain.config.hold_initial_ms)


def _close(state: State, operation: OperationId) -> AttemptRow:
    attempt = state.attempts.pop(operation)
    state.rows.delete(Table.ATTEMPT, operation)
    state.touch(attempt.domain)
    return attempt
