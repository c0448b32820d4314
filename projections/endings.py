"""Lets a request wait until an operation has ended."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable
from threading import Lock


class Endings:
    """Requests that wait, by operation; whoever waits for none costs the follower nothing."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: dict[bytes, set[asyncio.Future[None]]] = defaultdict(set)

    def tell(self, operations: Iterable[bytes]) -> None:
        """The follower's thread tells which operations have just ended."""
        with self._lock:
            woken = [w for operation in operations for w in self._waiting.pop(operation, ())]
        for waiter in woken:
            waiter.get_loop().call_soon_threadsafe(_release, waiter)

    async def wait(self, operation: bytes, wait_ms: int, ended: Callable[[], bool]) -> bool:
        """Whether the operation has ended, at once or within `wait_ms`.

        `ended` tells whether it had ended before; asked once somebody would tell if it ends later.
        """
        waiter = asyncio.get_running_loop().create_future()
        with self._lock:
            self._waiting[operation].add(waiter)
        try:
            if ended():
                return True
            await asyncio.wait_for(waiter, wait_ms / 1000)
        except TimeoutError:
            return False
        finally:
            with self._lock:
                self._forget(operation, waiter)
        return True

    def _forget(self, operation: bytes, waiter: asyncio.Future[None]) -> None:
        waiting = self._waiting.get(operation)
        if waiting is not None:
            waiting.discard(waiter)
            if not waiting:
                del self._waiting[operation]


def _release(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
