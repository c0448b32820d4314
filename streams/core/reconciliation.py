"""Making an unknown outcome known: what a look-up, a usage report or an operator says of it.

Each step is an event with its source and confidence; a repeat of the same evidence says nothing,
and steps that decide nothing are bounded (R80, R81). A late result comes in by `results`.
"""

from collections.abc import Sequence

from schemas.codes import Code
from schemas.events import (
    Event,
    EvidenceRecorded,
    OutcomeReconciled,
    ReservationReleased,
)
from schemas.ids import MemberEpoch, MemberId, OperationId
from schemas.inputs import OutcomeEvidence, ReconcileRequested, UsageReported
from schemas.phase import Phase
from schemas.units import Micros, Tokens

from . import settlement, uncertain, waiting
from .by_hand import refused, unsigned
from .corrections import correction, digest, heeded
from .holds import HoldKey
from .limits import EVIDENCE_MAX
from .operations import AttemptRow, Named, OperationRow
from .outcomes import Unreadable
from .shape import reference, tokens_in_range, valid_name
from .state import State
from .unknowns import (
    ABANDONED,
    ENDED,
    NOT_EXECUTED,
    Found,
    find,
    operator_needed,
    reconciliation,
)

LOOKUP, USAGE = "provider_lookup", "usage_report"
COMPLETED, FAILED, INCONCLUSIVE = "completed", "failed", "inconclusive"
CONFIDENCES = frozenset(("provider_reported", "locally_measured", "unknown"))
_ENDS = {COMPLETED: Phase.SUCCEEDED, FAILED: Phase.FAILED}

OPEN_TO_EVIDENCE = frozenset((Phase.WAITING, Phase.PARKED, Phase.UNKNOWN, Phase.UNKNOWN_CLOSED))
"""Phases that evidence about the newest attempt may end: it is over in the others, or under way."""


def evidence(state: State, asked: OutcomeEvidence) -> Sequence[Event] | Unreadable:
    """What a reconciler found; an attempt whose outcome is known already needs none."""
    if not valid_name(asked.evidence) or asked.confidence not in CONFIDENCES:
        return Unreadable(Code.INVALID_FIELD, f"Expected a name and one of {sorted(CONFIDENCES)}")
    if asked.verdict not in (*_ENDS, NOT_EXECUTED, INCONCLUSIVE):
        return Unreadable(Code.INVALID_FIELD, f"Expected a verdict, but got {asked.verdict!r:.40}")
    if not tokens_in_range(asked.prompt_tokens, asked.output_tokens):
        return Unreadable(Code.USAGE_OUT_OF_RANGE, "Expected token counts in range")
    row = state.operation(asked.operation)
    if row is None or row.tenant != asked.tenant or row.incarnation != asked.incarnation:
        return Unreadable(Code.NOT_FOUND, "Expected an operation of the tenant")
    attempt = find(state, HoldKey(asked.operation, asked.incarnation, asked.epoch))
    if attempt is None or attempt.uncertain is None:
        return []
    recorded = attempt.uncertain.evidence
    if digest(asked.evidence) in recorded:
        return []
    found = Found(
        source=LOOKUP,
        verdict=asked.verdict,
        confidence=asked.confidence,
        evidence=asked.evidence,
        prompt_tokens=asked.prompt_tokens,
        output_tokens=asked.output_tokens,
        result_ref=reference(state.bounds, asked.result_ref),
    )
    if asked.verdict == INCONCLUSIVE:
        return [_note(attempt, asked)] if len(recorded) < EVIDENCE_MAX else []
    return resolve(state, asked.operation, attempt, found)


def usage(state: State, asked: UsageReported, attempt: AttemptRow) -> Sequence[Event]:
    """A usage report shows that the call ran."""
    found = Found(
        source=USAGE,
        verdict=COMPLETED,
        confidence="provider_reported",
        evidence=asked.evidence,
        prompt_tokens=asked.prompt_tokens,
        output_tokens=asked.output_tokens,
    )
    return resolve(state, asked.operation, attempt, found)


def _note(attempt: AttemptRow, asked: OutcomeEvidence) -> EvidenceRecorded:
    """A step that decides nothing."""
    return EvidenceRecorded(
        **attempt.named(asked.operation),
        source=LOOKUP,
        evidence=asked.evidence,
        verdict=asked.verdict,
        confidence=asked.confidence,
    )


