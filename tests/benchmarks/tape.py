"""What a stretch of a cell's life put on its topics: read back, so that it can be carried again."""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import Consumer, TopicPartition

from schemas import events as e
from schemas.codec import decode
from schemas.entry import Entry
from schemas.inputs import ResultReported, StartRequested
from schemas.journal import Position
from schemas.topics import INPUT_TOPICS, OUTPUT_TOPICS, Topic, full_name, routes
from streams.shell.kafka.inputs import HURRIED
from tests.benchmarks import raw
from tests.benchmarks.cell import CELL
from tests.support.kafka import Got, read_all

READERS = (
    HURRIED,
    tuple(topic for topic in INPUT_TOPICS if topic not in {*HURRIED, Topic.SUBMISSIONS}),
    (Topic.SUBMISSIONS,),
)
"""What each of the owner's three consumers reads."""

SLACK_MS = 1_000
"""No input waits longer for its entry where nothing is under way."""

_ANSWERED_BY = {e.GrantIssued: StartRequested, e.StartAccepted: ResultReported}


class Record(NamedTuple):
    """As its producer sent it."""

    topic: Topic
    key: str | None
    value: bytes
    headers: dict[str, str]


class Step(NamedTuple):
    """One entry with its causes and consequences."""

    entry: bytes
    needs: tuple[int, ...]
    """How many records of each of `READERS` it took."""
    deliveries: list[Record]
    copies: list[Record]
    """All other public records of it, in its order."""


class Tape(NamedTuple):
    """A stretch that begins and ends with nothing under way."""

    steps: list[Step]
    submissions: list[Record]
    """In the order in which they were sent."""
    answers: dict[bytes, Record]
    """By a delivery's value: the start or the result that follows it."""
    others: list[Record]
    """Inputs that wait for nothing: heartbeats."""

    def records(self) -> Iterable[Record]:
        """Everything but the entries."""
        yield from (*self.submissions, *self.answers.values(), *self.others)
        for step in self.steps:
            yield from (*step.deliveries, *step.copies)


def journal_end(bootstrap: str, prefix: str) -> int:
    """The offset after the last entry of a cell now."""
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench"})
    place = TopicPartition(full_name(prefix, CELL, Topic.JOURNAL), 0)
    _, end = reader.get_watermark_offsets(place, timeout=raw.WAIT_S)
    reader.close()
    return end


def read(bootstrap: str, prefix: str, stretch: range) -> Tape:
    """The tape of these offsets of a cell's journal.

    Raises:
        AssertionError: a record that an entry took or made is not there, or nothing caused it.
    """
    journal = read_all(bootstrap, full_name(prefix, CELL, Topic.JOURNAL))
    entries = {got.offset: got.value or b"" for got in journal if got.offset in stretch}
    assert len(entries) == len(stretch), f"Expected the entries {stretch}"
    first_ms = next(got.append_ms for got in journal if got.offset == stretch.start)
    return wind(entries, everything(bootstrap, prefix, since_ms=first_ms - SLACK_MS))


def everything(
    bootstrap: str, prefix: str, *, since_ms: int | None = None
) -> dict[Topic, list[Got]]:
    """All records of a cell but its pulses, or those that are not older."""
    return {
        topic: read_all(bootstrap, full_name(prefix, CELL, topic), since_ms=since_ms)
        for topic in (*INPUT_TOPICS, Topic.JOURNAL, *OUTPUT_TOPICS)
    }


