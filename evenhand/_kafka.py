"""Straight to the topics, for services that speak Kafka anyway; needs the extra `kafka`."""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
    murmur2,
)

from evenhand._transport import Kafka
from evenhand._words import codec, envelope, errors, ids, inputs, journal, topics
from evenhand.errors import LinkLost, Unreachable

ASK_TIMEOUT_S: Final = 10.0
"""At start a broker may still be electing leaders."""
BATCH_MAX: Final = 500
"""Deliveries taken at once: enough to share the cost of a wake-up, about a millisecond of work."""

_LOG = logging.getLogger("evenhand")

_CLIENT: Final = {
    "client.id": "evenhand-sdk",
    "logger": logging.getLogger("librdkafka"),
    # A small request must not wait for the next one.
    "socket.nagle.disable": True,
    # The default grows to 10 s, which would outlast any restart of a broker.
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 500,
    "enable.metrics.push": False,
}
_PRODUCER: Final = {
    "acks": "all",
    "enable.idempotence": True,
    # A result is worth waiting for, however long the broker is away.
    "message.timeout.ms": 0,
    # The first word goes out at once; while it is on its way the next ones gather, since the broker
    # takes the requests of a connection one by one.
    "linger.ms": 0,
    "max.in.flight.requests.per.connection": 1,
    # As Java's client chooses; librdkafka's own default lands in quarantine.
    "partitioner": "murmur2_random",
}
_CONSUMER: Final = {
    # Required by the client and never used: the partition is assigned by hand.
    "group.id": "evenhand-assigned-by-hand",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    # The default jumps silently over what is gone.
    "auto.offset.reset": "error",
    "fetch.min.bytes": 1,
    "fetch.queue.backoff.ms": 1,
}
_ENDS_THE_LINK: Final = {
    KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001 - that is the name confluent_kafka gives it
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
}


def topic_of(word: inputs.Input) -> topics.Topic:
    """The input topic that holds words of this kind."""
    return _TOPIC_OF[type(word)]


_TOPIC_OF: Final = {
    kind: topic for topic in topics.INPUT_TOPICS for kind in topics.TOPICS[topic].holds
}


class KafkaSender:
    """Writes words to a cell's input topics; safe to use from any thread."""

    def __init__(self, kafka: Kafka) -> None:
        """Connects and looks the topics up, without which the first word takes 0.5 s.

        Raises:
            Unreachable: no broker answered, or the cell has no such topics.
        """
        self._producer = Producer(_settings(kafka) | _PRODUCER | dict(kafka.config))
        self._names = {
            kind: topics.full_name(kafka.prefix, ids.CellId(kafka.cell), topic)
            for kind, topic in _TOPIC_OF.items()
        }
        partitions(self._producer, self._names[inputs.OperationSubmitted])

    def send(
        self,
        word: inputs.Input,
        reported: Callable[[KafkaError | None, Message], None] | None = None,
    ) -> None:
        """Hand over; `reported` is called inside `poll` or `flush`. Blocks only on a full queue."""
        name, value, key = self._names[type(word)], codec.encode(word), topics.input_key(word)
        while True:
            try:
                self._producer.produce(name, value, key, on_delivery=reported)
            except BufferError:
                self._producer.poll(0.01)
            else:
                return

    def poll(self, wait_s: float) -> None:
        """Give out reports that have come, waiting for the first."""
        self._producer.poll(wait_s)

    def flush(self, wait_s: float) -> bool:
        """Wait for every report. Returns: whether all came in time."""
        return bool(self._producer.flush(wait_s) == 0)

    def abandon(self) -> None:
        """Forget what could not be written."""
        self._producer.purge()
        self._producer.flush(0)


