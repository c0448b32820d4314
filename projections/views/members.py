"""Which processes are members of which pool, whether they live, and what they hold."""

import msgspec

from projections.keys import join
from projections.projection import Projection, Seen
from schemas import events as e
from schemas.phase import Phase

JOINING, ACTIVE, SUSPECT, DRAINING, LEFT = "joining", "active", "suspect", "draining", "left"


class Member(msgspec.Struct, array_like=True):
    """One member; a lost one stays until the last of its attempts has ended."""

    member_epoch: str = ""
    pool: str = ""
    tenant: str | None = None
    state: str = LEFT
    places: int = 0
    granted: int = 0
    leased: int = 0
    started: int = 0
    seen_ms: int = 0


_LIFE = (
    e.MemberSlotGranted,
    e.MemberActivated,
    e.HeartbeatRecorded,
    e.MemberSuspected,
    e.MemberRestored,
    e.MemberDrainRequested,
    e.MemberLost,
    e.MemberSlotReturned,
)
_WORK = (
    e.GrantIssued,
    e.GrantExpired,
    e.GrantRevoked,
    e.LeaseClaimed,
    e.StartAccepted,
    e.ResultRecorded,
    e.OutcomeMarkedUnknown,
)


def _by_member(seen: Seen) -> bytes | None:
    return join(seen.event.member) if seen.event.member else None


def _apply(row: Member, seen: Seen) -> Member | None:
    match event := seen.event:
        case e.MemberSlotGranted(member_epoch=row.member_epoch) if row.state != LEFT:
            pass  # the same life asked again
        case e.MemberSlotGranted():
            row.member_epoch, row.pool, row.tenant = event.member_epoch, event.pool, event.tenant
            row.places, row.state, row.seen_ms = event.places, JOINING, seen.time_ms
        case e.MemberActivated() | e.MemberRestored():
            row.state, row.seen_ms = ACTIVE, seen.time_ms
        case e.HeartbeatRecorded():
            row.seen_ms = seen.time_ms
        case e.MemberSuspected():
            row.state = SUSPECT
        case e.MemberDrainRequested():
            row.state = DRAINING
        case e.MemberLost() | e.MemberSlotReturned():
            row.state = LEFT
        case _:
            _move(row, seen)
    return None if row.state == LEFT and not (row.granted or row.leased or row.started) else row


def _move(row: Member, seen: Seen) -> None:
    event, operation = seen.event, seen.operation
    was_its = operation is not None and operation.holder == event.member
    row.granted += (seen.after is Phase.GRANTED) - (seen.before is Phase.GRANTED and was_its)
    row.leased += (seen.after is Phase.LEASED) - (seen.before is Phase.LEASED)
    row.started += (seen.after is Phase.STARTED) - (seen.before is Phase.STARTED)


MEMBERS = Projection(
    name="member",
    number=9,
    version=2,
    row=Member,
    wants=(*_LIFE, *_WORK),
    key=_by_member,
    initial=Member,
    apply=_apply,
)