def wind(entries: Mapping[int, bytes], found: Mapping[Topic, Sequence[Got]]) -> Tape:
    """As `read`: these entries by offset, and what of these records is theirs."""
    decoded: dict[int, Entry] = {offset: decode(value) for offset, value in entries.items()}
    taken = _taken(decoded.values(), found)
    made = _made(decoded, found)
    by_reader = [{INPUT_TOPICS.index(topic) for topic in topics} for topics in READERS]
    steps = [
        Step(
            value,
            tuple(
                sum(run.next - run.first for run in decoded[offset].inputs if run.topic in numbers)
                for numbers in by_reader
            ),
            [record for record in made[offset] if record.topic is Topic.DELIVERIES],
            [record for record in made[offset] if record.topic is not Topic.DELIVERIES],
        )
        for offset, value in entries.items()
    ]
    delivered = [record.value for step in steps for record in step.deliveries]
    asked = [record for topic in HURRIED for record in taken[topic]]
    others = [record for topic in READERS[1] for record in taken[topic]]
    return Tape(steps, taken[Topic.SUBMISSIONS], _answers(delivered, asked), others)


def differences(tape: Tape, found: Mapping[Topic, Iterable[Got]]) -> dict[Topic, int]:
    """How many records of each topic are on the tape or were found, but not as often in the other.

    Every byte of key, value and headers counts; empty if all was carried and nothing else.
    """
    wanted: dict[Topic, Counter[Any]] = {topic: Counter() for topic in found}
    for record in tape.records():
        wanted[record.topic][_bytes(record)] += 1
    wanted[Topic.JOURNAL].update((None, step.entry) for step in tape.steps)
    unlike = {}
    for topic, records in found.items():
        there = Counter(_bytes(_record(topic, got)) for got in records)
        unlike[topic] = (wanted[topic] - there).total() + (there - wanted[topic]).total()
    return {topic: count for topic, count in unlike.items() if count}


def _bytes(record: Record) -> tuple[Any, ...]:
    return record.key, record.value, *record.headers.items()


def _record(topic: Topic, got: Got) -> Record:
    """Names and keys are shared by all records, as in the memory of whoever made them."""
    assert got.value is not None, f"Expected a value on {topic}"
    headers = {sys.intern(name): value for name, value in got.headers.items()}
    return Record(topic, got.key and sys.intern(got.key), got.value, headers)


def _taken(
    entries: Iterable[Entry], found: Mapping[Topic, Sequence[Got]]
) -> dict[Topic, list[Record]]:
    """What these entries took of each topic, in the order in which it was sent."""
    places = {
        (INPUT_TOPICS[run.topic], run.partition, offset)
        for entry in entries
        for run in entry.inputs
        for offset in range(run.first, run.next)
    }
    taken = {}
    for topic in INPUT_TOPICS:
        own = [got for got in found[topic] if (topic, got.partition, got.offset) in places]
        taken[topic] = [_record(topic, got) for got in sorted(own, key=lambda got: got.append_ms)]
    count = sum(map(len, taken.values()))
    assert count == len(places), f"Expected {len(places)} inputs that were taken, got {count}"
    return taken


def _made(
    entries: Mapping[int, Entry], found: Mapping[Topic, Sequence[Got]]
) -> dict[int, list[Record]]:
    """The public records of each entry, in its order."""
    made: defaultdict[int, list[tuple[int, Record]]] = defaultdict(list)
    for topic in OUTPUT_TOPICS:
        for got in found[topic]:
            at = Position.parse(got.headers["position"])
            if at.offset in entries:
                made[at.offset].append((at.index, _record(topic, got)))
    for offset, entry in entries.items():
        count = sum(len(routes(decode(event.body))) for event in entry.events)
        assert len(made[offset]) == count, f"Expected {count} public records of entry {offset}"
    return {
        offset: [record for _, record in sorted(records, key=lambda pair: pair[0])]
        for offset, records in made.items()
    }


def _answers(delivered: Iterable[bytes], asked: Iterable[Record]) -> dict[bytes, Record]:
    left: dict[Any, Record] = {}
    for record in asked:
        word = decode(record.value)
        left[type(word), word.operation] = record
    answers = {}
    for value in delivered:
        word = decode(value)
        if (cause := _ANSWERED_BY.get(type(word))) is not None:
            answers[value] = left.pop((cause, word.operation))
    assert not left, f"Expected a delivery before each start and result, but {len(left)} have none"
    return answers
