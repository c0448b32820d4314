"""Leases: authority over an attempt that its holder's heartbeats renew and time alone ends.

Only the life of the process that claimed an attempt renews its lease, by a heartbeat that names it
(R66). One renewal holds for all leases of that life but those it did not name, so that a thousand
leases cost one event and one row. Expiry says nothing about the member or the call (R67).

Leases run in *lease time*: entry time less all time steps and all silences of the scheduler, so
that an outage of ours turns no running work unknown.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from schemas.codes import Code
from schemas.events import (
    CancelSignalled,
    ClaimRefused,
    Event,
    GrantExpired,
    GrantIssued,
    JoinRefused,
    LeaseClaimed,
    LeaseExpired,
    LeasesExtended,
    LeasesRenewed,
    LeasesReviewed,
    RenewRefused,
    ReservationExpired,
    RetryScheduled,
)
from schemas.ids import DomainId, MemberEpoch, MemberId, OperationId, TenantId
from schemas.inputs import ClaimRequested, HeartbeatReported, LeaseName, StartRequested
from schemas.phase import Phase
from schemas.units import Millis

from . import membership, settlement, standing, unknowns
from .fencing import named, not_startable, speaks_for
from .limits import LEASES_ENDED_MAX, RENEWALS_MAX, RENEWALS_REFUSED_MAX
from .operations import AttemptRow
from .outcomes import Unreadable
from .pools import NOBODY, LifeRow
from .state import State
from .tables import Table, pack
from .timers import Kind

RUNTIME_LIMIT = "runtime-limit"
"""Cause of the cancellation of an attempt that has run for too long."""


def ends_ms(state: State, attempt: AttemptRow) -> Millis:
    """When the attempt's lease ends, in lease time."""
    assert attempt.lease_ms is not None, "Expected an attempt with a lease"
    life = state.lives[attempt.member, attempt.member_epoch]
    return life.renewed_ms if attempt.lease_from < life.renewals else attempt.lease_ms


# -- what is asked ------------------------------------------------------------------------------


def claim(state: State, asked: ClaimRequested) -> Sequence[Event]:
    """The lease of a grant, before its start; a repeat changes nothing (C2)."""
    attempt = state.attempts.get(asked.operation)
    if attempt is not None and attempt.lease_ms is not None and speaks_for(asked, attempt):
        return []
    code = not_startable(state, asked)
    if code is not None:
        return [ClaimRefused(**named(asked), code=code)]
    return [lease(state, asked)]


def lease(state: State, asked: ClaimRequested | StartRequested | GrantIssued) -> LeaseClaimed:
    """The event that gives the member named by the grant, or the first to ask, its lease."""
    member = state.pools.members.get(asked.member)
    length_ms = state.config.lease_ms(None if member is None else member.pool)
    expires_ms = Millis(state.now_ms + length_ms)
    return LeaseClaimed(**named(asked), expires_ms=expires_ms)


def heartbeat(state: State, asked: HeartbeatReported) -> Sequence[Event] | Unreadable:
    """A sign of life, and the renewal of the leases that it names."""
    if len(asked.leases) > RENEWALS_MAX:
        return Unreadable(Code.INVALID_FIELD, f"Expected at most {RENEWALS_MAX} leases")
    alive = membership.heartbeat(state, asked)
    if isinstance(alive[0], JoinRefused):
        return alive
    renewed = _renew(state, asked) if asked.leases else []
    return [*alive, *standing.offer(state, asked), *renewed]


def _renew(state: State, asked: HeartbeatReported) -> Sequence[Event]:
    """Renew what this life holds; the rest it must let go of."""
    member, member_epoch = asked.member, asked.member_epoch
    held = state.pools.held(member, member_epoch)
    attempts, now_ms = state.attempts, state.lease_now_ms
    named_ones: set[OperationId] = set()
    refused: list[Event] = []
    for one in asked.leases:
        operation = one.operation
        attempt = attempts[operation] if operation in held else None
        if (
            attempt is not None
            and attempt.epoch == one.epoch
            and attempt.lease_ms is not None
            and ends_ms(state, attempt) > now_ms
        ):
            named_ones.add(operation)
        elif len(refused) < RENEWALS_REFUSED_MAX and not _has_just_ended(state, one):
            refused.append(
                RenewRefused(
                    member=member,
                    member_epoch=member_epoch,
                    operation=operation,
                    epoch=one.epoch,
                    code=Code.LEASE_NOT_HELD,
                )
            )
    if not named_ones:
        return refused
    unnamed = sorted(o for o in held if o not in named_ones and attempts[o].lease_ms is not None)
    length_ms = state.config.lease_ms(state.pools.members[member].pool)
    renewed = LeasesRenewed(
        member=member,
        member_epoch=member_epoch,
        expires_ms=Millis(state.now_ms + length_ms),
        unnamed=tuple(LeaseName(operation=o, epoch=attempts[o].epoch) for o in unnamed),
    )
    return [renewed, *refused]


def _has_just_ended(state: State, one: LeaseName) -> bool:
    """Its result was recorded while the heartbeat was on its way: nothing to let go of."""
    row = state.operation(one.operation)
    return row is not None and row.result_epoch == one.epoch and bool(row.result_digest)


