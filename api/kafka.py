"""Writes inputs to their topics: many requests share a batch, and each waits for its own report."""

import asyncio
from contextlib import suppress
from functools import partial
from threading import Event, Thread

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from schemas.codec import encode
from schemas.ids import CellId
from schemas.inputs import Input
from schemas.topics import RECORD_BYTES_MAX, Topic, full_name, input_key

from .ports import NotWritten, Sent

LINGER_MS = 1
"""Concurrent requests share a broker request, which costs the broker 0.2 ms each."""
REPORT_MS_MAX = 5_000
"""After that nobody knows whether the record is there."""
POLL_SECONDS = 0.1
FLUSH_SECONDS = 5.0


class KafkaSender:
    """`Sender` on a real cluster."""

    def __init__(self, *, bootstrap: str, prefix: str, cell: CellId) -> None:
        self._name = partial(full_name, prefix, cell)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": LINGER_MS,
                "message.timeout.ms": REPORT_MS_MAX,
                "message.max.bytes": RECORD_BYTES_MAX,
                "partitioner": "murmur2_random",
                "socket.nagle.disable": True,
                "log_level": 3,
            }
        )
        # The first record of an idempotent producer waits half a second unless somebody asked
        # the broker something before.
        with suppress(KafkaException):  # it may come later; until then writes say not-written
            self._producer.list_topics(timeout=FLUSH_SECONDS)
        self._stop = Event()
        self._thread = Thread(target=self._report, name="delivery-reports", daemon=True)
        self._thread.start()

    def _report(self) -> None:
        while not self._stop.is_set():
            self._producer.poll(POLL_SECONDS)

    async def send(self, topic: Topic, word: Input) -> Sent:
        """The input on its topic; returns after the delivery report.

        Raises:
            NotWritten: it may be there or not.
        """
        reply: asyncio.Future[Sent] = asyncio.get_running_loop().create_future()
        try:
            self._producer.produce(
                self._name(topic),
                key=input_key(word),
                value=encode(word),
                on_delivery=partial(_deliver, reply, topic),
            )
        except BufferError as error:
            raise NotWritten("the broker is behind") from error
        return await reply

    def close(self) -> None:
        """Wait for what is in flight, for a while, then let go."""
        self._producer.flush(FLUSH_SECONDS)
        self._stop.set()
        self._thread.join()


def _deliver(
    reply: asyncio.Future[Sent], topic: Topic, error: KafkaError | None, message: Message
) -> None:
    """In the thread of the reports: hand the answer to the request's own loop."""
    partition, offset = message.partition(), message.offset()
    outcome: Sent | NotWritten
    if error is not None or partition is None or offset is None or offset < 0:
        outcome = NotWritten("no confirmation came" if error is None else error.str())
    else:
        outcome = Sent(topic, partition, offset)
    reply.get_loop().call_soon_threadsafe(_answer, reply, outcome)


def _answer(reply: asyncio.Future[Sent], outcome: Sent | NotWritten) -> None:
    if reply.done():  # the client has gone
        return
    if isinstance(outcome, NotWritten):
        reply.set_exception(outcome)
    else:
        reply.set_result(outcome)
