"""What a member says about the end of an attempt, and what follows from each kind of it.

    said                         of a started attempt           of an unknown one
    success, terminal, ...       recorded, settled, over        the same, after OutcomeReconciled
    retryable                    recorded, settled; again, or dead
    throttled and its like       recorded, settled; waits again, and so does the whole domain
    not_sent                     recorded, released; waits again
    unknown                      UNKNOWN                        nothing new

Once time has proved the end of an unknown one, what it used corrects its charge.
What an attempt says that is no longer the newest is evidence, and closes only its own hold (R83).
"""

import hashlib
from collections.abc import Sequence

import msgspec

from schemas.codes import Code
from schemas.events import (
    Event,
    OutcomeReconciled,
    ReservationReleased,
    ResultRecorded,
    ResultRefusedStale,
)
from schemas.inputs import ResultReported
from schemas.phase import Phase
from schemas.units import Tokens

from . import membership, retries, uncertain, unknowns, waiting
from .corrections import correction
from .costs import Used, priced
from .fencing import named, speaks_for, stale
from .holds import HoldKey
from .limits import RESULT_DIGEST_BYTES, TOKENS_MAX
from .operations import AttemptRow, OperationRow
from .outcomes import Unreadable
from .settlement import NOT_SENT, after_return, settlement, told
from .shape import reference
from .starts import observe
from .state import State

ENDS = {
    "success": Phase.SUCCEEDED,
    "terminal": Phase.FAILED,
    "policy_denied": Phase.FAILED,
    "cancelled": Phase.CANCELLED,
}
"""What each known outcome makes of the operation."""
RETRYABLE, UNKNOWN = "retryable", "unknown"
REFUSED = frozenset(("throttled", "quota_exhausted", "reauthentication_required"))
"""The provider did not take the call: no attempt is counted, and its domain pauses."""
OUTCOMES = frozenset((*ENDS, *REFUSED, NOT_SENT, RETRYABLE, UNKNOWN))
"""Closed: any other is quarantined (R77)."""


def result(state: State, asked: ResultReported) -> Sequence[Event] | Unreadable:
    """Record an outcome and close its reservation in the same entry; stale ones are evidence."""
    if asked.outcome not in OUTCOMES:
        return Unreadable(
            Code.UNKNOWN_OUTCOME_CLASS, f"Expected a known outcome, but got {asked.outcome!r:.40}"
        )
    code = stale(state, asked)
    if code is not None:
        return _of_no_newest(state, asked, code)
    attempt = state.attempts[asked.operation]
    if attempt.accepted_ms is None:
        return [_evidence(asked, Code.NOT_STARTED)]
    if attempt.uncertain is None:
        events = _of_started(state, asked, attempt)
        return [*events, *membership.after_end(state, attempt, [asked.operation])]
    if asked.outcome == UNKNOWN:
        return []
    return [_reconciled(asked), *_known(state, asked, attempt)]


def _of_started(state: State, asked: ResultReported, attempt: AttemptRow) -> Sequence[Event]:
    if asked.outcome == NOT_SENT:
        return _known(state, asked, attempt)
    observed = observe(state, attempt, named(asked), asked.send_delay_ms)
    if asked.outcome == UNKNOWN:
        error = reference(state.bounds, asked.error)
        marked = unknowns.mark(state, asked.operation, attempt, cause="reported", error=error)
        return [*observed, *marked]
    return [*observed, *_known(state, asked, attempt)]


def _known(state: State, asked: ResultReported, attempt: AttemptRow) -> Sequence[Event]:
    """It ended, and this is how: the result, its reservation, and what the operation does then."""
    operation, row = asked.operation, state.operation(asked.operation)
    assert row is not None
    recorded = _recorded(state, asked, row)
    if asked.outcome == NOT_SENT:
        released = ReservationReleased(**named(asked), reason=NOT_SENT)
        closed: list[Event] = [released] if attempt.is_open else []
        return [recorded, *closed, *after_return(state, operation, row, not_sent=1)]
    used = _used(asked, attempt)
    if attempt.is_open:
        closed = [settlement(state, operation, attempt, used)]
    else:
        closed = [*correction(named(asked), row, used)]
    if asked.outcome == RETRYABLE:
        return [recorded, *closed, *retries.after_failure(state, operation, row)]
    if asked.outcome in REFUSED:
        paused = retries.cooldown(state, row.domain, asked.outcome, asked.retry_after_ms)
        return [recorded, *closed, *paused, *retries.after_refusal(state, operation, row)]
    return [recorded, *closed]


