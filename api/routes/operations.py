"""Operations: submit, list, look at one and what happened to it, cancel, try again."""

from asyncio import get_running_loop
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Response, status
from pydantic import BaseModel, Field

from api import replies
from api.auth import Principal
from api.door import ACanceller, ADoor, AMember, AnOperator, AReader, Asked, Door
from api.idempotency import read_key
from api.operating import ask
from api.paging import PAGE_DEFAULT, Limit, TenantFilter, cursor, next_of, scope
from api.ports import NotWritten, Sent
from api.prefer import WaitMs, applied
from api.problems import Refused, not_found
from api.submission import Outcome, submit
from api.turns import is_own, submitter
from projections.queries import Queries
from projections.views.operation import Operation as Row
from projections.views.phases import AWAITING_A_PERSON
from schemas import bodies as b
from schemas import operator_bodies as o
from schemas.codes import Code
from schemas.ids import OperationId, TenantId
from schemas.inputs import CancellationRequested, RetryRequested
from schemas.topics import Topic
from schemas.units import Millis

WAIT_MS_MAX = 30_000

router = APIRouter(tags=["operations"])

HEX = r"^[0-9a-f]{32}$"
Id = Annotated[str, Path(pattern=HEX, description="Operation id.")]


@router.post("/operations", status_code=status.HTTP_202_ACCEPTED)
async def submit_operation(
    asker: AMember,
    asked: Asked,
    door: ADoor,
    body: b.Submit,
    response: Response,
    idempotency_key: Annotated[str, Header(alias=b.IDEMPOTENCY_KEY)],
    wait_ms: WaitMs,
    wait_admitted_ms: Annotated[
        int | None, Header(alias=b.WAIT_ADMITTED, ge=0, le=WAIT_MS_MAX)
    ] = None,
) -> b.Submitted | b.Operation:
    """Submit one operation: durable when this answers, and admitted if that was decided in time.

    A repeat of the key with the same payload answers 200 with the operation as it is now. With
    `Prefer: wait=S` it waits for the end: 200 with the whole operation if it came in time.
    """
    begun = get_running_loop().time()
    usual = door.waits.admitted_ms if wait_admitted_ms is None else wait_admitted_ms
    outcome = await submit(
        door,
        asked,
        asker=submitter(asker, asked, body),
        key=read_key(idempotency_key),
        body=body,
        wait_ms=max(usual, wait_ms or 0),
    )
    response.headers["Location"] = f"/v1/operations/{outcome.body.operation}"
    response.headers[b.POSITION] = str(outcome.position)
    if outcome.body.input is not None:
        response.headers[b.INPUT] = outcome.body.input
    if outcome.replayed:
        response.status_code = status.HTTP_200_OK
        response.headers[b.REPLAYED] = "true"
    if wait_ms is None:
        return outcome.body
    passed_ms = int((get_running_loop().time() - begun) * 1000)
    applied(response, wait_ms)
    return await _ended(door, outcome, max(0, wait_ms - passed_ms), response) or outcome.body


async def _ended(
    door: Door, outcome: Outcome, wait_ms: int, response: Response
) -> b.Operation | None:
    """The operation of a submission, if it is over within the time."""
    operation = bytes.fromhex(outcome.body.operation)
    if not await door.views.ended(operation, wait_ms):
        return None
    later = door.views.ask()
    row = later.operation(operation)
    if row is None:
        return None
    response.headers[b.POSITION] = str(later.position)
    response.status_code = status.HTTP_200_OK
    return replies.operation(later, operation, row)


class Wanted(BaseModel):
    """Which operations are listed."""

    state: b.State | None = None
    pool: str | None = None
    lane: str | None = None
    tenant: TenantFilter = None
    parent: str | None = Field(default=None, pattern=HEX, description="Turns of this run.")
    cursor: str | None = None
    limit: Limit = PAGE_DEFAULT


