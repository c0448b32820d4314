"""Slots: which attempts hold them, and for how long."""

from typing import Annotated

from fastapi import APIRouter, Query

from api import replies
from api.door import AReader, Asked
from api.paging import PAGE_DEFAULT, Limit, TenantFilter, age_cursor, age_next, scope
from projections.attempts import oldest
from schemas import operator_bodies as o
from schemas.body import Count

router = APIRouter(tags=["slots"])


@router.get("/slots")
async def list_slots(
    asker: AReader,
    asked: Asked,
    tenant: TenantFilter = None,
    domain: str | None = None,
    older_than_ms: Annotated[Count, Query(description="Held for at least so long.")] = 0,
    begin: Annotated[str | None, Query(alias="cursor")] = None,
    limit: Limit = PAGE_DEFAULT,
) -> o.Slots:
    """Attempts that hold slots, longest first: granted, leased, started, or of unknown outcome."""
    given_by = asked.time_ms - older_than_ms
    found = asked.held_slots(scope(asker, tenant), domain)
    page = oldest(
        (one for one in found if one.since_ms <= given_by), begin=age_cursor(begin), limit=limit
    )
    return o.Slots(items=[replies.slot(asked, one) for one in page.items], next=age_next(page.next))
