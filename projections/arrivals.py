"""Lets a request wait until the views reflect a position or an input."""

import asyncio
from threading import Lock

from .reflected import Reflected, Wanted, reflects


class Arrivals:
    """Requests that wait; few at any time, since each waits for a few milliseconds."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._reflected: Reflected | None = None
        self._waiting: dict[asyncio.Future[None], Wanted] = {}

    def advance(self, reflected: Reflected) -> None:
        """The follower's thread tells how far it is; whoever waited for that goes on."""
        with self._lock:
            self._reflected = reflected
            arrived = [w for w, wanted in self._waiting.items() if reflects(reflected, wanted)]
            for waiter in arrived:
                del self._waiting[waiter]
        if arrived:
            arrived[0].get_loop().call_soon_threadsafe(_release, arrived)

    async def reach(self, wanted: Wanted, wait_ms: int) -> bool:
        """Whether the views reflect `wanted`, at once or within `wait_ms`."""
        waiter = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._reflected is not None and reflects(self._reflected, wanted):
                return True
            self._waiting[waiter] = wanted
        try:
            await asyncio.wait_for(waiter, wait_ms / 1000)
        except TimeoutError:
            return False
        finally:
            with self._lock:
                self._waiting.pop(waiter, None)
        return True


def _release(arrived: list[asyncio.Future[None]]) -> None:
    for waiter in arrived:
        if not waiter.done():
            waiter.set_result(None)
