"""Unknown outcomes: started, not known to have ended or how; made known by evidence, or bounded.

    started ──lease ended, or the member cannot tell──► UNKNOWN, slot and tokens stay held
      late result, provider look-up, usage report, operator ──► resolved, as each source says
      the provider's longest call has passed ──► the slot is back, the outcome stays unknown
      the hold's bound has passed ──► forfeited; UNKNOWN_CLOSED, an operator is called
      read-only and keyed work is tried again meanwhile; its old hold stays until one of these

Each step is an event, bounded in number, and a repeat changes nothing (R80, R81). A result comes in
by `results`; this is everything else.
"""

from collections.abc import Sequence
from typing import NamedTuple

from schemas.events import (
    Event,
    OperatorActionNeeded,
    OutcomeMarkedUnknown,
    OutcomeReconciled,
    ReservationForfeited,
)
from schemas.ids import OperationId
from schemas.phase import Phase
from schemas.units import Millis, Tokens

from . import retries, settlement, uncertain
from .holds import HoldKey, key_of, parse_hold
from .operations import AttemptRow, OperationRow, Uncertain
from .state import State

NOT_EXECUTED, ABANDONED, ENDED = "not_executed", "abandoned", "ended"
"""Verdicts that say nothing about success: it never ran, nobody will know, the call is over."""


class Found(NamedTuple):
    """What one source says about one attempt."""

    source: str
    verdict: str
    confidence: str
    evidence: str | None = None
    author: str | None = None
    reason: str | None = None
    prompt_tokens: Tokens | None = None
    output_tokens: Tokens | None = None
    result_ref: str | None = None


def reconciliation(attempt: AttemptRow, operation: OperationId, found: Found) -> OutcomeReconciled:
    """The event that says what is known of the attempt now, and from where."""
    return OutcomeReconciled(**attempt.named(operation), **found._asdict())


def mark(
    state: State,
    operation: OperationId,
    attempt: AttemptRow,
    *,
    cause: str,
    error: str | None = None,
    spent: int = 0,
) -> Sequence[Event]:
    """The outcome is unknown from here on; work that may be repeated safely is tried again.

    `spent` counts the retries of its tenant and domain that the same decision has scheduled before.
    """
    assert attempt.accepted_ms is not None, "Expected a started attempt"
    row = state.operation(operation)
    assert row is not None
    config = state.config.domains[attempt.domain].config
    started_ms = attempt.accepted_ms + state.cell.stepped_ms
    marked = OutcomeMarkedUnknown(
        **attempt.named(operation),
        domain=attempt.domain,
        cause=cause,
        hold_until_ms=Millis(max(state.now_ms, started_ms + config.unknown_hold_ms)),
        error=error,
    )
    return [marked, *retries.after_unknown(state, operation, row, spent=spent)]


def hold_due(state: State, key: bytes) -> Sequence[Event]:
    """Time alone has something to say about an uncertain reservation: proof, or the bound."""
    named = parse_hold(key)
    operation = named.operation
    attempt, row = find(state, named), state.operation(operation)
    assert attempt is not None and attempt.uncertain is not None, "Expected a hold"  # noqa: PT018
    if attempt.uncertain.proof_ms is not None:
        found = Found("elapsed_maximum", ENDED, "locally_measured")
        return [
            reconciliation(attempt, operation, found),
            settlement.settlement(state, operation, attempt, None),
        ]
    events: list[Event] = []
    if attempt.is_open:
        events.append(
            ReservationForfeited(
                **attempt.named(operation),
                domain=attempt.domain,
                tokens_reserved=attempt.tokens,
                held_ms=Millis(state.now_ms - attempt.granted_ms),
                cost_ns=attempt.cost_ns,
            )
        )
    if row is not None and row.phase is Phase.UNKNOWN and row.is_newest(attempt):
        events.append(operator_needed(operation, row, "hold_bound"))
    return events


def find(state: State, named: HoldKey) -> AttemptRow | None:
    """The newest attempt, or an older one that is still uncertain."""
    newest = state.attempts.get(named.operation)
    if newest is not None and key_of(named.operation, newest) == named:
        return newest
    return state.holds.get(named)


def operator_needed(operation: OperationId, row: OperationRow, reason: str) -> OperatorActionNeeded:
    """The event that calls for a person, and closes the operation."""
    return OperatorActionNeeded(
        tenant=row.tenant,
        operation=operation,
        incarnation=row.incarnation,
        epoch=row.epoch,
        reason=reason,
        member=row.member,
    )


# -- folds --------------------------------------------------------------------------------------


def marked(state: State, event: OutcomeMarkedUnknown) -> None:
    """The place is free, the reservation is not."""
    operation = event.operation
    row, attempt = state.operation(operation), state.attempts[operation]
    assert row is not None and attempt.accepted_ms is not None, "Expected a start"  # noqa: PT018
    state.vacate(operation, attempt)
    row.phase = Phase.UNKNOWN
    state.put(operation, row)
    attempt.lease_ms = attempt.runtime_ms = None
    call_ms_max = state.config.domains[attempt.domain].config.call_ms_max
    proof_ms: Millis | None = None
    if call_ms_max is not None and attempt.latest_arrival_ms is not None:
        arrived_ms = attempt.latest_arrival_ms + state.cell.stepped_ms
        proof_ms = Millis(arrived_ms + call_ms_max)
        if proof_ms >= event.hold_until_ms:
            proof_ms = None
    attempt.uncertain = Uncertain(hold_until_ms=event.hold_until_ms, proof_ms=proof_ms)
    state.put_attempt(operation, attempt)
    state.holds.watch(operation, attempt)


def closed(state: State, event: OperatorActionNeeded) -> None:
    """Over as far as the cell can tell; what is still held stays so until its bound."""
    operation, row = event.operation, state.operation(event.operation)
    assert row is not None
    uncertain.set_aside(state, operation)
    state.finish(operation, row, Phase.UNKNOWN_CLOSED)
