"""Tenants: what each was told, what it has now, and its queues."""

from fastapi import APIRouter

from api import replies
from api.door import AReader, Asked
from api.problems import not_found
from schemas import bodies as b

router = APIRouter(tags=["tenants"])


@router.get("/tenants")
async def list_tenants(asker: AReader, asked: Asked) -> b.Tenants:
    """All tenants that the key may see."""
    found = asked.tenants().items()
    return b.Tenants(
        items=[replies.tenant(name, *tenant) for name, tenant in found if asker.sees(name)]
    )


@router.get("/tenants/{tenant}")
async def get_tenant(asker: AReader, asked: Asked, tenant: str) -> b.Tenant:
    """One tenant."""
    found = asked.tenant(tenant) if asker.sees(tenant) else None
    if found is None:
        raise not_found()
    return replies.tenant(tenant, *found)


@router.get("/tenants/{tenant}/queue")
async def get_queue(asker: AReader, asked: Asked, tenant: str) -> b.Queues:
    """The tenant's queues in which something waits."""
    if not asker.sees(tenant) or asked.tenant(tenant) is None:
        raise not_found()
    return b.Queues(tenant=tenant, items=[replies.queue(queue) for queue in asked.queues(tenant)])
