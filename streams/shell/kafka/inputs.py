"""The input topics on Kafka: three consumers, so that neither burst nor silence costs the rest."""

import logging
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from confluent_kafka import Consumer, Message, TopicPartition, murmur2

from schemas.codec import decode
from schemas.codes import Code
from schemas.errors import Undecodable, UnknownSchema
from schemas.inputs import Input
from schemas.topics import INPUT_BYTES_MAX, INPUT_TOPICS, TOPICS, Topic, input_key
from streams.core.outcomes import Source, Taken, Unreadable
from streams.shell.inputs import InputTrimmed, Place
from streams.shell.kafka import config
from streams.shell.kafka.admin import Asked, KafkaAdmin

_LOG = logging.getLogger(__name__)

URGENCY = (
    Topic.STARTS,
    Topic.RESULTS,
    Topic.CANCELLATIONS,
    Topic.MEMBERS,
    Topic.CONTROL,
)
"""A provider's slot is idle while a start or a result waits, so these come first."""

HURRIED = URGENCY[:2]
"""Read by a consumer of their own: the broker pays for every partition that a fetch names, and the
rest are mostly silent."""

_SLICE_S, _IDLE_SLICE_S = 0.001, 0.005
"""Only one consumer can be waited for: the hurried one wakes at once, the others are looked at
after each slice."""
_IDLE_AFTER_S = 1.0
"""After this long without input the others may be noticed 5 ms late, for a quarter of the CPU."""

LINE_MAX, LINE_LOW = 1_024, 256
"""A partition with more submissions in memory is paused until it has fewer: what it holds back is
fetched once more, and in return the others' submissions never stand behind its burst."""
MOVED_PER_TAKE_MAX = 256

PROBE_EVERY_S = 0.5
READABLE_FOR_S = 1.5
"""Idle partitions say nothing, so their ends are asked; this long after an answer all is well."""


class InputTopic(NamedTuple):
    """What a record of one input topic is checked against."""

    number: int
    """Its place in `INPUT_TOPICS`."""
    rank: int
    """Its place in `URGENCY`; submissions come last."""
    partitions: int
    holds: tuple[type, ...]


def input_topic(topic: Topic, partitions: int) -> InputTopic:
    """The checks for a topic with this many partitions."""
    rank = URGENCY.index(topic) if topic in URGENCY else len(URGENCY)
    return InputTopic(INPUT_TOPICS.index(topic), rank, partitions, TOPICS[topic].holds)


def read_input(
    topic: InputTopic, partition: int, key: bytes | None, value: bytes | None
) -> Input | Unreadable:
    """The word in a record, or why nobody may act on it (requirements R153).

    The same bytes at the same place always give the same answer, so a replay may ask again.
    """
    if not value:
        return Unreadable(Code.MALFORMED, "Expected a value, but it is empty")
    if len(value) > INPUT_BYTES_MAX:
        detail = f"Expected at most {INPUT_BYTES_MAX} bytes, but got {len(value)}"
        return Unreadable(Code.INPUT_TOO_LARGE, detail)
    if not key:
        return Unreadable(Code.EMPTY_KEY, "Expected a key, but it is empty")
    home = murmur2(key, topic.partitions)
    if home != partition:
        return Unreadable(Code.WRONG_PARTITION, f"Expected partition {home} (murmur2 of the key)")
    try:
        word: Input = decode(value)
    except UnknownSchema as error:
        return Unreadable(Code.UNKNOWN_SCHEMA, str(error))
    except Undecodable as error:
        return Unreadable(Code.MALFORMED, str(error))
    if not isinstance(word, topic.holds):
        return Unreadable(Code.WRONG_TOPIC, f"{type(word).__name__} does not belong here")
    if input_key(word).encode() != key:
        return Unreadable(Code.KEY_MISMATCH, f"Expected the key {input_key(word)!r}")
    return word


