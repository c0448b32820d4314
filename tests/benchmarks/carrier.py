"""The part of the owner on a tape: it takes, appends and publishes, and decides nothing."""

import gc
import pickle
import signal
import sys
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from schemas.topics import PARTITIONS, Topic, full_name
from streams.shell.kafka import config
from streams.shell.kafka.journal import prime
from streams.shell.ports import Timing
from tests.benchmarks import raw
from tests.benchmarks.cell import CELL
from tests.benchmarks.tape import READERS, Record, Step

READY, DONE = "ready", "done"
AT_ONCE = 1_000

Send = tuple[str, bytes, str | None, dict[str, str]]


class Reader:
    """One of the owner's consumers; records are counted and not looked into."""

    def __init__(self, settings: config.Config, names: list[str]) -> None:
        self._consumer = Consumer(settings)
        self._consumer.assign(
            [TopicPartition(name, number, 0) for name in names for number in range(PARTITIONS)]
        )
        self._consumer.poll(0.2)  # the first fetch is on its way before anything is timed
        self._left = 0

    def wait_for(self, count: int) -> None:
        """Until so many more have come than were waited for."""
        ends_at = time.monotonic() + raw.WAIT_S
        while self._left < count:
            assert time.monotonic() < ends_at, f"Expected {count - self._left} more records"
            if (first := self._consumer.poll(0.1)) is not None:
                assert not first.error(), f"Expected a record, but {first.error()}"
                self._left += 1 + len(self._consumer.consume(AT_ONCE, 0))
        self._left -= count


def main(bootstrap: str, prefix: str, steps: str) -> None:
    """Until it is ended from outside; says when it is ready, and when all is out."""
    gc.disable()
    names = {topic: full_name(prefix, CELL, topic) for topic in Topic}
    taped: list[Step] = pickle.loads(Path(steps).read_bytes())
    played = [
        (one.entry, one.needs, _sends(one.deliveries, names), _sends(one.copies, names))
        for one in taped
    ]
    journal = Producer(config.journal_writer(bootstrap, Timing().append_timeout_ms))
    deliveries = Producer(config.deliveries(bootstrap))
    public = Producer(config.public(bootstrap))
    for producer in (journal, deliveries, public):
        prime(producer, names[Topic.JOURNAL])
    settings = (config.urgent, config.urgent, config.submissions)
    readers = [
        Reader(made(bootstrap), [names[topic] for topic in topics])
        for made, topics in zip(settings, READERS, strict=True)
    ]
    _say(READY)
    for entry, needs, delivered, copied in played:
        for reader, count in zip(readers, needs, strict=True):
            if count:
                reader.wait_for(count)
        journal.produce(names[Topic.JOURNAL], entry, partition=0)
        assert journal.flush(raw.WAIT_S) == 0, "Expected the entry to be acknowledged"
        for name, value, key, headers in delivered:
            deliveries.produce(name, value, key, headers=headers)
        deliveries.poll(0)
        for name, value, key, headers in copied:
            public.produce(name, value, key, headers=headers)
        public.poll(0)
    assert deliveries.flush(raw.WAIT_S) + public.flush(raw.WAIT_S) == 0, "Expected all to be out"
    _say(DONE)
    signal.pause()


def _say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def _sends(records: list[Record], names: dict[Topic, str]) -> list[Send]:
    return [(names[one.topic], one.value, one.key, one.headers) for one in records]


if __name__ == "__main__":
    main(*sys.argv[1:])