def due(state: State, key: bytes) -> Sequence[Event]:
    """Leases of one life that have ended, and attempts that have run for too long; a bounded part.

    The timer stays due until nothing is left to say.
    """
    member, member_epoch = _parse(key)
    now_ms = state.lease_now_ms
    ended: list[tuple[OperationId, AttemptRow]] = []
    events: list[Event] = []
    for operation, attempt in _leased(state, member, member_epoch):
        if ends_ms(state, attempt) <= now_ms:
            ended.append((operation, attempt))
        elif attempt.runtime_ms is not None and attempt.runtime_ms <= now_ms:
            named = attempt.named(operation)
            events.append(CancelSignalled(**named, cause=RUNTIME_LIMIT))
        if len(ended) + len(events) == LEASES_ENDED_MAX:
            break
    spent: Counter[tuple[DomainId, TenantId]] = Counter()
    for operation, attempt in ended:
        budget = attempt.domain, attempt.tenant
        follows = _ended(state, operation, attempt, spent=spent[budget])
        spent[budget] += isinstance(follows[-1], RetryScheduled)
        events += follows
    if ended:
        last = ended[-1][1]
        events += membership.after_end(state, last, [operation for operation, _ in ended])
    return events or [LeasesReviewed(member=member, member_epoch=member_epoch)]


def _ended(
    state: State, operation: OperationId, attempt: AttemptRow, *, spent: int
) -> Sequence[Event]:
    name = attempt.named(operation)
    if attempt.accepted_ms is not None:
        expired = LeaseExpired(**name, started=True)
        marked = unknowns.mark(state, operation, attempt, cause="lease_expired", spent=spent)
        return [expired, *marked]
    row = state.operation(operation)
    assert row is not None
    return [
        LeaseExpired(**name, started=False),
        GrantExpired(**name),
        ReservationExpired(**name),
        *settlement.after_return(state, operation, row),
    ]


def _leased(
    state: State, member: MemberId, member_epoch: MemberEpoch
) -> Iterable[tuple[OperationId, AttemptRow]]:
    for operation in state.pools.held_by(member, member_epoch):
        attempt = state.attempts[operation]
        if attempt.lease_ms is not None:
            yield operation, attempt


# -- folds --------------------------------------------------------------------------------------


def claimed(state: State, event: LeaseClaimed) -> None:
    """The member holds it; of all leases of this life the first to end decides when to look."""
    attempt = state.attempts[event.operation]
    if event.expires_ms is None:
        return  # a journal from before leases
    row = state.operation(event.operation)
    assert row is not None
    if attempt.member == NOBODY:
        state.vacate(event.operation, attempt)
        attempt.member, attempt.member_epoch = event.member, event.member_epoch
        state.occupy(event.operation, attempt)
    row.phase = Phase.LEASED
    state.put(event.operation, row)
    attempt.lease_ms = Millis(event.expires_ms - state.lease_shift_ms)
    watch(state, attempt, event.expires_ms)
    attempt.lease_from = state.lives[attempt.member, attempt.member_epoch].renewals
    state.put_attempt(event.operation, attempt)


def watch(state: State, attempt: AttemptRow, at_ms: Millis) -> None:
    """Look at the leases of this life at that instant, if not before."""
    key = attempt.member, attempt.member_epoch
    life = state.lives.get(key)
    if life is None or at_ms < life.due_ms:
        state.watch_leases(key, life or LifeRow(due_ms=at_ms), at_ms)


def renewed(state: State, event: LeasesRenewed) -> None:
    """All leases of this life follow the renewal, but for the unnamed, which keep their end."""
    key = event.member, event.member_epoch
    life = state.lives[key]
    for one in event.unnamed:
        attempt = state.attempts[one.operation]
        attempt.lease_ms, attempt.lease_from = ends_ms(state, attempt), life.renewals + 1
        state.put_attempt(one.operation, attempt)
    life.renewed_ms = Millis(event.expires_ms - state.lease_shift_ms)
    life.renewals += 1
    reviewed(state, event)


def reviewed(state: State, event: LeasesRenewed | LeasesReviewed) -> None:
    """Look again when the first of them may have something to say, or never."""
    instants = []
    for _, attempt in _leased(state, event.member, event.member_epoch):
        instants.append(ends_ms(state, attempt))
        if attempt.runtime_ms is not None:
            instants.append(attempt.runtime_ms)
    key = event.member, event.member_epoch
    if instants:
        due_ms = Millis(min(instants) + state.lease_shift_ms)
        state.watch_leases(key, state.lives[key], due_ms)
    else:
        life = state.lives.pop(key)
        state.timers.unset(life.due_ms, Kind.LEASE, pack(*key))
        state.rows.delete(Table.LEASE, pack(*key))


def extended(state: State, event: LeasesExtended) -> None:
    """A silence of the scheduler counts for no lease."""
    state.cell.silent_ms = Millis(state.cell.silent_ms + event.by_ms)
    for key, life in state.lives.items():
        state.watch_leases(key, life, Millis(life.due_ms + event.by_ms))


def expired(state: State, event: LeaseExpired) -> None:
    """The holder has lost its authority; what that means for the operation follows it."""
    attempt = state.attempts[event.operation]
    attempt.lease_ms = attempt.runtime_ms = None
    state.put_attempt(event.operation, attempt)


def _parse(key: bytes) -> tuple[MemberId, MemberEpoch]:
    member, member_epoch, _ = key.decode().split("\x00")
    return MemberId(member), MemberEpoch(member_epoch)
