"""The public topics on Kafka: two producers, so that deliveries do not linger with the rest."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from schemas.topics import OUTPUT_TOPICS, Topic
from streams.shell.kafka import config
from streams.shell.kafka.journal import abandon, prime
from streams.shell.outbox import Outgoing, PublishFailed

BUFFER_TRIES = 100
BUFFER_WAIT_S = 0.01
"""The loop bounds the lag far below the client's buffer; should it fill, a second is allowed."""


Report = Callable[[KafkaError | None, Message], None]


class _Entry:
    """An entry whose outputs are on their way."""

    __slots__ = ("bytes", "offset", "unreported")

    def __init__(self, offset: int, records: Sequence[Outgoing]) -> None:
        self.offset = offset
        self.unreported = len(records)
        self.bytes = sum(len(record.value) for record in records)


class KafkaOutbox:
    """`Outbox` for one term: no time-out, so nothing is ever skipped; a failure ends the term."""

    def __init__(self, bootstrap: str, names: Mapping[Topic, str]) -> None:
        self._names = names
        self._deliveries = Producer(config.deliveries(bootstrap))
        self._public = Producer(config.public(bootstrap))
        self._producers = {
            topic: self._deliveries if topic == Topic.DELIVERIES else self._public
            for topic in OUTPUT_TOPICS
        }
        self._on_their_way: deque[_Entry] = deque()
        self._rest: list[tuple[Outgoing, Report]] = []
        self._bytes = 0
        self._published = -1
        self._failure: str | None = None
        prime(self._deliveries, names[Topic.DELIVERIES])
        prime(self._public, names[Topic.DECISIONS])

    def publish(self, offset: int, records: Sequence[Outgoing]) -> None:
        """Hand over all outputs of the entry at `offset`; entries come in journal order.

        Deliveries go out at once, whatever else there is when `send_rest` is called.

        Raises:
            PublishFailed: the client refused a record, or its buffer stays full.
        """
        entry = _Entry(offset, records)
        self._on_their_way.append(entry)
        self._bytes += entry.bytes
        reported = partial(self._reported, entry)
        for record in records:
            if record.topic is Topic.DELIVERIES:
                self._produce(record, reported)
            else:
                self._rest.append((record, reported))
        self._deliveries.poll(0)

    def send_rest(self) -> None:
        """Let go out what was handed over and nobody waits for.

        Raises:
            PublishFailed: as `publish`.
        """
        for record, reported in self._rest:
            self._produce(record, reported)
        self._rest.clear()
        self._public.poll(0)

    def published(self, wait_ms: int) -> int:
        """The last entry handed over of which, and of all before it, every output is out.

        Raises:
            PublishFailed: a report said no, now or before.
        """
        for producer in (self._deliveries, self._public):
            producer.poll(wait_ms / 1_000 if wait_ms and len(producer) else 0)
        if self._failure is not None:
            raise PublishFailed(self._failure)
        entries = self._on_their_way
        while entries and entries[0].unreported == 0:
            entry = entries.popleft()
            self._published = entry.offset
            self._bytes -= entry.bytes
        return self._published

    def lag(self) -> tuple[int, int]:
        """Entries and bytes handed over and not yet known to be out."""
        return len(self._on_their_way), self._bytes

    def close(self) -> None:
        """Purge what is unsent; does not wait."""
        abandon(self._deliveries)
        abandon(self._public)

    def _produce(self, record: Outgoing, reported: Report) -> None:
        producer, name = self._producers[record.topic], self._names[record.topic]
        for _ in range(BUFFER_TRIES):
            try:
                producer.produce(
                    name, record.value, record.key, headers=record.headers, on_delivery=reported
                )
            except BufferError:
                producer.poll(BUFFER_WAIT_S)
            except KafkaException as error:
                raise PublishFailed(str(error)) from error
            else:
                return
        raise PublishFailed("Expected room in the client's buffer, but it stays full")

    def _reported(self, entry: _Entry, error: KafkaError | None, message: Message) -> None:
        if error is not None and self._failure is None:
            self._failure = f"{message.topic()}:{message.partition()}: {error}"
        entry.unreported -= 1
