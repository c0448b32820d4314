"""Lets a request wait until the follower tells something under a key."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bytes, str)


class Waiters(Generic[K]):
    """Requests that wait, by key; whoever waits for none costs the follower nothing."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: dict[K, set[asyncio.Future[None]]] = defaultdict(set)

    def tell(self, keys: Iterable[K]) -> None:
        """The follower's thread tells what has just happened; whoever waited for it goes on."""
        with self._lock:
            woken = [w for key in keys for w in self._waiting.pop(key, ())]
        for waiter in woken:
            waiter.get_loop().call_soon_threadsafe(_release, waiter)

    async def wait(self, key: K, wait_ms: int, told: Callable[[], bool]) -> bool:
        """Whether it has happened, at once or within `wait_ms`.

        `told` says whether it had happened before; asked once somebody would tell if it comes
        later. What it raises is raised here.
        """
        waiter = asyncio.get_running_loop().create_future()
        with self._lock:
            self._waiting[key].add(waiter)
        try:
            if told():
                return True
            await asyncio.wait_for(waiter, wait_ms / 1000)
        except TimeoutError:
            return False
        finally:
            with self._lock:
                self._forget(key, waiter)
        return True

    def _forget(self, key: K, waiter: asyncio.Future[None]) -> None:
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.discard(waiter)
            if not waiting:
                del self._waiting[key]


def _release(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
