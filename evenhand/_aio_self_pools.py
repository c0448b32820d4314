"""Permission for calls of this process, for event loops: the twin of `_self_pools.py`."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from evenhand._intent import ANSWER_WAIT_S, Identity, links, patience_s
from evenhand._outcome import Result
from evenhand._self_pool import SelfPool
from evenhand._self_pools import PLACES
from evenhand._transport import Links, Submission
from evenhand._words import ids
from evenhand.aio_attempt import AsyncAttempt
from evenhand.errors import EvenhandError, Unreachable


class AsyncSelfPools:
    """Joins when permission is first asked for."""

    def __init__(
        self,
        via: Links | None,
        *,
        classify: Callable[[BaseException, AsyncAttempt], Result | None],
        places: int = PLACES,
    ) -> None:
        """Nothing happens before `acquire`."""
        self._via, self._classify, self._places = via, classify, places
        self._own: dict[ids.TenantId, SelfPool[AsyncAttempt]] = {}
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def acquire(self, who: Identity, asked: Submission) -> AsyncIterator[AsyncAttempt]:
        """Wait for permission; settle on leaving."""
        own = await self._of(who.tenant)
        attempt = await _wait(own, who, asked)
        try:
            yield attempt
        except BaseException as failure:
            own.end(attempt, failure)
            raise
        own.end(attempt, None)

    async def close(self) -> None:
        """Wait for the end of what was permitted, and let go."""
        for ended in [own.stop() for own in self._own.values()]:
            await asyncio.wrap_future(ended)

    async def _of(self, tenant: ids.TenantId) -> SelfPool[AsyncAttempt]:
        async with self._lock:
            own = self._own.get(tenant)
            if own is None or own.ended:
                own = SelfPool(
                    links(self._via),
                    tenant,
                    make=partial(AsyncAttempt, acquire=self.acquire),
                    classify=self._classify,
                    places=self._places,
                )
                joined = await asyncio.to_thread(own.start)
                try:
                    await asyncio.wait_for(asyncio.wrap_future(joined), ANSWER_WAIT_S)
                except TimeoutError:
                    own.stop()
                    raise Unreachable("Expected to join pool self, but no owner answered") from None
                self._own[tenant] = own
            return own


async def _wait(own: SelfPool[AsyncAttempt], who: Identity, asked: Submission) -> AsyncAttempt:
    heard: asyncio.Queue[Any] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    operation = own.ask(who, asked, lambda one: loop.call_soon_threadsafe(heard.put_nowait, one))
    try:
        while True:
            attempt = own.heard(await asyncio.wait_for(heard.get(), patience_s(asked)))
            if attempt is not None:
                return attempt
    except EvenhandError:
        own.forget(operation)
        raise
    except TimeoutError:
        own.give_up(operation, "no answer")
        raise Unreachable("Expected an answer, but none came", operation=operation.hex()) from None
    except BaseException:
        own.give_up(operation, "the caller went away")
        raise
