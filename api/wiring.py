"""The composition root of the door: follower, sender, keys and server in one process."""

import logging
import signal
import sys
from threading import current_thread, main_thread
from types import FrameType

import uvicorn

from projections.wiring import live_views

from .app import create_app
from .auth import Keys
from .door import Waits
from .kafka import KafkaSender
from .settings import ApiSettings

SWITCH_SECONDS = 0.001
"""How long the follower's thread may keep the interpreter while requests wait; Python's 5 ms
would be most of an answer's time."""
GRACE_SECONDS = 5


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)


def run_api(settings: ApiSettings) -> int:
    """Serve until a signal or until the follower halts; blocks.

    Returns: an exit code, 0 after a signal, 1 when the follower halted (its reason is logged).

    Raises:
        KeysMissing: there is no keys file; nothing was started.
        JournalReplaced: the views on disk are of another journal.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    keys = Keys(settings.keys_path)
    if current_thread() is main_thread():
        # uvicorn finishes its requests, then raises the signal again: this lets us close too.
        signal.signal(signal.SIGTERM, _stop)
    sys.setswitchinterval(SWITCH_SECONDS)
    follower = settings.follower
    sender = KafkaSender(bootstrap=follower.bootstrap, prefix=follower.prefix, cell=follower.cell)
    server: uvicorn.Server | None = None

    def halted() -> None:
        if server is not None:
            server.should_exit = True

    views = live_views(follower, halted=halted)
    try:
        waits = Waits(
            admitted_ms=settings.api_admitted_wait_ms, at_least_ms=settings.api_at_least_wait_ms
        )
        config = uvicorn.Config(
            create_app(views, sender, keys, waits),
            host=settings.api_host,
            port=settings.api_port,
            log_level="warning",
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        server = uvicorn.Server(config)
        views.start()
        server.run()
        return 0 if views.progress().failure is None else 1
    except KeyboardInterrupt:
        return 0
    finally:
        views.close()
        sender.close()
