"""Recorded progress of a started attempt: any member can go on from the last checkpoint (R75)."""

from collections.abc import Sequence

from schemas.codes import Code
from schemas.events import CheckpointRecorded, CheckpointRefused, Event
from schemas.inputs import CheckpointReported

from . import leases
from .fencing import named, stale
from .operations import OperationRow
from .state import State


def checkpoint(state: State, asked: CheckpointReported) -> Sequence[Event]:
    """Record it if it follows the last one; the same one again changes nothing."""
    code = _refusal(state, asked)
    if code is not None:
        return [CheckpointRefused(**named(asked), number=asked.number, code=code)]
    row = state.operation(asked.operation)
    assert row is not None
    if _is_repeat(asked, row):
        return []
    return [
        CheckpointRecorded(
            **named(asked),
            number=asked.number,
            state_ref=asked.state_ref,
            context_bytes=asked.context_bytes,
            artifacts=asked.artifacts,
        )
    ]


def _refusal(state: State, asked: CheckpointReported) -> Code | None:
    """Guards in contract order: who speaks, what it may still do, the number, the sizes."""
    code = stale(state, asked)
    if code is not None:
        return code
    attempt, row = state.attempts[asked.operation], state.operation(asked.operation)
    assert row is not None
    if attempt.accepted_ms is None:
        return Code.NOT_STARTED
    if attempt.uncertain is not None or leases.ends_ms(state, attempt) <= state.lease_now_ms:
        return Code.LEASE_NOT_HELD
    if _is_repeat(asked, row):
        return None
    if asked.number != row.more.checkpoint + 1:
        return Code.CHECKPOINT_GAP
    return _too_large(state, asked, row)


def _too_large(state: State, asked: CheckpointReported, row: OperationRow) -> Code | None:
    limits = state.config.tenant(row.tenant)
    reference_bytes = len((asked.state_ref or "").encode())
    if reference_bytes > state.bounds.reference_bytes_max:
        return Code.REFERENCE_TOO_LONG
    sizes = (asked.context_bytes or 0, asked.artifacts or 0)
    if min(sizes) < 0:
        return Code.INVALID_FIELD
    if sizes[0] > limits.context_bytes_max:
        return Code.CONTEXT_TOO_LARGE
    return Code.TOO_MANY_ARTIFACTS if sizes[1] > limits.artifacts_max else None


def _is_repeat(asked: CheckpointReported, row: OperationRow) -> bool:
    last = row.more.checkpoint, row.more.checkpoint_ref
    return asked.number > 0 and last == (asked.number, asked.state_ref)


def recorded(state: State, event: CheckpointRecorded) -> None:
    """The next grant of the operation names it."""
    row = state.operation(event.operation)
    assert row is not None
    extra = row.extend()
    extra.checkpoint, extra.checkpoint_ref = event.number, event.state_ref
    state.put(event.operation, row)
