"""What the double refuses at once: the guards of a submission, in a cell's order."""

from collections.abc import Mapping, Sequence

from evenhand._fake_rows import Bounds, Row
from evenhand._words import bodies, codes, events, ids, inputs
from evenhand.errors import (
    DeadlineMissing,
    EvenhandError,
    OutputCeilingMissing,
    ParentNotRunning,
    TenantQueueFull,
    TurnsExhausted,
    UnknownDomain,
    UnknownPool,
)


def refusal(
    word: inputs.OperationSubmitted,
    rows: Mapping[ids.OperationId, Row],
    waiting: Sequence[Row],
    bounds: Bounds,
) -> type[EvenhandError] | None:
    """What refuses a new operation; None if nothing does."""
    if word.pool not in (*bounds.pools, ids.SELF_POOL):
        return UnknownPool
    if word.domain not in bounds.domains:
        return UnknownDomain
    if word.output_tokens_max is None and word.turns_max is None:
        return OutputCeilingMissing
    if word.start_within_ms is None and word.deadline_ms is None:
        return DeadlineMissing
    if word.parent is not None:
        run = rows.get(word.parent)
        if run is None or run.state is not bodies.State.STARTED or run.word.tenant != word.tenant:
            return ParentNotRunning
        if run.turns >= (run.word.turns_max or 0):
            return TurnsExhausted
    if sum(row.word.tenant == word.tenant for row in waiting) >= bounds.waiting_max:
        return TenantQueueFull
    return None


def rejected(
    word: inputs.OperationSubmitted, operation: ids.OperationId, error: EvenhandError
) -> events.OperationRejected:
    """What its submitter hears of a refusal."""
    return events.OperationRejected(
        tenant=word.tenant,
        operation=operation,
        code=error.code or codes.Code.INTERNAL,
        detail=str(error),
        binds_key=not error.keep_key,
        member=word.member,
    )
