"""Metrics of the cell for Prometheus, which sends a key: who the tenants are is confidential."""

from fastapi import APIRouter, Depends, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST

from api.door import Asked, allow
from api.metrics import exposition
from schemas.bodies import Role

router = APIRouter(tags=["health"])
overseers = Depends(allow(Role.OPERATOR, Role.AUDITOR))


@router.get("/metrics", response_class=PlainTextResponse, dependencies=[overseers])
async def get_metrics(asked: Asked) -> Response:
    """What the views count; role operator or auditor."""
    return Response(exposition(asked.position.cell, asked), media_type=CONTENT_TYPE_LATEST)