class KafkaInputs:
    """`Inputs` for one term.

    Args:
        names: full name of every input topic.
        partitions: how many each has, fixed at creation.
    """

    def __init__(
        self,
        bootstrap: str,
        admin: KafkaAdmin,
        names: Mapping[Topic, str],
        partitions: Mapping[Topic, int],
    ) -> None:
        self._admin = admin
        self._topics = {names[t]: input_topic(t, partitions[t]) for t in INPUT_TOPICS}
        self._places = {
            (name, partition): Place(topic.number, partition)
            for name, topic in self._topics.items()
            for partition in range(topic.partitions)
        }
        self._submissions_topic = names[Topic.SUBMISSIONS]
        self._hurried_topics = {names[topic] for topic in HURRIED}
        self._bootstrap = bootstrap
        self._hurried: Consumer
        self._rest: Consumer
        self._submissions: Consumer
        self._open: list[Consumer] = []
        self._lines: dict[int, deque[Message]] = {
            partition: deque() for partition in range(partitions[Topic.SUBMISSIONS])
        }
        self._turns: deque[int] = deque()
        """Partitions whose line is not empty, the next to be served first."""
        self._held: list[Message] = []
        """What else was read and did not fit into the last take."""
        self._paused: set[int] = set()
        self._busy_at = time.monotonic()
        self._asked: Asked | None = None
        self._asked_at = self._answered_at = float("-inf")

    def assign(self, positions: Mapping[Place, int]) -> None:
        """Read from these next offsets on; a partition that is not named begins at 0.

        The consumers are made here: one that has idled for seconds gets its first record after
        1.0 to 1.5 s, a fresh one after 0.01 to 0.04 s.
        """
        self.close()
        self._hurried = Consumer(config.urgent(self._bootstrap))
        self._rest = Consumer(config.urgent(self._bootstrap))
        self._submissions = Consumer(config.submissions(self._bootstrap))
        self._open = [self._hurried, self._rest, self._submissions]
        wanted = [
            TopicPartition(name, partition, positions.get(place, 0))
            for (name, partition), place in self._places.items()
        ]
        readers: dict[Consumer, list[TopicPartition]] = {one: [] for one in self._open}
        for place in wanted:
            readers[self._reader_of(place.topic)].append(place)
        for reader, places in readers.items():
            reader.assign(places)

    def take(self, submissions_max: int, wait_ms: int) -> Sequence[Taken]:
        """What has arrived: everything but submissions first, then at most `submissions_max`.

        Raises:
            InputTrimmed: a wanted offset does not exist any more.
        """
        urgent = self._look()
        now = time.monotonic()
        ends_at = now + wait_ms / 1_000
        slice_s = _IDLE_SLICE_S if now - self._busy_at > _IDLE_AFTER_S else _SLICE_S
        while not urgent and not (submissions_max and self._turns) and now < ends_at:
            # The client counts whole milliseconds: a shorter wait would spin.
            first = self._hurried.poll(max(_SLICE_S, min(slice_s, ends_at - now)))
            urgent = [*_records([] if first is None else [first]), *self._look()]
            now = time.monotonic()
        if urgent or self._turns:
            self._busy_at = now
        urgent.sort(key=lambda message: (self._topic_of(message).rank, message.partition()))
        fitting = _fitting(urgent)
        self._held = urgent[fitting:]
        taken = [*urgent[:fitting], *self._in_turn(submissions_max)]
        return [_taken(self._topic_of(message), message) for message in taken]

    def ends(self) -> Mapping[Place, int] | None:
        """The offset after the last record of every partition now; None if one did not answer."""
        found = self._admin.ends(self._places)
        return None if found is None else {self._places[at]: end for at, end in found.items()}

    def readable(self) -> bool:
        """Whether every input partition answered lately."""
        now = time.monotonic()
        if self._asked is not None and self._asked.is_done():
            if self._asked.answers(0) is not None:
                self._answered_at = self._asked_at
            self._asked = None
        if self._asked is None and now - self._asked_at >= PROBE_EVERY_S:
            self._asked, self._asked_at = self._admin.send_ends(self._places), now
        return now - self._answered_at < READABLE_FOR_S

    def close(self) -> None:
        """Let go; does not wait."""
        for consumer in self._open:
            consumer.close()

    def _topic_of(self, message: Message) -> InputTopic:
        return self._topics[str(message.topic())]

    def _reader_of(self, topic: str) -> Consumer:
        if topic == self._submissions_topic:
            return self._submissions
        return self._hurried if topic in self._hurried_topics else self._rest

    def _look(self) -> list[Message]:
        """What there is beside submissions, which are lined up."""
        self._line_up()
        if self._held:
            return self._held
        hurried = self._hurried.consume(config.HURRIED_PER_TAKE_MAX, 0)
        return [*_records(hurried + self._rest.consume(config.REST_PER_TAKE_MAX, 0))]

    def _line_up(self) -> None:
        """Move what was fetched into one line for each partition."""
        for message in _records(self._submissions.consume(MOVED_PER_TAKE_MAX, 0)):
            partition = message.partition()
            assert partition is not None, "Expected every record to have a partition"
            line = self._lines[partition]
            if not line:
                self._turns.append(partition)
            line.append(message)
            if len(line) >= LINE_MAX and partition not in self._paused:
                self._paused.add(partition)
                self._submissions.pause([TopicPartition(self._submissions_topic, partition)])

    def _in_turn(self, limit: int) -> list[Message]:
        """At most `limit` from the heads of the lines, one after the other, then side by side."""
        shares: dict[int, int] = {}
        room = config.TAKE_BYTES_MAX
        while self._turns and limit and room > 0:
            limit -= 1
            partition = self._turns.popleft()
            place = shares.get(partition, 0)
            room -= len(self._lines[partition][place])
            shares[partition] = place + 1
            if shares[partition] < len(self._lines[partition]):
                self._turns.append(partition)
        return [message for partition, n in shares.items() for message in self._leave(partition, n)]

    def _leave(self, partition: int, count: int) -> list[Message]:
        line = self._lines[partition]
        left = [line.popleft() for _ in range(count)]
        if len(line) <= LINE_LOW and partition in self._paused:
            self._paused.discard(partition)
            self._submissions.resume([TopicPartition(self._submissions_topic, partition)])
        return left


def _records(messages: list[Message]) -> Iterator[Message]:
    for message in messages:
        error = message.error()
        if error is None:
            yield message
        elif error.code() == config.OFFSET_GONE:
            # Told once for each partition; after that there would be silence.
            raise InputTrimmed(f"{message.topic()}:{message.partition()}: {error}")
        else:
            # The client tries again by itself; `readable` tells the loop.
            _LOG.warning("input reading: %s", error)


def _fitting(messages: Sequence[Message]) -> int:
    """How many from the first on make one take: the one that reaches its bound is the last."""
    room = config.TAKE_BYTES_MAX
    for count, message in enumerate(messages):
        if room <= 0:
            return count
        room -= len(message)
    return len(messages)


def _taken(topic: InputTopic, message: Message) -> Taken:
    partition, offset = message.partition(), message.offset()
    assert partition is not None, "Expected every record to have a partition"
    assert offset is not None, "Expected every record to have an offset"
    key, value = message.key(), message.value()
    body = read_input(topic, partition, key, value)
    return Taken(Source(topic.number, partition, offset), body)
