"""Dead letters: operations that are over unless a person wants another attempt."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query

from api import replies
from api.door import AReader, Asked
from api.paging import PAGE_DEFAULT, Limit, TenantFilter, cursor, next_of, scope
from projections.views.operation import Operation as Row
from schemas import operator_bodies as o

router = APIRouter(tags=["dead letters"])


@router.get("/dead-letters")
async def list_dead_letters(
    asker: AReader,
    asked: Asked,
    state: Literal["dead", "unknown_closed"] | None = None,
    tenant: TenantFilter = None,
    domain: str | None = None,
    begin: Annotated[str | None, Query(alias="cursor")] = None,
    limit: Limit = PAGE_DEFAULT,
) -> o.DeadLetters:
    """Operations that await a person, newest first in each tenant; `code` says why.

    `dead`: the attempts are used up. `unknown_closed`: what became of it was never known.
    """

    def keep(row: Row) -> bool:
        return (state is None or row.phase == state) and (domain is None or row.domain == domain)

    page = asked.dead_letters(
        tenant=scope(asker, tenant), begin=cursor(begin), limit=limit, keep=keep
    )
    return o.DeadLetters(
        items=[replies.operation(asked, found, row) for found, row in page.items],
        next=next_of(page.next),
    )
