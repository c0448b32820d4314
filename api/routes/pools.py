"""Processes over HTTP as members of pools: join, give a sign of life, hear, leave."""

import secrets
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Response, status

from api.auth import Principal
from api.door import ADoor, AMember, Asked
from api.prefer import WaitMs
from api.problems import Refused, instant
from api.speaking import PENDING, own, refusal, say
from api.streaming import EVENT_STREAM, read, stream
from api.turns import tenant_of
from projections.queries import Queries
from schemas import events as e
from schemas import inputs as i
from schemas import member_bodies as m
from schemas.codes import Code
from schemas.ids import SELF_POOL, MemberEpoch, OperationId, PoolId, TenantId, member_of_key
from schemas.topics import Topic
from schemas.units import Millis

HEARTBEAT_MS_MAX = 1_000
"""A third of the time to live that cells start with."""
HEARTBEATS_PER_LEASE = 3

router = APIRouter(tags=["members"])

Name = Annotated[str, Path(max_length=200, description="Full name of the member.")]


def _joins_for(asker: Principal, asked: Queries, body: m.Join) -> TenantId | None:
    """A process in pool `self` works for one tenant alone, a worker's for all of its pools."""
    if body.pool == SELF_POOL:
        return tenant_of(asker, asked, body.tenant)
    if not asker.works_for(body.pool):
        raise Refused(Code.FORBIDDEN, f"Expected a key whose processes may join pool {body.pool}")
    return None


@router.post(
    "/members", status_code=status.HTTP_201_CREATED, response_model=m.Joined, responses=PENDING
)
async def join_pool(
    asker: AMember, asked: Asked, door: ADoor, body: m.Join, wait_ms: WaitMs, response: Response
) -> m.Joined | Response:
    """Join a pool as a new life of a process; the same `member_epoch` again is answered again."""
    tenant = _joins_for(asker, asked, body)
    word = i.JoinRequested(
        member=member_of_key(asker.key_id, body.member or secrets.token_hex(8)),
        member_epoch=MemberEpoch(body.member_epoch or secrets.token_hex(8)),
        pool=PoolId(body.pool),
        places=body.places,
        tenant=tenant,
    )
    decided = await say(door, Topic.MEMBERS, word, wait_ms)
    refused, slot = decided.find(e.JoinRefused), decided.find(e.MemberSlotGranted)
    if refused is not None:
        raise refusal(refused.code)
    if slot is None or not decided.told:
        return decided.pending
    response.headers["Location"] = f"/v1/members/{slot.member}"
    return m.Joined(
        member=slot.member,
        member_epoch=slot.member_epoch,
        pool=slot.pool,
        places=slot.places,
        lease_ms=slot.lease_ms,
        heartbeat_ms=_heartbeat_ms(slot.lease_ms),
        join_by=instant(slot.join_by_ms),
        position=str(decided.told[-1].position),
    )


def _heartbeat_ms(lease_ms: int | None) -> int:
    if lease_ms is None:
        return HEARTBEAT_MS_MAX
    return max(1, min(HEARTBEAT_MS_MAX, lease_ms // HEARTBEATS_PER_LEASE))


@router.post("/members/{member}:heartbeat", response_model=m.Beaten, responses=PENDING)
async def send_heartbeat(
    asker: AMember, door: ADoor, member: Name, body: m.Heartbeat, wait_ms: WaitMs
) -> m.Beaten | Response:
    """A sign of life that renews the leases it names; 412 if the process must join again."""
    word = i.HeartbeatReported(
        member=own(asker, member),
        member_epoch=MemberEpoch(body.member_epoch),
        leases=tuple(
            i.LeaseName(operation=OperationId(bytes.fromhex(one.operation)), epoch=one.epoch)
            for one in body.leases
        ),
        sent_ms=None if body.sent_ms is None else Millis(body.sent_ms),
    )
    decided = await say(door, Topic.MEMBERS, word, wait_ms)
    if decided.told is None:
        return decided.pending
    over = decided.find(e.JoinRefused)
    if over is not None:
        raise refusal(over.code, "Expected the newest life of the member, but it has ended")
    renewed, offered = decided.find(e.LeasesRenewed), decided.find(e.PlacesOffered)
    return m.Beaten(
        member=member,
        leases_expire_at=None if renewed is None else instant(renewed.expires_ms),
        refused=[
            m.RefusedLease(operation=one.operation.hex(), epoch=one.epoch, code=one.code)
            for _, one in decided.told
            if isinstance(one, e.RenewRefused)
        ],
        owner_time_ms=None if offered is None else offered.time_ms,
    )


@router.delete("/members/{member}", status_code=status.HTTP_204_NO_CONTENT)
async def leave_pool(
    asker: AMember,
    asked: Asked,
    door: ADoor,
    member: Name,
    wait_ms: WaitMs,
    member_epoch: Annotated[
        str | None, Query(max_length=200, description="Which life leaves; without it the newest.")
    ] = None,
) -> None:
    """Take no more grants; what was started is finished. Repeats are harmless."""
    epoch = member_epoch or _newest_life(asked, own(asker, member))
    if epoch is not None:
        word = i.LeaveAnnounced(member=own(asker, member), member_epoch=MemberEpoch(epoch))
        await say(door, Topic.MEMBERS, word, wait_ms)


def _newest_life(asked: Queries, member: str) -> str | None:
    row = asked.members().get(member)
    return None if row is None else row.member_epoch


@router.get(
    "/members/{member}/deliveries",
    response_model=m.Deliveries,
    responses={200: {"content": {EVENT_STREAM: {"schema": {"type": "string"}}}}},
)
async def read_deliveries(
    asker: AMember,
    door: ADoor,
    member: Name,
    wait_ms: WaitMs,
    after: Annotated[str | None, Query(description="`next` of the last answer.")] = None,
    last_event_id: Annotated[str | None, Header(description="As `after`.")] = None,
    accept: Annotated[str | None, Header(include_in_schema=False)] = None,
) -> Any:
    """What the member must know, each event once, in order: a long poll, or server-sent events.

    Without a position it begins now. 410 when the position is older than what is kept.
    """
    begin = last_event_id or after
    if accept is not None and EVENT_STREAM in accept:
        return await stream(door.views, own(asker, member), begin)
    return await read(door.views, own(asker, member), begin, wait_ms or 0)
