"""Reservations: permission for one call, renewed, settled, or released if nothing was sent."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Response, status

from api.auth import Principal
from api.door import ADoor, Asked, ASubmitter
from api.idempotency import read_key
from api.prefer import WaitMs
from api.problems import instant, not_found
from api.reserving import Reserving, cancel, leave
from api.settling import reported, settle
from api.speaking import PENDING, granted, own, refusal, say
from projections.queries import Queries
from schemas import bodies as b
from schemas import events as e
from schemas import inputs as i
from schemas import member_bodies as m
from schemas import reservation_bodies as r
from schemas.codes import Code
from schemas.ids import MemberEpoch, OperationId, TenantId
from schemas.topics import Topic

FOR_GOOD = frozenset(("success", "terminal", "policy_denied", "cancelled", "unknown"))
"""After any other outcome another attempt would follow, for which nobody waits here."""

router = APIRouter(tags=["reservations"])

Id = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$", description="Operation of the reservation.")]


@router.post(
    "/reservations",
    status_code=status.HTTP_201_CREATED,
    responses={status.HTTP_200_OK: {"model": r.Reserved}},
)
async def reserve_call(
    asker: ASubmitter,
    asked: Asked,
    door: ADoor,
    body: r.Reserve,
    wait_ms: WaitMs,
    response: Response,
    idempotency_key: Annotated[str, Header(alias=b.IDEMPOTENCY_KEY)],
) -> r.Reserved:
    """Ask for permission for one call; 429 with the budget that binds if there is none in time.

    A repeat of the key answers 200 with what became of the reservation.
    """
    asking = Reserving(door, asker, read_key(idempotency_key), body)
    reserved, replayed = await asking.reserve(
        asked, door.waits.granted_ms if wait_ms is None else wait_ms
    )
    if replayed:
        response.status_code = status.HTTP_200_OK
        response.headers[b.REPLAYED] = "true"
    return reserved


def _held(asker: Principal, asked: Queries, operation: str) -> dict[str, Any]:
    """What names the attempt of a reservation, as its operation tells it."""
    row = granted(asker, asked, operation)
    if row.holder is None or row.holder_epoch is None:
        raise not_found()
    return {
        "tenant": TenantId(row.tenant),
        "operation": OperationId(bytes.fromhex(operation)),
        "incarnation": row.incarnation,
        "attempt": row.attempt,
        "epoch": row.epoch,
        "member": own(asker, row.holder),
        "member_epoch": MemberEpoch(row.holder_epoch),
    }


@router.post("/reservations/{operation}:renew", response_model=r.Renewed, responses=PENDING)
async def renew_reservation(
    asker: ASubmitter, asked: Asked, door: ADoor, operation: Id, wait_ms: WaitMs
) -> r.Renewed | Response:
    """Renew its lease; 412 if it has ended."""
    held = _held(asker, asked, operation)
    lease = i.LeaseName(operation=held["operation"], epoch=held["epoch"])
    word = i.HeartbeatReported(
        member=held["member"], member_epoch=held["member_epoch"], leases=(lease,)
    )
    decided = await say(door, Topic.MEMBERS, word, wait_ms)
    if decided.told is None:
        return decided.pending
    renewed = decided.find(e.LeasesRenewed)
    if renewed is None:
        raise refusal(Code.LEASE_NOT_HELD, operation=operation)
    return r.Renewed(operation=operation, expires_at=instant(renewed.expires_ms))


@router.post("/reservations/{operation}:settle", response_model=m.Settled, responses=PENDING)
async def settle_reservation(
    asker: ASubmitter, asked: Asked, door: ADoor, operation: Id, body: r.Settle, wait_ms: WaitMs
) -> m.Settled | Response:
    """Tell how the call ended; what was reserved and not used comes back."""
    word = reported(_held(asker, asked, operation), body)
    if body.outcome not in FOR_GOOD:
        await cancel(door, word.tenant, word.operation, body.outcome)
    answer = await settle(door, word, wait_ms)
    await leave(door, word.member, word.member_epoch)
    return answer


@router.post("/reservations/{operation}:release", response_model=m.Settled, responses=PENDING)
async def release_reservation(
    asker: ASubmitter, asked: Asked, door: ADoor, operation: Id, wait_ms: WaitMs
) -> m.Settled | Response:
    """Give it back, only if nothing was sent."""
    return await settle_reservation(
        asker, asked, door, operation, r.Settle(outcome="not_sent"), wait_ms
    )
