"""What the inputs of an entry were: the records behind its runs, read by a rule of our own.

A record is an input if its key is not empty and lies on its partition, its value is a word of a
bounded size that belongs on the topic, and key and body name the same owner. Everything else is
quarantined (R153).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, cast

from schemas import codec
from schemas.entry import Entry
from schemas.errors import WordError
from schemas.inputs import Input, ResultReported
from schemas.topics import INPUT_BYTES_MAX, INPUT_TOPICS, TOPICS, Topic, input_key

from .logs import Logs, Record
from .records import OUTCOMES

PartitionOf = Callable[[bytes, int], int]
"""Partition of a key among so many, as murmur2 has it."""


class Asked(NamedTuple):
    """One input record taken by an entry."""

    topic: Topic
    partition: int
    offset: int
    word: Input | None
    """None if it cannot be read, or is gone."""
    gone: bool = False
    """True if retention has removed the record: nothing is known of it."""


class _Stream:
    """One input partition, read forward only."""

    def __init__(self, logs: Logs, topic: Topic, partition: int) -> None:
        self.next = 0
        """Up to where entries have taken it."""
        self._topic = topic
        self._partition = partition
        self._start = logs.start(topic, partition)
        self._count = logs.partitions(topic)
        self._records: Iterator[Record] = logs.read(topic, partition, self._start)
        self._ahead: Record | None = next(self._records, None)

    def take(self, first: int, end: int, partition_of: PartitionOf) -> Iterator[Asked]:
        """The records at `first` and after, before `end`."""
        for offset in range(first, min(end, self._start)):
            yield Asked(self._topic, self._partition, offset, None, gone=True)
        while (record := self._ahead) is not None and record.offset < end:
            if record.offset >= first:
                word = self._word(record, partition_of)
                yield Asked(self._topic, self._partition, record.offset, word)
            self._ahead = next(self._records, None)

    def skipped(self, first: int) -> bool:
        """Whether a record lies between what was taken and `first`."""
        return self._ahead is not None and max(self.next, self._start) <= self._ahead.offset < first

    def left(self) -> int:
        """How many records nobody has taken; reads to the end."""
        left = 0
        while self._ahead is not None:
            left += self._ahead.offset >= self.next
            self._ahead = next(self._records, None)
        return left

    def _word(self, record: Record, partition_of: PartitionOf) -> Input | None:
        if not record.key or record.value is None or len(record.value) > INPUT_BYTES_MAX:
            return None
        if partition_of(record.key, self._count) != self._partition:
            return None
        try:
            word: Any = codec.decode(record.value)
        except WordError:
            return None
        if not isinstance(word, TOPICS[self._topic].holds):
            return None
        if isinstance(word, ResultReported) and word.outcome not in OUTCOMES:
            return None
        asked = cast("Input", word)
        return asked if input_key(asked).encode() == record.key else None


class Inputs:
    """All input partitions of a cell, in the order in which the journal takes them."""

    def __init__(self, logs: Logs, partition_of: PartitionOf) -> None:
        self._logs = logs
        self._partition_of = partition_of
        self._streams: dict[tuple[int, int], _Stream] = {}

    def taken(self, entry: Entry, found: Callable[[str], None]) -> Sequence[Asked]:
        """The records behind the entry's runs, in the order taken.

        Args:
            entry: the next accepted one.
            found: told when a run repeats, or passes over, a record.
        """
        taken: list[Asked] = []
        for run in entry.inputs:
            stream = self._stream(run.topic, run.partition)
            place = f"{INPUT_TOPICS[run.topic]}:{run.partition}"
            if run.first < stream.next:
                found(f"Expected {place} taken from {stream.next} on, but {run.first} came again")
            elif stream.skipped(run.first):
                found(
                    f"Expected {place} taken from {stream.next} on, but it goes on at {run.first}"
                )
            taken.extend(stream.take(run.first, run.next, self._partition_of))
            stream.next = max(stream.next, run.next)
        return taken

    def left(self) -> int:
        """How many records lie on the input topics that no entry has taken."""
        for number, topic in enumerate(INPUT_TOPICS):
            for partition in range(self._logs.partitions(topic)):
                self._stream(number, partition)
        return sum(stream.left() for stream in self._streams.values())

    def _stream(self, number: int, partition: int) -> _Stream:
        place = (number, partition)
        if place not in self._streams:
            self._streams[place] = _Stream(self._logs, INPUT_TOPICS[number], partition)
        return self._streams[place]
