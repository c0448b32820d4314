"""A cell on a real broker, as a test sees it: send inputs, read topics, nothing of the shell."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined] # re-exported, not listed
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)
from confluent_kafka.cimpl import NewTopic

from schemas.codec import encode
from schemas.ids import CellId
from schemas.topics import Topic, full_name, input_key

PARTITIONS = 3
"""Few, so that a cell's topics are made in a tenth of a second; more than one, so order counts."""
DEADLINE_S = 20.0

MAIN = CellId("main")

T = TypeVar("T")


class Got(NamedTuple):
    """One record as any consumer gets it."""

    partition: int
    offset: int
    append_ms: int
    key: str | None
    value: bytes | None
    headers: dict[str, str]


def until(probe: Callable[[], T | None], what: str, timeout_s: float = DEADLINE_S) -> T:
    """The first answer that is neither None nor False; fails with `what` after the bound."""
    ends_at = time.monotonic() + timeout_s
    while True:
        answer = probe()
        if answer is not None and answer is not False:
            return answer
        if time.monotonic() >= ends_at:
            raise AssertionError(f"Expected {what} within {timeout_s:g} s")
        time.sleep(0.02)


@dataclass
class Log:
    """Topics of one cluster, written by anybody and read from their beginning to their end."""

    bootstrap: str
    prefix: str
    cell: CellId = MAIN

    def name(self, topic: Topic) -> str:
        return full_name(self.prefix, self.cell, topic)

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap})

    @cached_property
    def producer(self) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "partitioner": "murmur2_random",
                "linger.ms": 0,
                "message.max.bytes": 8 * 1024 * 1024,
            }
        )

    def send(
        self,
        topic: Topic,
        *words: Any,
        key: str | None = None,
        partition: int | None = None,
        raw: bytes | None = None,
    ) -> list[tuple[int, int]]:
        """Words under their own keys, or `raw` under any; partitions and offsets in order."""
        landed: dict[int, tuple[int, int]] = {}

        def reported(index: int, error: KafkaError | None, message: Message) -> None:
            assert error is None, error
            landed[index] = (_known(message.partition()), _known(message.offset()))

        values: list[tuple[bytes | None, str | None]] = [
            (encode(word), input_key(word) if key is None else key) for word in words
        ]
        for index, (value, own_key) in enumerate(values or [(raw, key)]):
            self.producer.produce(
                self.name(topic),
                value,
                own_key,
                partition=-1 if partition is None else partition,
                on_delivery=partial(reported, index),
            )
        assert self.producer.flush(DEADLINE_S) == 0, "Expected the broker to take the records"
        return [landed[index] for index in range(len(landed))]

    def read(self, topic: Topic) -> list[Got]:
        """All records of the topic up to its present end, partition by partition."""
        return read_all(self.bootstrap, self.name(topic))

    def create(self, name: str, config: dict[str, str] | None = None) -> None:
        """A topic of one partition."""
        topic = NewTopic(name, 1, 1, config=config or {})
        for future in self.admin.create_topics([topic]).values():
            future.result()
        until(lambda: self._has_leaders(name), f"leaders of {name}")

    def delete(self, *names: str) -> None:
        """Gone when it returns."""
        for future in self.admin.delete_topics(list(names)).values():
            future.result()
        until(
            lambda: not set(names) & set(self.admin.list_topics(timeout=DEADLINE_S).topics),
            f"{names} to be gone",
        )

    def exists(self, name: str) -> bool:
        """Whether there is such a topic; asking makes none."""
        return name in self.admin.list_topics(timeout=DEADLINE_S).topics

    def trim(self, topic: Topic, partition: int, before: int) -> None:
        """Delete records before an offset, as retention does."""
        place = TopicPartition(self.name(topic), partition, before)
        for future in self.admin.delete_records([place]).values():
            future.result()

    def configure(self, topic: Topic, setting: str, value: str) -> None:
        """Change one setting of a topic, and wait until it is in force."""
        change = ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(
            ConfigResource.Type.TOPIC, self.name(topic), incremental_configs=[change]
        )
        for future in self.admin.incremental_alter_configs([resource]).values():
            future.result()
        until(lambda: self._setting(topic, setting) == value, f"{setting}={value}")

    def _setting(self, topic: Topic, setting: str) -> str:
        resource = ConfigResource(ConfigResource.Type.TOPIC, self.name(topic))
        (future,) = self.admin.describe_configs([resource]).values()
        return str(future.result()[setting].value)

    def _has_leaders(self, name: str) -> bool:
        partitions = self.admin.list_topics(name, timeout=DEADLINE_S).topics[name].partitions
        return bool(partitions) and all(p.leader >= 0 for p in partitions.values())


def read_all(bootstrap: str, name: str, *, since_ms: int | None = None) -> list[Got]:
    """All records of a topic up to its present end, or from the first that is so new on."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "test",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_uncommitted",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
        }
    )
    try:
        partitions = consumer.list_topics(name, timeout=DEADLINE_S).topics[name].partitions
        places = [TopicPartition(name, n, since_ms or OFFSET_BEGINNING) for n in partitions]
        if since_ms is not None:
            places = consumer.offsets_for_times(places, timeout=DEADLINE_S)
        consumer.assign(places)
        records: dict[int, list[Got]] = {number: [] for number in partitions}
        reading = set(partitions)
        ends_at = time.monotonic() + DEADLINE_S
        while reading:
            assert time.monotonic() < ends_at, f"Expected the end of {name}"
            for message in _polled(consumer):
                error = message.error()
                if error is None:
                    got = _got(message)
                    records[got.partition].append(got)
                elif error.code() == KafkaError._PARTITION_EOF:
                    reading.discard(_known(message.partition()))
        return [message for number in sorted(records) for message in records[number]]
    finally:
        consumer.close()


def _got(message: Message) -> Got:
    key, value = message.key(), message.value()
    headers = {pair[0]: pair[1] for pair in message.headers() or ()}
    return Got(
        _known(message.partition()),
        _known(message.offset()),
        message.timestamp()[1],
        key.decode() if isinstance(key, bytes) else key,
        value.encode() if isinstance(value, str) else value,
        {name: v.decode() for name, v in headers.items() if isinstance(v, bytes)},
    )


def _known(number: int | None) -> int:
    assert number is not None, "Expected a record with a place"
    return number


def _polled(consumer: Consumer) -> Iterable[Message]:
    first = consumer.poll(0.5)
    return () if first is None else (first, *consumer.consume(1_000, 0))
