"""The composition root of the door: follower, sender, keys and server in one process."""

import logging
import signal
import sys
from threading import current_thread, main_thread
from types import FrameType

import uvicorn
from fastapi import FastAPI

from projections.ports import FollowerHalted
from projections.wiring import live_views

from .app import create_app
from .auth import Keys, KeysMissing
from .door import Waits
from .kafka import KafkaSender
from .settings import ApiSettings

_log = logging.getLogger(__name__)

SWITCH_SECONDS = 0.001
"""How long the follower's thread may keep the interpreter while requests wait; Python's 5 ms
would be most of an answer's time."""
GRACE_SECONDS = 5
KEEP_ALIVE_SECONDS = 75
"""Longer than clients keep an idle connection, so that none is closed under a request: uvicorn's
own 5 s are also those of httpx, and both then close at the same time."""


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)


def run_api(settings: ApiSettings) -> int:
    """Serve until a signal or until the follower halts; blocks.

    Returns: an exit code, 0 after a signal, 1 when it could not start or the follower halted; the
    reason is logged in one sentence.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    if current_thread() is main_thread():
        # uvicorn finishes its requests, then raises the signal again: this lets us close too.
        signal.signal(signal.SIGTERM, _stop)
    sys.setswitchinterval(SWITCH_SECONDS)
    server: uvicorn.Server | None = None

    def halted() -> None:
        if server is not None:
            server.should_exit = True

    try:
        keys = Keys(settings.keys_path)
        views = live_views(settings, halted=halted)
    except (KeysMissing, FollowerHalted, ValueError) as error:
        _log.error("not started: %s: %s", type(error).__name__, error)
        return 1
    sender = KafkaSender(bootstrap=settings.bootstrap, prefix=settings.prefix, cell=settings.cell)
    try:
        server = uvicorn.Server(
            _config(settings, create_app(views, sender, keys, _waits(settings)))
        )
        views.start()
        server.run()
    except KeyboardInterrupt:
        return 0
    finally:
        views.close()
        sender.close()
    return 0 if views.progress().failure is None else 1


def _waits(settings: ApiSettings) -> Waits:
    return Waits(
        admitted_ms=settings.api_admitted_wait_ms, at_least_ms=settings.api_at_least_wait_ms
    )


def _config(settings: ApiSettings, app: FastAPI) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        host=settings.api_host,
        port=settings.api_port,
        log_level="warning",
        access_log=False,
        lifespan="off",
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
