"""The life of a member: join, heartbeat, leave, silence; what happens to its unstarted grants."""

from collections.abc import Iterable, Sequence
from typing import assert_never

from schemas.codes import Code
from schemas.events import (
    Event,
    GrantRevoked,
    HeartbeatRecorded,
    JoinRefused,
    MemberActivated,
    MemberDrainRequested,
    MemberLost,
    MemberRestored,
    MemberSlotGranted,
    MemberSlotReturned,
    MemberSuspected,
    ReservationReleased,
)
from schemas.ids import SELF_POOL, MemberEpoch, MemberId, OperationId, PoolId
from schemas.inputs import HeartbeatReported, JoinRequested, LeaveAnnounced
from schemas.units import Millis

from .limits import PLACES_MAX
from .operations import AttemptRow
from .outcomes import Unreadable
from .pools import MemberRow, Standing, place_of
from .shape import valid_name
from .state import State
from .timers import Kind


def join(state: State, asked: JoinRequested) -> Sequence[Event] | Unreadable:
    """A member slot, if the pool has one; a new life of a member takes over its old slot (R116)."""
    if not all(valid_name(n) for n in (asked.member, asked.member_epoch, asked.pool)):
        return Unreadable(Code.INVALID_FIELD, "Expected printable names, but one is not")
    code = _join_refusal(state, asked)
    if code is not None:
        return [JoinRefused(member=asked.member, member_epoch=asked.member_epoch, code=code)]
    known = state.pools.members.get(asked.member)
    events: list[Event] = []
    places, join_by_ms = asked.places, Millis(state.now_ms + state.bounds.join_by_ms)
    if known is not None and known.member_epoch == asked.member_epoch:
        places, join_by_ms = known.places, known.due_ms  # the same life asks again: as before
    elif known is not None:
        events += _revoke(state, asked.member, known.member_epoch, "member_lost")
    events.append(
        MemberSlotGranted(
            member=asked.member,
            member_epoch=asked.member_epoch,
            pool=asked.pool,
            places=places,
            tenant=asked.tenant,
            join_by_ms=join_by_ms,
            lease_ms=state.config.lease_ms(asked.pool),
        )
    )
    return events


def _join_refusal(state: State, asked: JoinRequested) -> Code | None:
    pool, pools = state.config.pools.get(asked.pool), state.pools
    if asked.pool == SELF_POOL:
        if asked.tenant is None or not valid_name(asked.tenant):
            return Code.INVALID_FIELD
        members_max, places_max = state.bounds.self_members_max, PLACES_MAX
    elif pool is None:
        return Code.UNKNOWN_POOL
    elif asked.tenant is not None:
        return Code.INVALID_FIELD
    else:
        members_max, places_max = pool.members_max, pool.places_max
    if not 0 < asked.places <= places_max:
        return Code.INVALID_FIELD
    known = pools.members.get(asked.member)
    if known is not None and known.member_epoch == asked.member_epoch:
        # The same life asks again: the same answer, unless its life is over.
        same = (known.pool, known.tenant) == (asked.pool, asked.tenant)
        return None if same and known.standing is not Standing.LOST else Code.EPOCH_SUPERSEDED
    if pools.is_over(asked.member, asked.member_epoch):
        return Code.EPOCH_SUPERSEDED
    if known is not None and known.tenant != asked.tenant:
        return Code.FORBIDDEN
    already = known is not None and known.pool == asked.pool
    if pools.taken(asked.pool, asked.tenant) >= members_max and not already:
        return Code.POOL_FULL
    return None


def heartbeat(state: State, asked: HeartbeatReported) -> Sequence[Event]:
    """A sign of life counts for the newest life only; any other process must join again."""
    member, member_epoch = asked.member, asked.member_epoch
    row = state.pools.current(member, member_epoch)
    if row is None:
        return [JoinRefused(member=member, member_epoch=member_epoch, code=Code.EPOCH_SUPERSEDED)]
    match row.standing:
        case Standing.JOINING:
            return [MemberActivated(member=member, member_epoch=member_epoch)]
        case Standing.SUSPECT:
            return [MemberRestored(member=member, member_epoch=member_epoch)]
        case _:
            return [HeartbeatRecorded(member=member, member_epoch=member_epoch)]


def leave(state: State, asked: LeaveAnnounced) -> Sequence[Event]:
    """No more grants; what it has not started goes back, what it started it finishes."""
    member, member_epoch = asked.member, asked.member_epoch
    row = state.pools.current(member, member_epoch)
    if row is None or row.draining:
        return []
    revoked = _revoke(state, member, member_epoch, "member_left")
    draining = MemberDrainRequested(member=member, member_epoch=member_epoch, reason="left")
    return [*revoked, draining, *_slot(state, member, member_epoch, (), "left")]


def due(state: State, member: MemberId) -> Sequence[Event]:
    """The member has been silent for too long: suspect after one time to live, lost after two."""
    row = state.pools.members[member]
    member_epoch = row.member_epoch
    match row.standing:
        case Standing.JOINING:
            # An earlier life may still run what it started: then the slot waits for that.
            lost = MemberLost(member=member, member_epoch=member_epoch)
            return _slot(state, member, member_epoch, (), "join_by") or [lost]
        case Standing.SUSPECT:
            revoked = _revoke(state, member, member_epoch, "member_lost")
            lost = MemberLost(member=member, member_epoch=member_epoch)
            return [*revoked, lost, *_slot(state, member, member_epoch, (), "lost")]
        case _:
            return [MemberSuspected(member=member, member_epoch=member_epoch)]


