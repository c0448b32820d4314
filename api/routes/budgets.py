"""Budgets: what is held, in use and counted, by domain, level and dimension."""

from fastapi import APIRouter

from api import capacity_replies as replies
from api.auth import Principal
from api.door import AReader, Asked
from api.problems import not_found
from projections.capacity import LevelAnswer
from projections.queries import Queries
from schemas import capacity_bodies as c

router = APIRouter(tags=["budgets"])


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
