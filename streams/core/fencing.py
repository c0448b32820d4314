"""Whether an input speaks for the newest attempt of its operation; anything else is stale (R68)."""

from schemas.codes import Code
from schemas.inputs import (
    CheckpointReported,
    ClaimRequested,
    ResultReported,
    SendReported,
    StartRequested,
    UsageReported,
)

from .operations import AttemptRow, Named
from .state import State

Attempted = (
    CheckpointReported
    | ClaimRequested
    | ResultReported
    | SendReported
    | StartRequested
    | UsageReported
)
"""Inputs about one attempt, by the member that it was granted to."""


def named(asked: Attempted) -> Named:
    """How the input names the attempt."""
    return Named(
        tenant=asked.tenant,
        operation=asked.operation,
        incarnation=asked.incarnation,
        attempt=asked.attempt,
        epoch=asked.epoch,
        member=asked.member,
        member_epoch=asked.member_epoch,
    )


def stale(state: State, asked: Attempted) -> Code | None:
    """Why the input does not speak for the newest attempt of its operation, or None."""
    attempt = state.attempts.get(asked.operation)
    if attempt is not None and speaks_for(asked, attempt):
        return None
    row = state.operation(asked.operation)
    if row is None or row.tenant != asked.tenant:
        return Code.NOT_FOUND
    return Code.EPOCH_SUPERSEDED


def speaks_for(asked: Attempted, attempt: AttemptRow) -> bool:
    """Whether it comes from the life of the member that has this attempt, under its epoch."""
    return (
        asked.epoch == attempt.epoch
        and asked.attempt == attempt.attempt
        and asked.incarnation == attempt.incarnation
        and asked.tenant == attempt.tenant
        and asked.member == attempt.member
        and asked.member_epoch == attempt.member_epoch
    )


def not_startable(state: State, asked: ClaimRequested | StartRequested) -> Code | None:
    """Why the attempt may be neither claimed nor started, or None; guards in contract order."""
    code = stale(state, asked)
    if code is not None:
        return code
    attempt, row = state.attempts[asked.operation], state.operation(asked.operation)
    assert row is not None
    if attempt.accepted_ms is not None:
        return Code.START_REFUSED
    if state.now_ms >= row.deadline_ms:
        return Code.DEADLINE_PASSED
    if state.now_ms >= attempt.claim_by_ms:
        return Code.START_REFUSED
    return None
