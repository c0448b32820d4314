"""The topics of a cell in memory: what producers and the owner would have put there."""

from collections.abc import Iterator
from typing import Any

from evenhand.audit._kafka import partition_of
from evenhand.audit.logs import LogTrimmed, Record
from schemas import codec
from schemas.entry import Entry, EntryEvent, InputRun
from schemas.envelope import Envelopes
from schemas.ids import CellId, OwnerId, StateHash
from schemas.topics import INPUT_TOPICS, TOPICS, Topic, input_key, routes
from schemas.units import Millis

__all__ = ["CELL", "PARTITIONS", "Logs", "extending", "partition_of"]

CELL = CellId("c")
PARTITIONS = 2


def extending(head: Any, offset: int, runs: Any, events: Any) -> Any:
    """The next entry of the same term after `head` at `offset`, genesis if there is none."""
    return Entry(
        generation=1,
        previous=offset,
        height=0 if head is None else head.height + 1,
        epoch=1 if head is None else head.epoch,
        owner=OwnerId(b"o" * 16) if head is None else head.owner,
        takeover=False,
        time_ms=Millis(0),
        clock_shift_ms=Millis(0),
        time_step_ms=None,
        published=offset,
        core_version=1,
        state_hash=StateHash(bytes(32)),
        inputs=tuple(runs),
        events=tuple(EntryEvent(cause=c, body=codec.encode(event)) for c, event in events),
    )


class Logs:
    """`Logs` in memory; a trimmed partition begins later."""

    def __init__(self) -> None:
        self.records: dict[tuple[Topic, int], list[Record]] = {}
        self.starts: dict[tuple[Topic, int], int] = {}

    def partitions(self, topic: Topic) -> int:
        return 1 if TOPICS[topic].single_partition else PARTITIONS

    def start(self, topic: Topic, partition: int) -> int:
        return self.starts.get((topic, partition), 0)

    def read(self, topic: Topic, partition: int, first: int) -> Iterator[Record]:
        if first < self.start(topic, partition):
            raise LogTrimmed(f"{topic}:{partition}:{first}")
        records = self.records.get((topic, partition), [])
        return iter([record for record in records if record.offset >= first])

    def append(
        self, topic: Topic, partition: int, key: bytes | None, value: bytes, headers: Any = None
    ) -> int:
        records = self.records.setdefault((topic, partition), [])
        offset = records[-1].offset + 1 if records else 0
        records.append(Record(offset, key, value, headers))
        return offset

    def ask(self, word: Any, *, key: bytes | None = None, partition: int | None = None) -> InputRun:
        """Put an input on its topic; raw bytes go to `submissions`."""
        raw = isinstance(word, bytes)
        topic = Topic.SUBMISSIONS if raw else next(t for t in INPUT_TOPICS if _holds(t, word))
        if key is None:
            key = b"t" if raw else input_key(word).encode()
        if partition is None:
            partition = partition_of(key, PARTITIONS)
        offset = self.append(topic, partition, key, word if raw else codec.encode(word))
        number = INPUT_TOPICS.index(topic)
        return InputRun(topic=number, partition=partition, first=offset, next=offset + 1)

    def publish(self, entry: Entry, offset: int) -> None:
        """The copies of an entry, as the owner publishes them."""
        envelopes = Envelopes(CELL, entry.generation, offset)
        for index, recorded in enumerate(entry.events):
            event = codec.decode(recorded.body)
            headers = envelopes.headers(index, kind=type(event), cause="test")
            stored = [(name, str(value).encode()) for name, value in headers]
            for topic, key in routes(event):
                partition = partition_of(key.encode(), PARTITIONS)
                self.append(topic, partition, key.encode(), recorded.body, stored)


def _holds(topic: Topic, word: Any) -> bool:
    return isinstance(word, TOPICS[topic].holds)