def after_end(state: State, attempt: AttemptRow, ended: Iterable[OperationId]) -> Sequence[Event]:
    """The member slot of a lost or leaving member returns with its last attempt (R117).

    That may be one of an earlier life, whose slot the newest life took over.
    """
    row = state.pools.members.get(attempt.member)
    if row is None or (row.standing is not Standing.LOST and not row.draining):
        return []
    reason = "lost" if row.standing is Standing.LOST else "left"
    return _slot(state, attempt.member, row.member_epoch, ended, reason)


def _revoke(state: State, member: MemberId, member_epoch: MemberEpoch, reason: str) -> list[Event]:
    events: list[Event] = []
    for operation in _unstarted(state, member, member_epoch):
        name = state.attempts[operation].named(operation)
        events.append(GrantRevoked(**name, reason=reason))
        events.append(ReservationReleased(**name, reason=reason))
    return events


def _unstarted(state: State, member: MemberId, member_epoch: MemberEpoch) -> list[OperationId]:
    held = state.pools.held_by(member, member_epoch)
    return [one for one in held if state.attempts[one].accepted_ms is None]


def _slot(
    state: State,
    member: MemberId,
    member_epoch: MemberEpoch,
    ended: Iterable[OperationId],
    reason: str,
) -> Sequence[Event]:
    """Return the slot if, besides what ends in this decision, no life of it holds a start."""
    gone = {*ended, *_unstarted(state, member, member_epoch)}
    if any(one not in gone for one in state.pools.held_in_any_life(member)):
        return []
    return [MemberSlotReturned(member=member, member_epoch=member_epoch, reason=reason)]


# -- folds --------------------------------------------------------------------------------------


Lived = (
    HeartbeatRecorded
    | MemberSlotGranted
    | MemberActivated
    | MemberRestored
    | MemberSuspected
    | MemberDrainRequested
    | MemberLost
    | MemberSlotReturned
)
"""What changes a member."""


def fold(state: State, event: Lived) -> None:
    """Remember one step of a member's life."""
    match event:
        case HeartbeatRecorded() | MemberActivated() | MemberRestored():
            _seen(state, event.member)
        case MemberSlotGranted():
            _slot_granted(state, event)
        case MemberSuspected():
            _suspected(state, event.member)
        case MemberDrainRequested():
            _drained(state, event.member)
        case MemberLost():
            _lost(state, event.member)
        case MemberSlotReturned():
            _slot_returned(state, event.member)
        case _:
            assert_never(event)


def _slot_granted(state: State, event: MemberSlotGranted) -> None:
    """A new life, or the same one again."""
    pools = state.pools
    known = pools.members.get(event.member)
    if known is not None:
        if known.member_epoch == event.member_epoch:
            return
        _disarm(state, event.member, known)
        pools.end_life(event.member, known.member_epoch)
        pools.take_slot(known.pool, known.tenant, -1)
    pools.take_slot(event.pool, event.tenant, +1)
    row = MemberRow(
        member_epoch=event.member_epoch,
        pool=event.pool,
        places=event.places,
        tenant=event.tenant,
        standing=Standing.JOINING,
        due_ms=event.join_by_ms,
    )
    _arm(state, event.member, row)


def _seen(state: State, member: MemberId) -> None:
    """Alive: its silence is counted from now on."""
    row = state.pools.members[member]
    _disarm(state, member, row)
    was = row.standing
    row.offered_epoch = 0
    row.standing = Standing.DRAINING if row.draining else Standing.ACTIVE
    row.due_ms = Millis(state.now_ms + state.bounds.member_ttl_ms)
    _arm(state, member, row)
    if row.standing is not was:
        state.touch_waiting()


def _suspected(state: State, member: MemberId) -> None:
    """No new grants until it is seen again."""
    row = state.pools.members[member]
    _disarm(state, member, row)
    row.standing = Standing.SUSPECT
    row.due_ms = Millis(state.now_ms + state.bounds.member_ttl_ms)
    _arm(state, member, row)


def _drained(state: State, member: MemberId) -> None:
    """No new grants any more."""
    row = state.pools.members[member]
    row.draining = True
    if row.standing is not Standing.SUSPECT:
        row.standing = Standing.DRAINING
    state.pools.put(member, row)
    _end_saving(state, place_of(row.pool, member, row.tenant))


def _lost(state: State, member: MemberId) -> None:
    """This life is over; its slot stays while something it started is not resolved."""
    row = state.pools.members[member]
    _disarm(state, member, row)
    row.standing = Standing.LOST
    state.pools.put(member, row)
    _end_saving(state, place_of(row.pool, member, row.tenant))


def _slot_returned(state: State, member: MemberId) -> None:
    """Gone."""
    row = state.pools.members[member]
    _disarm(state, member, row)
    state.pools.remove(member)
    state.pools.take_slot(row.pool, row.tenant, -1)
    _end_saving(state, place_of(row.pool, member, row.tenant))


def _end_saving(state: State, place: str) -> None:
    """What nobody is left to run holds nobody back (R28), and saves again when somebody comes."""
    pool = state.config.pools.get(PoolId(place))
    is_open = pool is not None and pool.unclaimed_max is not None
    saved = [one for one in state.config.domains.values() if one.row.saves_at(place)]
    if not saved or is_open or state.pools.is_served(place):
        return
    for domain in saved:
        domain.row.saver = 0
        state.put_domain(domain)
        state.touch(domain.name)


def _arm(state: State, member: MemberId, row: MemberRow) -> None:
    state.timers.set(row.due_ms, Kind.MEMBER, member.encode())
    state.pools.put(member, row)


def _disarm(state: State, member: MemberId, row: MemberRow) -> None:
    state.timers.unset(row.due_ms, Kind.MEMBER, member.encode())
