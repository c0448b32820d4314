"""Metrics of the cell for Prometheus, which sends a key: who the tenants are is confidential."""

from fastapi import APIRouter, Depends, Response
from fastapi.responses import PlainTextResponse

from api.door import Asked, allow
from api.metrics import MEDIA_TYPE, exposition
from schemas.bodies import Role

router = APIRouter(tags=["health"])
overseers = Depends(allow(Role.OPERATOR, Role.AUDITOR))


@router.get("/metrics", response_class=PlainTextResponse, dependencies=[overseers])
async def get_metrics(asked: Asked) -> Response:
    """What the views count; role operator or auditor."""
    return Response(exposition(asked.position.cell, asked), media_type=MEDIA_TYPE)
