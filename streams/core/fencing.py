"""Whether an input speaks for the newest attempt of its operation; anything else is stale (R68)."""

from schemas.codes import Code
from schemas.events import GrantIssued
from schemas.inputs import (
    CheckpointReported,
    ClaimRequested,
    ResultReported,
    SendReported,
    StartRequested,
    UsageReported,
)

from .operations import AttemptRow, Named
from .pools import NOBODY
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


def named(asked: Attempted | GrantIssued) -> Named:
    """How the input, or the grant itself, names the attempt."""
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
        _same_attempt(asked, attempt)
        and asked.member == attempt.member
        and asked.member_epoch == attempt.member_epoch
    )


def _same_attempt(asked: Attempted, attempt: AttemptRow) -> bool:
    return (
        asked.epoch == attempt.epoch
        and asked.attempt == attempt.attempt
        and asked.incarnation == attempt.incarnation
        and asked.tenant == attempt.tenant
    )


def _of_another(state: State, asked: ClaimRequested | StartRequested) -> Code | None:
    """Who is not named by the grant may take it in an open pool, if nobody was first (R170)."""
    attempt = state.attempts.get(asked.operation)
    if attempt is None or not _same_attempt(asked, attempt):
        return Code.EPOCH_SUPERSEDED
    if attempt.member != NOBODY:
        held = attempt.lease_ms is not None and isinstance(asked, ClaimRequested)
        is_open = state.config.is_open(state.pool_of(asked.operation))
        return Code.CLAIM_HELD if held or is_open else Code.EPOCH_SUPERSEDED
    member = state.pools.current(asked.member, asked.member_epoch)
    if member is None or member.pool != state.pool_of(asked.operation):
        return Code.EPOCH_SUPERSEDED
    return None if state.pools.free_places(asked.member) > 0 else Code.POOL_FULL


def not_startable(state: State, asked: ClaimRequested | StartRequested) -> Code | None:
    """Why the attempt may be neither claimed nor started, or None; guards in contract order."""
    code = stale(state, asked)
    if code is Code.EPOCH_SUPERSEDED:
        code = _of_another(state, asked)
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