def reconcile(state: State, asked: ReconcileRequested) -> Sequence[Event] | Unreadable:
    """What an operator says, of an unknown outcome or of one that was closed without knowing."""
    verdicts = (*_ENDS, NOT_EXECUTED, ABANDONED)
    unheard = unsigned(state.bounds, asked)
    if unheard is not None:
        return unheard
    if asked.verdict not in verdicts:
        return Unreadable(Code.INVALID_FIELD, f"Expected one of {verdicts}, but another verdict")
    if not tokens_in_range(asked.prompt_tokens, asked.output_tokens):
        return Unreadable(Code.USAGE_OUT_OF_RANGE, "Expected token counts in range")
    row = state.operation(asked.operation)
    if row is None or row.tenant != asked.tenant:
        return [refused(asked, Code.NOT_FOUND, "Expected an operation of the tenant")]
    epoch = row.epoch if asked.epoch is None else asked.epoch
    attempt = find(state, HoldKey(asked.operation, row.incarnation, epoch))
    found = Found(
        source="operator",
        verdict=asked.verdict,
        confidence="unknown",
        author=asked.author,
        reason=asked.reason,
        prompt_tokens=asked.prompt_tokens,
        output_tokens=asked.output_tokens,
        result_ref=reference(state.bounds, asked.result_ref),
    )
    if attempt is not None and attempt.uncertain is not None:
        newest = row.phase is Phase.UNKNOWN and row.is_newest(attempt)
        if asked.verdict == ABANDONED and not newest:
            detail = "Expected the newest attempt of an unknown operation to be abandoned"
            return [refused(asked, Code.NOT_UNKNOWN, detail)]
        return resolve(state, asked.operation, attempt, found)
    if row.phase is Phase.UNKNOWN_CLOSED and asked.verdict in _ENDS and epoch == row.epoch:
        return _closed_one(asked, row, found)
    return [refused(asked, Code.NOT_UNKNOWN, f"Expected an unknown outcome, but it is {row.phase}")]


def resolve(
    state: State, operation: OperationId, attempt: AttemptRow, found: Found
) -> Sequence[Event]:
    """A decisive source: the hold is closed, and the operation goes on if this was its newest."""
    row = state.operation(operation)
    assert row is not None
    events: list[Event] = [reconciliation(attempt, operation, found)]
    if found.verdict == ABANDONED:
        return [*events, operator_needed(operation, row, ABANDONED)]
    if found.verdict == NOT_EXECUTED:
        if attempt.is_open:
            events.append(ReservationReleased(**attempt.named(operation), reason=NOT_EXECUTED))
        if row.phase is Phase.UNKNOWN and row.is_newest(attempt):
            events += settlement.after_return(state, operation, row, not_sent=1)
        return events
    used = settlement.told(attempt, attempt.prices, found.prompt_tokens, found.output_tokens)
    if attempt.is_open:
        return [*events, settlement.settlement(state, operation, attempt, used)]
    evidence = (found.evidence or "") if found.source == USAGE else ""
    return [*events, *correction(attempt.named(operation), row, used, evidence=evidence)]


def _closed_one(asked: ReconcileRequested, row: OperationRow, found: Found) -> Sequence[Event]:
    """The attempt is long gone: only its epoch is known, and what it was charged."""
    name = Named(
        tenant=row.tenant,
        operation=asked.operation,
        incarnation=row.incarnation,
        attempt=row.starts,
        epoch=row.epoch,
        member=row.member or MemberId(""),
        member_epoch=MemberEpoch(""),
    )
    reconciled = OutcomeReconciled(**name, **found._asdict())
    if row.result_epoch != row.epoch:  # given back: it never ran, as far as was known
        return [reconciled]
    prices = row.more.prices
    used = settlement.told(row, prices, found.prompt_tokens, found.output_tokens)
    return [reconciled, *correction(name, row, used)]


# -- folds --------------------------------------------------------------------------------------


def noted(state: State, event: EvidenceRecorded) -> None:
    """The same evidence again says nothing."""
    attempt = find(state, HoldKey(event.operation, event.incarnation, event.epoch))
    assert attempt is not None and attempt.uncertain is not None, "Expected an uncertain attempt"  # noqa: PT018
    attempt.uncertain.evidence.append(digest(event.evidence))
    state.put_uncertain(event.operation, attempt)


def reconciled(state: State, event: OutcomeReconciled) -> None:
    """If this was its newest attempt, the operation goes on; a late result does that by itself."""
    operation, row = event.operation, state.operation(event.operation)
    if row is None or (event.incarnation, event.epoch) != (row.incarnation, row.epoch):
        return
    if event.verdict == NOT_EXECUTED:
        row.extend().not_executed_epoch = event.epoch
        state.put(operation, row)
    if event.source == USAGE and event.evidence is not None:
        heeded(row, event.evidence)
        state.put(operation, row)
    if event.source == "late_result" or row.phase not in OPEN_TO_EVIDENCE:
        return
    phase = _ENDS.get(event.verdict)
    attempt = state.attempts.get(operation)
    if event.verdict in (ENDED, ABANDONED) or (phase is None and attempt is None):
        return
    if attempt is not None:
        uncertain.resolve(state, operation, attempt)
    elif row.phase is Phase.UNKNOWN_CLOSED:
        state.unfinish(operation, row)
    else:
        waiting.leave_queue(state, operation, row)
    if phase is None:
        row.not_sent += 1
        waiting.wait(state, operation, row)
        return
    _end(state, event, row, phase)


def _end(state: State, event: OutcomeReconciled, row: OperationRow, phase: Phase) -> None:
    if row.result_epoch != row.epoch:  # a settlement that follows says what it is charged
        row.charge(Tokens(0), Tokens(0), Micros(0), row.more.prices)
        row.ended(event)
        if not event.member_epoch:  # said by a person, of an attempt that nobody remembers
            row.result_by = b""
    row.result_digest = b""
    if phase is Phase.FAILED and row.cancel_reason is not None:
        phase = Phase.CANCELLED
    state.finish(event.operation, row, phase)
