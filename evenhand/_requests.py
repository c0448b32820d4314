"""Submissions and cancellations straight to the topics; what only the API knows is asked there."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from evenhand._intent import Identity, operation_of, submitted
from evenhand._kafka import KafkaSender, topic_of
from evenhand._transport import AsyncTransport, Kafka, Submission, Transport
from evenhand._words import bodies, ids, inputs
from evenhand.errors import NotWritten, Unreachable

CLOSE_WAIT_S: Final = 10.0
POLL_S: Final = 0.1
B = TypeVar("B")


class KafkaRequests:
    """Writes requests; each is durable when its future is done."""

    def __init__(self, kafka: Kafka, who: Identity) -> None:
        """Starts a thread that waits for the broker's answers; raises as `KafkaSender`."""
        self._sender = KafkaSender(kafka)
        self._who = who
        self._open = True
        self._thread = threading.Thread(target=self._answer, name="evenhand-writes", daemon=True)
        self._thread.start()

    def submit(self, asked: Submission) -> Future[bodies.Submitted]:
        """The answer says `received`; what is decided later can be asked over the API."""
        word = submitted(asked, self._who)
        operation = operation_of(word).hex()
        return self._send(
            word,
            lambda place: bodies.Submitted(operation=operation, state="received", input=place),
        )

    def cancel(self, operation: str, reason: str) -> Future[str]:
        """Where it was written; what comes of it can be asked over the API."""
        word = inputs.CancellationRequested(
            tenant=self._who.tenant,
            operation=ids.OperationId(bytes.fromhex(operation)),
            reason=reason,
        )
        return self._send(word, lambda place: place)

    def close(self) -> None:
        """Wait for what is under way, at most CLOSE_WAIT_S, and end the thread."""
        self._open = False
        self._thread.join()
        if not self._sender.flush(CLOSE_WAIT_S):
            self._sender.abandon()

    def _send(self, word: inputs.Input, answer: Callable[[str], B]) -> Future[B]:
        done: Future[B] = Future()

        def reported(error: object | None, message: Any) -> None:
            if not done.set_running_or_notify_cancel():
                return
            if error is None:
                place = f"{topic_of(word)}:{message.partition()}:{message.offset()}"
                done.set_result(answer(place))
            else:
                done.set_exception(NotWritten(f"Expected a durable write, but {error}"))

        self._sender.send(word, reported)
        return done

    def _answer(self) -> None:
        while self._open:
            self._sender.poll(POLL_S)


class KafkaTransport:
    """`Transport` straight to the topics."""

    def __init__(self, kafka: Kafka, who: Identity, *, wait_s: float, reads: Transport) -> None:
        """Connects; `reads` answers what topics cannot."""
        self._requests = KafkaRequests(kafka, who)
        self._wait_s, self._reads = wait_s, reads

    def submit(self, submission: Submission) -> bodies.Submitted:
        """Durable when it returns."""
        return self._written(self._requests.submit(submission))

    def get(
        self, operation: str, *, at_least: str | None, wait_s: float, ended_within_s: float = 0.0
    ) -> bodies.Operation:
        """The operation, as of `at_least` (a position or an input) or later.

        It waits for its end up to `ended_within_s`, but may answer before.
        """
        return self._reads.get(
            operation, at_least=at_least, wait_s=wait_s, ended_within_s=ended_within_s
        )

    def cancel(self, operation: str, *, reason: str) -> str:
        """Durable when it returns. Returns: the input, for `at_least`."""
        return self._written(self._requests.cancel(operation, reason))

    def close(self) -> None:
        """Let go of connections and threads."""
        self._requests.close()
        self._reads.close()

    def _written(self, asked: Future[B]) -> B:
        try:
            return asked.result(self._wait_s)
        except TimeoutError:
            raise _unconfirmed() from None


class AsyncKafkaTransport:
    """`AsyncTransport` straight to the topics."""

    def __init__(
        self, kafka: Kafka, who: Identity, *, wait_s: float, reads: AsyncTransport
    ) -> None:
        """Connects; `reads` answers what topics cannot."""
        self._requests = KafkaRequests(kafka, who)
        self._wait_s, self._reads = wait_s, reads

    async def submit(self, submission: Submission) -> bodies.Submitted:
        """Durable when it returns."""
        return await self._written(self._requests.submit(submission))

    async def get(
        self, operation: str, *, at_least: str | None, wait_s: float, ended_within_s: float = 0.0
    ) -> bodies.Operation:
        """The operation, as of `at_least` (a position or an input) or later.

        It waits for its end up to `ended_within_s`, but may answer before.
        """
        return await self._reads.get(
            operation, at_least=at_least, wait_s=wait_s, ended_within_s=ended_within_s
        )

    async def cancel(self, operation: str, *, reason: str) -> str:
        """Durable when it returns. Returns: the input, for `at_least`."""
        return await self._written(self._requests.cancel(operation, reason))

    async def close(self) -> None:
        """Let go of connections and threads."""
        await asyncio.to_thread(self._requests.close)
        await self._reads.close()

    async def _written(self, asked: Future[B]) -> B:
        try:
            return await asyncio.wait_for(asyncio.wrap_future(asked), self._wait_s)
        except TimeoutError:
            raise _unconfirmed() from None


def _unconfirmed() -> Unreachable:
    return Unreachable("Expected the broker to confirm the write, but it did not yet")