def _used(asked: ResultReported, attempt: AttemptRow) -> Used | None:
    """What the result tells; of a call that the provider did not take only the call is spent."""
    prompt, output = _tokens(asked.prompt_tokens), _tokens(asked.output_tokens)
    used = told(attempt, attempt.prices, prompt, output)
    if used is None and asked.outcome in REFUSED:
        return priced(attempt.prices, Tokens(0), Tokens(0))
    return used


def _recorded(state: State, asked: ResultReported, row: OperationRow) -> ResultRecorded:
    prompt_tokens, output_tokens = _tokens(asked.prompt_tokens), _tokens(asked.output_tokens)
    broken = (prompt_tokens, output_tokens) != (asked.prompt_tokens, asked.output_tokens)
    return ResultRecorded(
        **named(asked),
        outcome=asked.outcome,
        late=state.now_ms >= row.deadline_ms,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        result_ref=reference(state.bounds, asked.result_ref),
        error=reference(state.bounds, asked.error),
        usage_code=Code.USAGE_OUT_OF_RANGE if broken else None,
    )


def _reconciled(asked: ResultReported) -> OutcomeReconciled:
    return OutcomeReconciled(
        **named(asked),
        source="late_result",
        verdict=asked.outcome,
        confidence="locally_measured",
        prompt_tokens=_tokens(asked.prompt_tokens),
        output_tokens=_tokens(asked.output_tokens),
    )


def _of_no_newest(state: State, asked: ResultReported, code: Code) -> Sequence[Event]:
    """A late result of an attempt that is uncertain, or over, or never was."""
    row = state.operation(asked.operation)
    held = state.holds.get(HoldKey(asked.operation, asked.incarnation, asked.epoch))
    if held is None or not speaks_for(asked, held):
        return _second(state, _evidence(asked, code), reference(state.bounds, asked.result_ref))
    if asked.outcome == UNKNOWN:
        return []
    if row is not None and row.is_newest(held) and row.phase in (Phase.WAITING, Phase.PARKED):
        if asked.outcome in ENDS:  # before the next attempt is granted it is still the newest
            return [_reconciled(asked), *_known(state, asked, held)]
        return [_reconciled(asked), *_hold_closed(state, asked, held)]
    return [_evidence(asked, code), *_hold_closed(state, asked, held)]


def _hold_closed(state: State, asked: ResultReported, held: AttemptRow) -> Sequence[Event]:
    if asked.outcome == NOT_SENT:
        return [ReservationReleased(**named(asked), reason=NOT_SENT)]
    return [settlement(state, asked.operation, held, _used(asked, held))]


def _evidence(asked: ResultReported, code: Code) -> ResultRefusedStale:
    return ResultRefusedStale(
        **named(asked),
        code=code,
        outcome=asked.outcome,
        prompt_tokens=_tokens(asked.prompt_tokens),
        output_tokens=_tokens(asked.output_tokens),
    )


def _second(state: State, evidence: ResultRefusedStale, result_ref: str | None) -> Sequence[Event]:
    """A result after the recorded one of the same attempt: a repeat, or a conflict (R53)."""
    row = state.operation(evidence.operation)
    if row is None or evidence.code != Code.EPOCH_SUPERSEDED:
        return [evidence]
    if evidence.incarnation != row.incarnation:
        return [evidence]
    if 0 < evidence.epoch == row.more.not_executed_epoch and evidence.outcome != NOT_SENT:
        code = Code.CONTRADICTS_RECONCILIATION
        return [msgspec.structs.replace(evidence, code=code)]
    if not row.result_digest or evidence.epoch != row.result_epoch:
        return [evidence]
    if _said(evidence, result_ref) == row.result_digest:
        return []
    return [msgspec.structs.replace(evidence, code=Code.SETTLEMENT_CONFLICT)]


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


# -- folds --------------------------------------------------------------------------------------


def recorded(state: State, event: ResultRecorded) -> None:
    """How the call ended is known: the place is free."""
    operation = event.operation
    row, attempt = state.operation(operation), state.attempts.get(operation)
    assert row is not None
    if attempt is not None and attempt.uncertain is None:
        state.vacate(operation, attempt)
    elif attempt is not None:
        uncertain.resolve(state, operation, attempt)
    else:
        waiting.leave_queue(state, operation, row)  # it waited for another attempt
    row.ended(event, _said(event, event.result_ref))
    phase = ENDS.get(event.outcome)
    if phase is None:
        retries.recorded(row, event.outcome)
        waiting.wait(state, operation, row)
        return
    if row.cancel_reason is not None and phase is not Phase.SUCCEEDED:
        phase = Phase.CANCELLED
    state.finish(operation, row, phase)
