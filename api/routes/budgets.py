"""Budgets: what is held, in use and counted, and which dimension bound in each minute."""

from typing import Annotated

from fastapi import APIRouter, Query

from api import capacity_replies as replies
from api.auth import Principal
from api.door import OVERSEERS, AReader, Asked
from api.problems import not_found
from projections.capacity import LevelAnswer
from projections.queries import Queries
from projections.views.bound import MINUTES_KEPT
from schemas import capacity_bodies as c

router = APIRouter(tags=["budgets"])

MINUTES_DEFAULT = 60
Minutes = Annotated[int, Query(ge=1, le=MINUTES_KEPT, description="How many, up to now.")]


def _visible(asker: Principal, asked: Queries, levels: list[LevelAnswer]) -> c.Budgets:
    """The domains' own levels are everybody's; a tenant's level is its own."""
    seen = [level for level in levels if level.tenant is None or asker.sees(level.tenant)]
    return c.Budgets(
        items=[replies.budget(level, now_ms=asked.time_ms, asker=asker) for level in seen]
    )


@router.get("/budgets")
async def list_budgets(asker: AReader, asked: Asked) -> c.Budgets:
    """All domains, and the levels of the tenants that the key may see."""
    return _visible(asker, asked, asked.budgets())


@router.get("/budgets/{domain}")
async def get_budget(asker: AReader, asked: Asked, domain: str) -> c.Budgets:
    """One domain, and the levels of the tenants that the key may see."""
    levels = asked.budgets(domain)
    if not levels:
        raise not_found()
    return _visible(asker, asked, levels)


@router.get("/budgets/{domain}/bound", dependencies=[OVERSEERS])
async def get_bound(
    asked: Asked, domain: str, minutes: Minutes = MINUTES_DEFAULT
) -> c.BoundMinutes:
    """What held the domain's work back in each minute, oldest first; role operator or auditor.

    As the owner sampled it, at most once in `deferral_sample_ms`; kept for a day.
    """
    found = asked.bound(domain, minutes=minutes)
    if found is None:
        raise not_found()
    return c.BoundMinutes(domain=domain, items=[replies.bound(minute) for minute in found])
