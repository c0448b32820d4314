"""Both twins of the SDK behind one face, so that one suite can judge them."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from evenhand import AsyncAttempt, AsyncClient, AsyncWorker, Attempt, Client, Result, Worker

Handle = Callable[[Attempt], Result | None]


class Running(Protocol):
    """A worker at work."""

    def stop(self) -> None: ...
    def wait_joined(self, timeout_s: float = 30.0) -> None: ...


class Twin(Protocol):
    """What the suite asks of a client and of workers."""

    def call(self, name: str, *arguments: Any, **fields: Any) -> Any: ...
    def acquire(self, **intent: Any) -> AbstractContextManager[Attempt]: ...
    def worker(self, handle: Handle, **options: Any) -> AbstractContextManager[Running]: ...
    def run_worker(self, handle: Handle, **options: Any) -> None: ...
    def close(self) -> None: ...


class SyncTwin:
    def __init__(self, requests: dict[str, Any], acquires: dict[str, Any]) -> None:
        self._client, self._acquirer = Client(**requests), Client(**acquires)

    def call(self, name: str, *arguments: Any, **fields: Any) -> Any:
        return getattr(self._client, name)(*arguments, **fields)

    def acquire(self, **intent: Any) -> AbstractContextManager[Attempt]:
        return self._acquirer.acquire(**intent)

    def worker(self, handle: Handle, **options: Any) -> AbstractContextManager[Worker]:
        return Worker(handle, **options)

    def run_worker(self, handle: Handle, **options: Any) -> None:
        Worker(handle, **options).run()

    def close(self) -> None:
        self._client.close()
        self._acquirer.close()


class AsyncTwin:
    """Runs the asynchronous twin on a loop in a thread of its own."""

    def __init__(self, requests: dict[str, Any], acquires: dict[str, Any]) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

        async def made() -> tuple[AsyncClient, AsyncClient]:
            return AsyncClient(**requests), AsyncClient(**acquires)

        self._client, self._acquirer = self._do(made())

    def _do(self, asked: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(asked, self._loop).result()

    def call(self, name: str, *arguments: Any, **fields: Any) -> Any:
        return self._do(getattr(self._client, name)(*arguments, **fields))

    @contextmanager
    def acquire(self, **intent: Any) -> Iterator[Attempt]:
        yield from self._attempts(self._acquirer.acquire(**intent))

    @contextmanager
    def worker(self, handle: Handle, **options: Any) -> Iterator[Running]:
        async def made() -> AsyncWorker:
            return AsyncWorker(self._in_thread(handle), **options)

        twin = self

        class Face:
            def __init__(self, worker: AsyncWorker) -> None:
                self._worker = worker

            def stop(self) -> None:
                self._worker.stop()

            def wait_joined(self, timeout_s: float = 30.0) -> None:
                twin._do(self._worker.wait_joined(timeout_s))

        worker = self._do(made())
        yield from self._within(worker, Face)

    def run_worker(self, handle: Handle, **options: Any) -> None:
        async def run() -> None:
            await AsyncWorker(self._in_thread(handle), **options).run()

        self._do(run())

    def close(self) -> None:
        self._do(self._client.close())
        self._do(self._acquirer.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _attempts(self, entered: Any) -> Iterator[Any]:
        yield from self._within(entered, lambda attempt: Blocking(attempt, self))

    def _in_thread(self, handle: Handle) -> Callable[[AsyncAttempt], Coroutine[Any, Any, Any]]:
        """A handler of the suite may block, which the asynchronous twin's must not."""

        async def handled(attempt: AsyncAttempt) -> Result | None:
            face: Any = Blocking(attempt, self)
            return await asyncio.to_thread(handle, face)

        return handled

    def _within(self, entered: Any, face: Callable[[Any], Any] = lambda it: it) -> Iterator[Any]:
        async def leave(error: BaseException | None) -> bool:
            trace = None if error is None else error.__traceback__
            return bool(await entered.__aexit__(error and type(error), error, trace))

        inside = self._do(entered.__aenter__())
        try:
            yield face(inside)
        except BaseException as error:
            self._do(leave(error))
            raise
        self._do(leave(None))


class Blocking:
    """An attempt of the asynchronous twin as a handler of the suite sees it."""

    def __init__(self, attempt: AsyncAttempt, twin: AsyncTwin) -> None:
        self._attempt, self._twin = attempt, twin

    def __getattr__(self, name: str) -> Any:
        return getattr(self._attempt, name)

    def checkpoint(self, *arguments: Any, **fields: Any) -> None:
        self._twin._do(self._attempt.checkpoint(*arguments, **fields))

    @contextmanager
    def turn(self, **intent: Any) -> Iterator[Any]:
        yield from self._twin._attempts(self._attempt.turn(**intent))
