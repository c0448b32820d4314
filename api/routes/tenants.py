"""Tenants: what each was told, what it has now, and its queues."""

from fastapi import APIRouter

from api import capacity_replies as replies
from api.door import AReader, Asked
from api.problems import not_found
from schemas import capacity_bodies as c

router = APIRouter(tags=["tenants"])


@router.get("/tenants")
async def list_tenants(asker: AReader, asked: Asked) -> c.Tenants:
    """All tenants that the key may see."""
    found = asked.tenants().items()
    return c.Tenants(
        items=[replies.tenant(asked, name, *tenant) for name, tenant in found if asker.sees(name)]
    )


@router.get("/tenants/{tenant}")
async def get_tenant(asker: AReader, asked: Asked, tenant: str) -> c.Tenant:
    """One tenant."""
    found = asked.tenant(tenant) if asker.sees(tenant) else None
    if found is None:
        raise not_found()
    return replies.tenant(asked, tenant, *found)


@router.get("/tenants/{tenant}/entitlement")
async def get_entitlement(asker: AReader, asked: Asked, tenant: str) -> c.Ledgers:
    """The tenant's two ledgers in each domain: entitlement, and pacing beside it."""
    if not asker.sees(tenant) or asked.tenant(tenant) is None:
        raise not_found()
    return replies.ledgers(tenant, asked.ledgers(tenant), asked.config())


@router.get("/tenants/{tenant}/queue")
async def get_queue(asker: AReader, asked: Asked, tenant: str) -> c.Queues:
    """The tenant's queues in which something waits."""
    if not asker.sees(tenant) or asked.tenant(tenant) is None:
        raise not_found()
    return c.Queues(tenant=tenant, items=[replies.queue(queue) for queue in asked.queues(tenant)])
