"""Probes: is the loop alive, and are the views restored?"""

from fastapi import APIRouter, Response, status

from api.door import ADoor
from schemas import bodies as b

IDLE_SECONDS_MAX = 10.0
"""The follower comes round ten times a second; a silence this long is no slow batch."""

router = APIRouter(tags=["health"])

_UNAVAILABLE = status.HTTP_503_SERVICE_UNAVAILABLE


@router.get("/healthz", responses={_UNAVAILABLE: {"model": b.Health}})
async def healthz(door: ADoor, response: Response) -> b.Health:
    """Whether the follower's loop has moved lately."""
    progress = door.views.progress()
    if progress.failure is not None:
        response.status_code = _UNAVAILABLE
        return b.Health(alive=False, detail=f"the follower halted: {progress.failure}")
    if progress.idle_s > IDLE_SECONDS_MAX:
        response.status_code = _UNAVAILABLE
        return b.Health(alive=False, detail=f"silent for {progress.idle_s:.0f} s")
    return b.Health(alive=True, detail="following")


@router.get("/readyz", responses={_UNAVAILABLE: {"model": b.Readiness}})
async def readyz(door: ADoor, response: Response) -> b.Readiness:
    """How far the restore is; ready once the end seen at start has been passed."""
    progress = door.views.progress()
    if not progress.ready:
        response.status_code = _UNAVAILABLE
    return b.Readiness(
        ready=progress.ready,
        position=str(progress.position),
        offset=progress.offset,
        end=progress.end,
    )
