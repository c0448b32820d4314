"""The topics of a cell on a real cluster, read in stretches by one consumer."""

from collections.abc import Iterator
from typing import Any, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition, murmur2

from schemas.envelope import Headers
from schemas.ids import CellId
from schemas.topics import OUTPUT_TOPICS, Topic, full_name

from .logs import LogSilent, LogTrimmed, Record

ANSWER_SECONDS = 15.0
"""How long the broker may take for one answer; an audit can wait."""
STRETCH_MAX = 2_000
"""Records fetched at once from a partition: bounds memory over all partitions together."""
JOURNAL_STRETCH_MAX = 200
"""Entries are larger than other records."""
_GONE = frozenset(
    (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)  # noqa: SLF001 - its own names
)


def partition_of(key: bytes, partitions: int) -> int:
    """The partition of a key, as Java's client has it."""
    return int(murmur2(key, partitions))


class KafkaLogs:
    """`Logs` on a real cluster."""

    def __init__(self, *, bootstrap: str, prefix: str, cell: CellId) -> None:
        self._bootstrap = bootstrap
        self._names = {topic: full_name(prefix, cell, topic) for topic in Topic}
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"{prefix}.{cell}.audit",  # required; nothing is committed
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_uncommitted",
                "auto.offset.reset": "error",
                "fetch.queue.backoff.ms": 1,
                # A question for an end waits behind the fetch before it, 500 ms by default.
                "fetch.wait.max.ms": 10,
                # A stretch is read by seeking: what lies behind it would be fetched for nothing.
                "fetch.message.max.bytes": 1 << 20,
                "queued.min.messages": STRETCH_MAX,
                "log_level": 2,  # whoever asks is told why nothing answers, and once
            }
        )
        self._partitions: dict[Topic, int] = {}

    def partitions(self, topic: Topic) -> int:
        """How many partitions the topic has."""
        if topic not in self._partitions:
            name = self._names[topic]
            try:
                found: Any = self._consumer.list_topics(name, ANSWER_SECONDS).topics[name]
            except KafkaException as error:
                raise self._silent(name, error.args[0]) from error
            if found.error is not None:
                raise self._silent(name, found.error)
            self._partitions[topic] = len(found.partitions)
        return self._partitions[topic]

    def start(self, topic: Topic, partition: int) -> int:
        """The first offset that is still there."""
        return self._ends(topic, partition)[0]

    def read(self, topic: Topic, partition: int, first: int) -> Iterator[Record]:
        """The records from `first` on, up to the end as it is now.

        Raises:
            LogTrimmed: `first` is gone.
        """
        start, end = self._ends(topic, partition)
        if first < start:
            name = self._names[topic]
            raise LogTrimmed(f"Expected {name} from {first} on, but it begins at {start}")
        return self._stretches(topic, partition, first, end)

    def close(self) -> None:
        """Let go of the consumer."""
        self._consumer.close()

    def _stretches(self, topic: Topic, partition: int, first: int, end: int) -> Iterator[Record]:
        limit = JOURNAL_STRETCH_MAX if topic is Topic.JOURNAL else STRETCH_MAX
        while first < end:
            stretch = self._stretch(topic, partition, first, min(limit, end - first))
            yield from stretch
            if not stretch:
                return
            first = stretch[-1].offset + 1

    def _stretch(self, topic: Topic, partition: int, first: int, limit: int) -> list[Record]:
        """At most `limit` records from `first` on; empty at the end of the partition."""
        self._consumer.assign([TopicPartition(self._names[topic], partition, first)])
        found: list[Record] = []
        while len(found) < limit:
            message = self._consumer.poll(ANSWER_SECONDS)
            if message is None:
                raise LogSilent(f"Expected {self._names[topic]}:{partition} from {first} on")
            for each in (message, *self._consumer.consume(limit - len(found) - 1, 0)):
                record = _record(each, headers=topic in OUTPUT_TOPICS)
                if record is None:
                    return found
                found.append(record)
        return found

    def _ends(self, topic: Topic, partition: int) -> tuple[int, int]:
        place = TopicPartition(self._names[topic], partition)
        try:
            start, end = self._consumer.get_watermark_offsets(place, timeout=ANSWER_SECONDS)
        except KafkaException as error:
            raise self._silent(f"{place.topic}:{partition}", error.args[0]) from error
        return start, end

    def _silent(self, place: str, error: KafkaError) -> LogSilent:
        return LogSilent(f"Expected {place} at {self._bootstrap}, but: {error.str()}")


def _record(message: Message, *, headers: bool) -> Record | None:
    """The record in a message; None for the end of the partition.

    Reading headers costs as much as all the rest of a record, and only public records need them.
    """
    error = message.error()
    if error is not None:
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
            return None
        if error.code() in _GONE:
            raise LogTrimmed(f"{message.topic()}:{message.partition()}: {error.str()}")
        raise LogSilent(f"{message.topic()}:{message.partition()}: {error.str()}")
    offset, key, value = message.offset(), message.key(), message.value()
    assert offset is not None, "Expected a consumed record to have an offset"
    found = cast("Headers | None", message.headers()) if headers else None
    return Record(offset, key, value, found)
