"""A worker: runs a handler for every grant of a pool, as many at once as it has places."""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from types import TracebackType
from typing import Final, Self

from evenhand._outcome import Result, by_the_rule
from evenhand._self_pools import SelfPools
from evenhand._threads import MemberThreads, joining
from evenhand._transport import Kafka, Links
from evenhand.attempt import Attempt

JOIN_WAIT_S: Final = 30.0
STOP_WAIT_S: Final = 30.0


class Worker:
    """One member of a pool: the handler is called once for every attempt that may run.

    It is never called before the owner has accepted the start, nor when it would be too late to
    send. What it returns settles the reservation. NotSent, or an exception that shows that there
    was no connection, gives the work back; after any other the outcome is unknown.

        def handle(attempt: Attempt) -> Result:
            reply = ask_provider(attempt.payload_ref, max_tokens=attempt.output_tokens_max)
            attempt.usage(prompt_tokens=reply.prompt_tokens, output_tokens=reply.output_tokens)
            return Result(result_ref=reply.url)

        Worker(handle, pool="default", places=8).run()
    """

    def __init__(
        self,
        handle: Callable[[Attempt], Result | None],
        *,
        pool: str,
        via: Links | None = None,
        places: int = 1,
        member: str | None = None,
        classify: Callable[[BaseException, Attempt], Result | None] = by_the_rule,
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
        self._waiting: SimpleQueue[Attempt | None] = SimpleQueue()
        self._crew: list[threading.Thread] = []
        links = via or Kafka()
        self._turns = SelfPools(links, classify=classify)
        self._threads = MemberThreads(
            links,
            self._joining,
            make=partial(Attempt, acquire=self._turns.acquire),
            classify=classify,
            run=self._begin,
            stop_wait_s=stop_wait_s,
        )

    @property
    def member(self) -> str:
        """The name under which the cell knows this worker."""
        return self._joining.member

    def run(self) -> None:
        """Work until `stop` is called, then end in order. Blocks.

        Raises:
            Unreachable: no broker answered at the start.
            EvenhandError: the pool refuses this worker for good.
            LinkLost: deliveries may have been missed; start a new worker.
        """
        with self:
            self._threads.finished.result()

    def wait_joined(self, timeout_s: float = JOIN_WAIT_S) -> None:
        """Return when it has been a member.

        Raises:
            TimeoutError: no owner took it in within the time; it goes on asking.
        """
        self._threads.joined.result(timeout_s)

    def stop(self) -> None:
        """Take no more grants, finish what was started, then end. Does not wait."""
        self._threads.stop()

    def __enter__(self) -> Self:
        """Work in the background."""
        self._threads.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End in order."""
        self._threads.stop()
        try:
            self._threads.finished.result()
        except Exception:
            if error is None:
                raise
        finally:
            for _ in self._crew:
                self._waiting.put(None)
            self._turns.close()

    def _begin(self, attempts: Sequence[Attempt]) -> None:
        while len(self._crew) < min(self._threads.busy, self._joining.places):
            hand = threading.Thread(target=self._attend, name="evenhand-handler", daemon=True)
            self._crew.append(hand)
            hand.start()
        for attempt in attempts:
            self._waiting.put(attempt)

    def _attend(self) -> None:
        while (attempt := self._waiting.get()) is not None:
            how: Result | BaseException | None
            try:
                attempt.sending()
                how = self._handle(attempt)
            except BaseException as error:  # noqa: BLE001 - it ends the attempt, not the worker
                how = error
            self._threads.report(attempt, how)
