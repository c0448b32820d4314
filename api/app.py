"""The application over its ports: who may ask what, and how every answer says what it reflects."""

from functools import cache, partial
from importlib.metadata import version

from fastapi import FastAPI
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from schemas.bodies import POSITION

from . import problems
from .auth import Keys
from .document import document
from .door import Door, Waits
from .ports import Sender, Views
from .routes import (
    attempts,
    budgets,
    dead_letters,
    health,
    members,
    metrics,
    operations,
    pools,
    reservations,
    slots,
    tenants,
    unknowns,
)

_NOUNS = (
    operations,
    unknowns,
    slots,
    dead_letters,
    tenants,
    budgets,
    members,
    pools,
    attempts,
    reservations,
)


class _Positioned:
    """Every reply has the position it reflects (R130); most have named a better one already."""

    def __init__(self, app: ASGIApp, views: Views) -> None:
        self._app = app
        self._views = views

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def positioned(message: Message) -> None:
            if message["type"] == "http.response.start":
                position = str(self._views.progress().position)
                MutableHeaders(scope=message).setdefault(POSITION, position)
            await send(message)

        await self._app(scope, receive, positioned)


def create_app(views: Views, sender: Sender, keys: Keys, waits: Waits | None = None) -> FastAPI:
    """The door of one cell. It decides nothing and remembers nothing beyond a request."""
    app = FastAPI(
        title="Evenhand",
        version=version("evenhand"),
        description="A scheduler for work under fixed provider budgets.",
        docs_url=None,
        redoc_url=None,
    )
    app.state.door = Door(views, sender, keys, waits or Waits())
    for module in _NOUNS:
        app.include_router(module.router, prefix="/v1")
    app.include_router(health.router)
    app.include_router(metrics.router)
    app.add_middleware(_Positioned, views=views)
    problems.install(app)
    app.openapi = cache(partial(document, app))  # type: ignore[method-assign]  # FastAPI's own way
    return app
