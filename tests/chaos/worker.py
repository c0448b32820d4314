"""A worker that kills itself at one point of an attempt: the shipped SDK over a link with a trap.

`python -m tests.chaos.worker PROVIDER_URL MEMBER`; TRAP names the point, and TRAP_MARK a file that
is made first, so that the next life of the worker goes on unharmed. TRAP_STOPS stops it there
instead, until somebody continues it. MUTE loses every heartbeat but
the first of each life; CLOCK_OFF_S sets its wall clock wrong. LATE_MS lets permissions to start
come late, up to so much, and every fifth word go twice.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import httpx

from evenhand import AsyncAttempt, AsyncWorker, Kafka, Result
from evenhand._transport import Link
from evenhand.dev.demo_worker import call
from schemas import events as e
from schemas import ids
from schemas import inputs as i
from tests.chaos.slow_link import SlowLink
from tests.support.asked import POOL
from tests.support.core import claim

POINTS = (
    "granted",
    "claimed",
    "start_requested",
    "started",
    "calling",
    "answered",
    "reported",
)
"""Before the claim; between claim and start; before the answer to the start; between start and
call; during the call; after it, before the result; after the result is durable."""
PLACES = 4
CALL_TIMEOUT_S = 5.0
DURABLE_WAIT_S = 0.02


class Trap:
    """Closes once, at its point."""

    def __init__(self, point: str, mark: Path) -> None:
        self._point = point
        self._mark = mark

    def at(self, point: str) -> bool:
        return point == self._point and not self._mark.exists()

    def close(self) -> None:
        self._mark.touch()
        if _STOPS:
            os.kill(os.getpid(), signal.SIGSTOP)
            return
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("Expected to be dead")


class TrappedLink:
    """A link whose words and deliveries may be the last thing that this process sees."""

    def __init__(self, inner: Link, trap: Trap) -> None:
        self._inner, self._trap = inner, trap
        self._beaten = False

    def send(self, word: Any, durable: Callable[[], None] | None = None) -> None:
        if isinstance(word, i.HeartbeatReported) and _MUTE:
            if self._beaten:
                return
            self._beaten = True
        last = {i.StartRequested: "start_requested", i.ResultReported: "reported"}.get(type(word))
        if last is not None and self._trap.at(last):
            self._last(word)
        else:
            self._inner.send(word, durable)

    def receive(self, wait_s: float) -> Sequence[Any]:
        heard = self._inner.receive(wait_s)
        for event in heard:
            if isinstance(event, e.GrantIssued):
                if self._trap.at("granted"):
                    self._trap.close()
                if self._trap.at("claimed"):
                    self._last(claim(event))
            elif isinstance(event, e.StartAccepted) and self._trap.at("started"):
                self._trap.close()
        return heard

    def close(self, wait_s: float) -> None:
        self._inner.close(wait_s)

    def _last(self, word: Any) -> None:
        """Say it, and die when it cannot be lost any more: inside the next `receive` or here."""
        self._inner.send(word, durable=self._trap.close)
        while True:
            self._inner.receive(DURABLE_WAIT_S)


class TrappedKafka(Kafka):
    """Where the worker links to."""

    def link(self, member: ids.MemberId) -> Link:
        link = TrappedLink(super().link(member), _TRAP)
        return SlowLink(link, Random(), _LATE_MS) if _LATE_MS else link


def set_clock_wrong(off_s: float) -> None:
    """Let everything in this process read another wall clock."""
    true = time.time
    time.time = lambda: true() + off_s


_MUTE = bool(os.environ.get("MUTE"))
_STOPS = bool(os.environ.get("TRAP_STOPS"))
_LATE_MS = int(os.environ.get("LATE_MS", "0"))
_TRAP = Trap(os.environ.get("TRAP", ""), Path(os.environ.get("TRAP_MARK", "/nonexistent")))


async def _handle(provider: httpx.AsyncClient, attempt: AsyncAttempt) -> Result:
    if _TRAP.at("calling"):
        asyncio.get_running_loop().call_later(0.1, _TRAP.close)
    result = await call(provider, attempt)
    if _TRAP.at("answered"):
        _TRAP.close()
    return result


async def main(provider_url: str, member: str) -> None:
    async with httpx.AsyncClient(base_url=provider_url, timeout=CALL_TIMEOUT_S) as provider:
        worker = AsyncWorker(
            lambda attempt: _handle(provider, attempt),
            pool=POOL,
            places=PLACES,
            member=member,
            via=TrappedKafka(),
        )
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
        await worker.run()


if __name__ == "__main__":
    set_clock_wrong(float(os.environ.get("CLOCK_OFF_S", "0")))
    asyncio.run(main(*sys.argv[1:]))