class TopicReader:
    """Events of one public topic, or of one key in it, each once, from now on or some time ago."""

    def __init__(
        self, kafka: Kafka, topic: topics.Topic, key: str | None = None, *, back_s: float = 0.0
    ) -> None:
        """Fixes the numeric place in every partition; raises as `KafkaSender`."""
        self._consumer = Consumer(_settings(kafka) | _CONSUMER | dict(kafka.config))
        self._key = None if key is None else key.encode()
        self._seen: dict[int, journal.Position] = {}
        name = topics.full_name(kafka.prefix, ids.CellId(kafka.cell), topic)
        count = partitions(self._consumer, name)
        wanted = range(count) if self._key is None else (murmur2(self._key, count),)
        try:
            places = [self._end(TopicPartition(name, partition)) for partition in wanted]
            if back_s:
                places = self._earlier(places, back_s)
        except KafkaException as error:
            raise Unreachable(f"Expected the end of {name}, but: {error.args[0].str()}") from error
        self._consumer.assign(places)

    def read(self, wait_s: float) -> Sequence[Any]:
        """What has come, in order per partition; waits only if nothing has.

        Raises:
            LinkLost: something may have been missed.
        """
        first = self._consumer.poll(wait_s)
        if first is None:
            return ()
        heard = [self._event(message) for message in (first, *self._consumer.consume(BATCH_MAX, 0))]
        return [event for event in heard if event is not None]

    def close(self) -> None:
        """Let go."""
        self._consumer.close()

    def _end(self, place: TopicPartition) -> TopicPartition:
        _, end = self._consumer.get_watermark_offsets(place, timeout=ASK_TIMEOUT_S)
        return TopicPartition(place.topic, place.partition, end)

    def _earlier(self, ends: Sequence[TopicPartition], back_s: float) -> list[TopicPartition]:
        # The broker looks by the world's clock, so there is no other to ask.
        since_ms = int((time.time() - back_s) * 1000)  # noqa: TID251
        wanted = [TopicPartition(one.topic, one.partition, since_ms) for one in ends]
        found = self._consumer.offsets_for_times(wanted, timeout=ASK_TIMEOUT_S)
        # Nothing that young: its place is the end.
        return [place if place.offset >= 0 else end for place, end in zip(found, ends, strict=True)]

    def _event(self, message: Message) -> Any:
        error = message.error()
        if error is not None:
            return self._trouble(error)
        if self._key is not None and message.key() != self._key:
            return None
        partition = cast("int", message.partition())
        position = envelope.position_of(cast("envelope.Headers", message.headers()))
        seen = self._seen.get(partition)
        # A copy, or a stranger's record: neither tells anything new (requirements R166).
        if position is None or (seen is not None and position <= seen):
            return None
        self._seen[partition] = position
        try:
            return codec.decode(message.value() or b"")
        except errors.WordError as unknown:
            _LOG.warning("An event that a newer owner may have written is ignored: %s", unknown)
            return None

    def _trouble(self, error: KafkaError) -> None:
        if error.fatal() or error.code() in _ENDS_THE_LINK:
            raise LinkLost(f"Expected the topic to go on, but: {error.str()}")
        _LOG.info("A topic waits: %s", error)


class KafkaLink:
    """A member's link: what it says goes to the input topics, what it hears is in its inbox."""

    def __init__(self, kafka: Kafka, member: ids.MemberId) -> None:
        """Fixes the numeric place in the inbox; raises as `KafkaSender`."""
        self._sender = KafkaSender(kafka)
        self._inbox = TopicReader(kafka, topics.Topic.DELIVERIES, member)

    def send(self, word: inputs.Input, durable: Callable[[], None] | None = None) -> None:
        """Hand a word over; `durable` is called inside `receive` or `close`."""
        self._sender.send(word, None if durable is None else lambda *_: durable())

    def receive(self, wait_s: float) -> Sequence[Any]:
        """Deliveries to this member in order, each once."""
        self._sender.poll(0)
        return self._inbox.read(wait_s)

    def close(self, wait_s: float) -> None:
        """Wait until every word is durable, at most `wait_s`, and let go."""
        if not self._sender.flush(wait_s):
            _LOG.warning("Some words were not confirmed in %s s and may be lost", wait_s)
            self._sender.abandon()
        self._inbox.close()


class KafkaDecisions:
    """What a reconciler reads and tells."""

    def __init__(self, kafka: Kafka, back_s: float) -> None:
        """Fixes where it reads from; raises as `KafkaSender`."""
        self._sender = KafkaSender(kafka)
        self._reader = TopicReader(kafka, topics.Topic.DECISIONS, back_s=back_s)

    def read(self, wait_s: float) -> Sequence[Any]:
        """Decisions in order per partition, each once."""
        self._sender.poll(0)
        return self._reader.read(wait_s)

    def tell(self, word: inputs.OutcomeEvidence) -> None:
        """Hand it over; it goes out by itself."""
        self._sender.send(word)

    def close(self, wait_s: float) -> None:
        """Wait until every word is durable, at most `wait_s`, and let go."""
        if not self._sender.flush(wait_s):
            self._sender.abandon()
        self._reader.close()


def partitions(client: Producer | Consumer, name: str) -> int:
    """How many partitions the topic has.

    Raises:
        Unreachable: no broker answered, or there is no such topic.
    """
    try:
        found = client.list_topics(name, timeout=ASK_TIMEOUT_S).topics[name]
    except KafkaException as error:
        raise Unreachable(f"Expected a broker to answer, but: {error.args[0].str()}") from error
    if found.error is not None:
        told = found.error.str()
        raise Unreachable(f"Expected topic {name} (evenhand topics apply), but: {told}")
    return len(found.partitions)


def _settings(kafka: Kafka) -> dict[str, Any]:
    return {"bootstrap.servers": kafka.bootstrap, **_CLIENT}
