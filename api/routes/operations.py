"""Operations: submit, list, look at one, cancel."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Response, status

from api import replies
from api.auth import Principal
from api.door import ACanceller, ADoor, AReader, Asked, ASubmitter
from api.idempotency import read_key
from api.ports import NotWritten, Sent
from api.problems import Refused, not_found
from api.submission import submit
from projections.queries import Queries
from projections.views.operation import Operation as Row
from schemas import bodies as b
from schemas.codes import Code
from schemas.ids import OperationId, TenantId
from schemas.inputs import CancellationRequested
from schemas.topics import Topic

PAGE_MAX = 100
PAGE_DEFAULT = 50
WAIT_MS_MAX = 30_000

router = APIRouter(tags=["operations"])

Id = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$", description="Operation id.")]


@router.post("/operations", status_code=status.HTTP_202_ACCEPTED)
async def submit_operation(
    asker: ASubmitter,
    asked: Asked,
    door: ADoor,
    body: b.Submit,
    response: Response,
    idempotency_key: Annotated[str, Header(alias=b.IDEMPOTENCY_KEY)],
    wait_admitted_ms: Annotated[
        int | None, Header(alias=b.WAIT_ADMITTED, ge=0, le=WAIT_MS_MAX)
    ] = None,
) -> b.Submitted:
    """Submit one operation: durable when this answers, and admitted if that was decided in time.

    A repeat of the key with the same payload answers 200 with the operation as it is now.
    """
    outcome = await submit(
        door,
        asked,
        asker=asker,
        key=read_key(idempotency_key),
        body=body,
        wait_ms=door.waits.admitted_ms if wait_admitted_ms is None else wait_admitted_ms,
    )
    response.headers["Location"] = f"/v1/operations/{outcome.body.operation}"
    response.headers[b.POSITION] = str(outcome.position)
    if outcome.body.input is not None:
        response.headers[b.INPUT] = outcome.body.input
    if outcome.replayed:
        response.status_code = status.HTTP_200_OK
        response.headers[b.REPLAYED] = "true"
    return outcome.body


def _scope(asker: Principal, tenant: str | None) -> str | None:
    """Whose operations are listed: None for everybody's."""
    if asker.sees_all:
        return tenant
    if tenant is not None and not asker.sees(tenant):
        raise not_found()
    return asker.tenant


def _cursor(text: str | None) -> bytes | None:
    try:
        return None if text is None else urlsafe_b64decode(text.encode())
    except (NotBase64, ValueError) as error:
        raise Refused(
            Code.MALFORMED, "Expected a cursor from `next` of another page, but it is none"
        ) from error


@router.get("/operations")
async def list_operations(
    asker: AReader,
    asked: Asked,
    state: b.State | None = None,
    pool: str | None = None,
    lane: str | None = None,
    tenant: Annotated[str | None, Query(description="For operators and auditors.")] = None,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=PAGE_MAX)] = PAGE_DEFAULT,
) -> b.Operations:
    """Operations, newest first. A filtered page may be short: follow `next` until it is null."""

    def keep(row: Row) -> bool:
        return (
            (state is None or row.phase == state.value)
            and (pool is None or row.pool == pool)
            and (lane is None or row.lane == lane)
        )

    page = asked.page(tenant=_scope(asker, tenant), begin=_cursor(cursor), limit=limit, keep=keep)
    return b.Operations(
        items=[replies.operation(asked, found, row) for found, row in page.items],
        next=None if page.next is None else urlsafe_b64encode(page.next).decode(),
    )


def _visible(asked: Queries, asker: Principal, operation: str) -> Row:
    row = asked.operation(bytes.fromhex(operation))
    if row is None or not asker.sees(row.tenant):
        raise not_found()
    return row


@router.get("/operations/{operation}")
async def get_operation(asker: AReader, asked: Asked, operation: Id) -> b.Operation:
    """One operation as it is now."""
    row = _visible(asked, asker, operation)
    return replies.operation(asked, bytes.fromhex(operation), row)


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
    row = _visible(asked, asker, operation)
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
