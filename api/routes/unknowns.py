"""Unknown outcomes: which there are, and what an operator says became of one."""

from collections.abc import Iterable
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response, status

from api import replies
from api.auth import Principal
from api.door import ADoor, AnOperator, AReader, Asked
from api.operating import ask
from api.paging import PAGE_DEFAULT, Limit, TenantFilter, age_cursor, age_next, scope
from api.prefer import WaitMs
from api.problems import Refused, not_found
from projections.attempts import UnknownAnswer, oldest
from projections.queries import Queries
from projections.views.operation import Operation as Row
from schemas import operator_bodies as o
from schemas.codes import Code
from schemas.ids import OperationId, TenantId
from schemas.inputs import ReconcileRequested
from schemas.phase import Phase
from schemas.units import Tokens

router = APIRouter(tags=["unknowns"])

HEX = r"^[0-9a-f]{32}$"
Id = Annotated[str, Path(pattern=HEX, description="Operation id.")]


@router.get("/unknowns")
async def list_unknowns(
    asker: AReader,
    asked: Asked,
    tenant: TenantFilter = None,
    domain: str | None = None,
    operation: Annotated[str | None, Query(pattern=HEX)] = None,
    begin: Annotated[str | None, Query(alias="cursor")] = None,
    limit: Limit = PAGE_DEFAULT,
) -> o.Unknowns:
    """Attempts whose outcome is unknown, oldest first: what they hold, until when, and evidence.

    Among them are older attempts of operations that went on without them.
    """
    owner = scope(asker, tenant)
    found: Iterable[UnknownAnswer] = asked.unknowns(owner, domain)
    if operation is not None:
        found = _of_one(asked, asker, operation)
    page = oldest(found, begin=age_cursor(begin), limit=limit)
    return o.Unknowns(
        items=[replies.unknown(asked, one) for one in page.items], next=age_next(page.next)
    )


def _of_one(asked: Queries, asker: Principal, operation: str) -> list[UnknownAnswer]:
    row = asked.operation(bytes.fromhex(operation))
    if row is None or not asker.sees(row.tenant):
        raise not_found()
    return asked.unknowns_of(bytes.fromhex(operation), row)


@router.post("/unknowns/{operation}:reconcile", status_code=status.HTTP_202_ACCEPTED)
async def reconcile(
    asker: AnOperator,
    asked: Asked,
    door: ADoor,
    operation: Id,
    body: o.Reconcile,
    wait_ms: WaitMs,
    response: Response,
) -> o.Asked:
    """Say what became of an unknown outcome; kept with author and reason, and as evidence."""
    named = OperationId(bytes.fromhex(operation))
    row = asked.operation(named)
    if row is None:
        raise not_found()
    if not _reconcilable(asked, named, row, body):
        raise Refused(
            Code.NOT_UNKNOWN,
            f"Expected an unknown outcome, but the operation is {row.phase}",
            operation=operation,
        )
    word = ReconcileRequested(
        tenant=TenantId(row.tenant),
        operation=named,
        verdict=body.verdict,
        author=asker.author,
        reason=body.reason,
        epoch=body.epoch,
        prompt_tokens=_tokens(body.prompt_tokens),
        output_tokens=_tokens(body.output_tokens),
        result_ref=body.result_ref,
    )
    return await ask(door, word, wait_ms, response)


def _reconcilable(asked: Queries, operation: bytes, row: Row, body: o.Reconcile) -> bool:
    """Whether the owner may take it: an unknown attempt, or an operation closed without knowing."""
    epoch = row.epoch if body.epoch is None else body.epoch
    closed = row.phase is Phase.UNKNOWN_CLOSED and epoch == row.epoch
    return closed or any(one.epoch == epoch for one in asked.unknowns_of(operation, row))


def _tokens(count: int | None) -> Tokens | None:
    return None if count is None else Tokens(count)
