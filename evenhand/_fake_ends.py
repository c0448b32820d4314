"""What results, evidence and operators make of an operation of the double."""

from typing import Final

from evenhand._attempt import Checkpoint, names
from evenhand._fake_rows import Row
from evenhand._outcome import Outcome
from evenhand._words import bodies, codes, events, inputs

THROTTLES_MAX: Final = 32
"""As a cell's default."""

_ENDS: Final = {
    Outcome.SUCCESS: bodies.State.SUCCEEDED,
    Outcome.TERMINAL: bodies.State.FAILED,
    Outcome.POLICY_DENIED: bodies.State.FAILED,
    Outcome.CANCELLED: bodies.State.CANCELLED,
}
Evidence = inputs.OutcomeEvidence | inputs.ReconcileRequested | inputs.UsageReported
_VERDICTS: Final = {
    "completed": bodies.State.SUCCEEDED,
    "failed": bodies.State.FAILED,
    "not_executed": bodies.State.WAITING,
    "abandoned": bodies.State.UNKNOWN_CLOSED,
}
_OUTCOMES: Final = {"completed": Outcome.SUCCESS, "failed": Outcome.TERMINAL}
OVER: Final = {
    *_ENDS.values(),
    bodies.State.EXPIRED,
    bodies.State.REJECTED,
    bodies.State.DEAD,
    bodies.State.UNKNOWN_CLOSED,
}
"""Nothing but an operator goes on from here."""


def after_result(row: Row, outcome: Outcome, attempts_max: int) -> bodies.State:
    """Where the operation is after the result of its newest attempt."""
    match outcome:
        case Outcome.NOT_SENT:
            return _again(row)
        case Outcome.RETRYABLE:
            row.failures += 1
            return _again(row) if row.failures < attempts_max else _dead(row, "ATTEMPTS_EXHAUSTED")
        case Outcome.UNKNOWN:
            row.failures += 1
            may_repeat = row.word.effect != "unsafe" and not row.cancel_requested
            left = row.failures < attempts_max
            return bodies.State.WAITING if may_repeat and left else bodies.State.UNKNOWN
        case Outcome.THROTTLED | Outcome.QUOTA_EXHAUSTED | Outcome.REAUTHENTICATION_REQUIRED:
            row.throttles += 1
            left = row.throttles <= THROTTLES_MAX
            return _again(row) if left else _dead(row, "THROTTLES_EXHAUSTED")
        case _:
            return _ENDS[outcome]


def after_evidence(row: Row, word: Evidence) -> bodies.State:
    """Where an operation is whose outcome was unknown; where it was if that is not decisive."""
    if isinstance(word, inputs.UsageReported):
        verdict, result_ref = "completed", None
    else:
        verdict, result_ref = word.verdict, word.result_ref
    if verdict in _OUTCOMES:
        row.result = inputs.ResultReported(
            **names(row.grant),
            outcome=_OUTCOMES[verdict],
            prompt_tokens=word.prompt_tokens,
            output_tokens=word.output_tokens,
            result_ref=result_ref,
        )
    found = _VERDICTS.get(verdict, row.state)
    return _again(row) if found is bodies.State.WAITING else found


def after_checkpoint(
    row: Row, word: inputs.CheckpointReported
) -> events.CheckpointRecorded | events.CheckpointRefused | None:
    """The answer to a checkpoint; None for a repeat."""
    asked = Checkpoint(word.number, word.state_ref)
    if row.state is not bodies.State.STARTED or row.epoch != word.epoch:
        code = codes.Code.EPOCH_SUPERSEDED
    elif row.checkpoint == asked:
        return None
    elif word.number != (row.checkpoint.number if row.checkpoint else 0) + 1:
        code = codes.Code.CHECKPOINT_GAP
    else:
        row.checkpoint = asked
        return events.CheckpointRecorded(
            **names(word),
            number=word.number,
            state_ref=word.state_ref,
            context_bytes=word.context_bytes,
            artifacts=word.artifacts,
        )
    return events.CheckpointRefused(**names(word), number=word.number, code=code)


def _again(row: Row) -> bodies.State:
    return bodies.State.CANCELLED if row.cancel_requested else bodies.State.WAITING


def _dead(row: Row, code: str) -> bodies.State:
    row.code = codes.Code[code]
    return bodies.State.DEAD
