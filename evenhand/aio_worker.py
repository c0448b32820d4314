"""The worker for event loops: name for name and word for word the twin of `worker.py`."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Final, Self

from evenhand._aio_self_pools import AsyncSelfPools
from evenhand._outcome import Result, by_the_rule
from evenhand._threads import MemberThreads, joining
from evenhand._transport import Kafka, Links
from evenhand.aio_attempt import AsyncAttempt

JOIN_WAIT_S: Final = 30.0
STOP_WAIT_S: Final = 30.0


class AsyncWorker:
    """One member of a pool: the handler is called once for every attempt that may run.

    It is never called before the owner has accepted the start, nor when it would be too late to
    send. What it returns settles the reservation. NotSent, or an exception that shows that there
    was no connection, gives the work back; after any other the outcome is unknown.

        async def handle(attempt: AsyncAttempt) -> Result:
            reply = await ask_provider(attempt.payload_ref, max_tokens=attempt.output_tokens_max)
            attempt.usage(prompt_tokens=reply.prompt_tokens, output_tokens=reply.output_tokens)
            return Result(result_ref=reply.url)

        await AsyncWorker(handle, pool="default", places=8).run()
    """

    def __init__(
        self,
        handle: Callable[[AsyncAttempt], Awaitable[Result | None]],
        *,
        pool: str,
        via: Links | None = None,
        places: int = 1,
        member: str | None = None,
        classify: Callable[[BaseException, AsyncAttempt], Result | None] = by_the_rule,
        stop_wait_s: float = STOP_WAIT_S,
    ) -> None:
        """Nothing happens before `run` or entering the context.

        Args:
            handle: runs one attempt.
            pool: pool to join.
            via: `Kafka()` or `Http(url, key)`; None means the former, as the environment has it.
            places: how many attempts may run at once.
            member: name of the process in its pool; None makes a fresh one.
            classify: says what an exception of the handler means; None leaves it to the rule above.
            stop_wait_s: how long handlers may go on after `stop`.
        """
        self._handle = handle
        self._joining = joining(pool, places, member)
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop
        links = via or Kafka()
        self._turns = AsyncSelfPools(links, classify=classify)
        self._threads = MemberThreads(
            links,
            self._joining,
            make=partial(AsyncAttempt, acquire=self._turns.acquire),
            classify=classify,
            run=self._begin,
            stop_wait_s=stop_wait_s,
        )

    @property
    def member(self) -> str:
        """The name under which the cell knows this worker."""
        return self._joining.member

    async def run(self) -> None:
        """Work until `stop` is called, then end in order. Blocks.

        Raises:
            Unreachable: no broker answered at the start.
            EvenhandError: the pool refuses this worker for good.
            LinkLost: deliveries may have been missed; start a new worker.
        """
        async with self:
            await asyncio.wrap_future(self._threads.finished)

    async def wait_joined(self, timeout_s: float = JOIN_WAIT_S) -> None:
        """Return when it has been a member.

        Raises:
            TimeoutError: no owner took it in within the time; it goes on asking.
        """
        await asyncio.wait_for(asyncio.wrap_future(self._threads.joined), timeout_s)

    def stop(self) -> None:
        """Take no more grants, finish what was started, then end. Does not wait."""
        self._threads.stop()

    async def __aenter__(self) -> Self:
        """Work in the background."""
        self._loop = asyncio.get_running_loop()
        await asyncio.to_thread(self._threads.start)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End in order."""
        self._threads.stop()
        try:
            await asyncio.wrap_future(self._threads.finished)
        except Exception:
            if error is None:
                raise
        finally:
            await self._turns.close()

    def _begin(self, attempts: Sequence[AsyncAttempt]) -> None:
        self._loop.call_soon_threadsafe(self._create_tasks, attempts)

    def _create_tasks(self, attempts: Sequence[AsyncAttempt]) -> None:
        for attempt in attempts:
            task = self._loop.create_task(self._attend(attempt))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _attend(self, attempt: AsyncAttempt) -> None:
        how: Result | BaseException | None
        try:
            attempt.sending()
            how = await self._handle(attempt)
        except asyncio.CancelledError as error:
            self._threads.report(attempt, error)
            raise
        except BaseException as error:  # noqa: BLE001 - it ends the attempt, not the worker
            how = error
        self._threads.report(attempt, how)
