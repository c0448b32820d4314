"""Members: which processes live in which pool, and what they hold."""

from fastapi import APIRouter

from api import capacity_replies as replies
from api.door import AReader, Asked
from schemas import capacity_bodies as c

router = APIRouter(tags=["members"])


@router.get("/members")
async def list_members(asker: AReader, asked: Asked) -> c.Members:
    """All members; a tenant sees its own processes, those of pool `self`."""
    found = asked.members().items()
    return c.Members(
        items=[replies.member(name, row) for name, row in found if asker.sees(row.tenant)]
    )
