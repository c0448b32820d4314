"""Metrics of the cell for Prometheus, which sends a key: who the tenants are is confidential."""

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse

from api.door import OVERSEERS, Asked
from api.metrics import MEDIA_TYPE, exposition

router = APIRouter(tags=["health"])


@router.get("/metrics", response_class=PlainTextResponse, dependencies=[OVERSEERS])
async def get_metrics(asked: Asked) -> Response:
    """What the views count; role operator or auditor."""
    return Response(exposition(asked.position.cell, asked), media_type=MEDIA_TYPE)