@router.get("/operations")
async def list_operations(
    asker: AReader,
    asked: Asked,
    wanted: Annotated[Wanted, Query()],
) -> b.Operations:
    """Operations, newest first. A filtered page may be short: follow `next` until it is null."""
    owner, begin = scope(asker, wanted.tenant), cursor(wanted.cursor)

    def keep(row: Row) -> bool:
        return (
            wanted.state in (None, row.phase)
            and wanted.pool in (None, row.pool)
            and wanted.lane in (None, row.lane)
            and (owner is None or row.tenant == owner)
        )

    if wanted.parent is None:
        page = asked.page(tenant=owner, begin=begin, limit=wanted.limit, keep=keep)
    else:
        _visible(asked, asker, wanted.parent)
        run = bytes.fromhex(wanted.parent)
        page = asked.children(run, begin=begin, limit=wanted.limit, keep=keep)
    return b.Operations(
        items=[replies.operation(asked, found, row) for found, row in page.items],
        next=next_of(page.next),
    )


def _visible(asked: Queries, asker: Principal, operation: str) -> Row:
    row = asked.operation(bytes.fromhex(operation))
    if row is None or not asker.sees(row.tenant):
        raise not_found()
    return row


@router.get("/operations/{operation}", responses={status.HTTP_202_ACCEPTED: {"model": b.Operation}})
async def get_operation(
    asker: AReader, asked: Asked, door: ADoor, operation: Id, wait_ms: WaitMs, response: Response
) -> b.Operation:
    """One operation as it is now; with `Prefer: wait=S` once it is over, 202 if it is not then."""
    row = _visible(asked, asker, operation)
    named = bytes.fromhex(operation)
    if wait_ms is not None:
        applied(response, wait_ms)
        if not await door.views.ended(named, wait_ms):
            response.status_code = status.HTTP_202_ACCEPTED
        asked = door.views.ask()
        response.headers[b.POSITION] = str(asked.position)
        row = _visible(asked, asker, operation)
    return replies.operation(asked, named, row)


@router.get("/operations/{operation}/events")
async def get_events(asker: AReader, asked: Asked, operation: Id) -> o.History:
    """What happened to one operation, oldest first, each with its position in the journal."""
    _visible(asked, asker, operation)
    return replies.history(asked, bytes.fromhex(operation))


@router.post("/operations/{operation}:retry", status_code=status.HTTP_202_ACCEPTED)
async def retry_operation(
    asker: AnOperator,
    asked: Asked,
    door: ADoor,
    operation: Id,
    body: o.Retry,
    wait_ms: WaitMs,
    response: Response,
) -> o.Asked:
    """Try a dead or closed operation again, under its id, as if for the first time."""
    row = _visible(asked, asker, operation)
    if row.phase not in AWAITING_A_PERSON:
        raise Refused(
            Code.NOT_DEAD,
            f"Expected a dead or closed operation, but it is {row.phase}",
            operation=operation,
        )
    word = RetryRequested(
        tenant=TenantId(row.tenant),
        operation=OperationId(bytes.fromhex(operation)),
        start_within_ms=Millis(body.start_within_ms),
        author=asker.author,
        reason=body.reason,
    )
    return await ask(door, word, wait_ms, response)


@router.post("/operations/{operation}:cancel", status_code=status.HTTP_202_ACCEPTED)
async def cancel_operation(
    asker: ACanceller,
    asked: Asked,
    door: ADoor,
    operation: Id,
    response: Response,
    body: b.Cancel | None = None,
) -> b.Cancelled:
    """Ask for the end of an operation; repeats are harmless, and what has ended stays as it is."""
    row = asked.operation(bytes.fromhex(operation))
    if row is None or not (asker.sees(row.tenant) or is_own(asker, row)):
        raise not_found()
    sent = await _send_cancellation(door, row, operation, body or b.Cancel())
    response.headers[b.INPUT] = str(sent)
    return b.Cancelled(operation=operation, state=b.State(row.phase), input=str(sent))


async def _send_cancellation(door: ADoor, row: Row, operation: str, body: b.Cancel) -> Sent:
    word = CancellationRequested(
        tenant=TenantId(row.tenant),
        operation=OperationId(bytes.fromhex(operation)),
        reason=body.reason,
    )
    try:
        return await door.sender.send(Topic.CANCELLATIONS, word)
    except NotWritten as error:
        raise Refused(Code.NOT_WRITTEN, f"Expected a durable cancellation, but {error}") from error
