"""The journal and its pulses on Kafka: one partition each, appended to and read by offset."""

import logging
import time
from collections.abc import Iterator, Sequence

from confluent_kafka import (
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from streams.shell.journal import AppendFailed, JournalTrimmed, Landing, Record
from streams.shell.kafka import config
from streams.shell.kafka.admin import KafkaAdmin

_LOG = logging.getLogger(__name__)

PULSES_PER_READ_MAX = 1_000

_PARTITION = 0
"""Journal and pulses have one partition: one order for all."""


class _Tail:
    """Where a reader met the end of the log, and the offset after the last record before it.

    They differ after a stranger's transaction, whose markers have offsets and are no records.
    """

    def __init__(self) -> None:
        self.end = 0
        self.after_last_record = 0


class KafkaJournal:
    """`Journal` on a topic of one partition."""

    def __init__(
        self, bootstrap: str, admin: KafkaAdmin, topic: str, append_timeout_ms: int
    ) -> None:
        self._bootstrap = bootstrap
        self._admin = admin
        self._topic = topic
        self._append_timeout_ms = append_timeout_ms
        self._tail = _Tail()

    def topic_id(self) -> str | None:
        """The id that the cluster gave the topic; None if it is not there or nobody answered."""
        found = self._admin.describe([self._topic])
        return found[self._topic].id if found else None

    def start(self) -> int | None:
        """The first offset still there; None if the broker did not answer."""
        found = self._admin.starts([(self._topic, _PARTITION)])
        return found[self._topic, _PARTITION] if found else None

    def end(self) -> int | None:
        """The offset after the last record, asked afresh; None if the broker did not answer."""
        found = self._admin.ends([(self._topic, _PARTITION)])
        if found is None:
            return None
        end = found[self._topic, _PARTITION]
        return self._tail.after_last_record if end == self._tail.end else end

    def reader(self, offset: int) -> "KafkaReader":
        """A reader whose next record is the one at `offset`."""
        return KafkaReader(self._bootstrap, self._topic, offset, self._tail)

    def writer(self) -> "KafkaWriter":
        """A primed producer for one term."""
        return KafkaWriter(self._bootstrap, self._topic, self._append_timeout_ms)


class KafkaWriter:
    """`Writer`: idempotent, every copy acknowledged, one record in flight."""

    def __init__(self, bootstrap: str, topic: str, append_timeout_ms: int) -> None:
        self._topic = topic
        self._producer = Producer(config.journal_writer(bootstrap, append_timeout_ms))
        self._in_flight = False
        self._report: tuple[KafkaError | None, Message] | None = None
        prime(self._producer, topic)

    def send(self, value: bytes) -> None:
        """Hand one record over. One in flight: `landed` must have answered the one before."""
        assert not self._in_flight, "Expected no record in flight"
        self._in_flight = True
        self._report = None
        self._producer.produce(self._topic, value, partition=_PARTITION, on_delivery=self._reported)
        self._producer.poll(0)

    def landed(self, wait_ms: int) -> Landing | None:
        """Where the record in flight landed, or None if that is not known after `wait_ms`.

        Raises:
            AppendFailed: the record may or may not be on the journal.
        """
        ends_at = time.monotonic() + wait_ms / 1_000
        self._producer.poll(0)
        # Other callbacks (logs, errors) end a poll early too, and the client counts whole
        # milliseconds: a shorter wait would spin.
        while self._report is None and (left_s := ends_at - time.monotonic()) > 0:
            self._producer.poll(max(0.001, left_s))
        if self._report is None:
            return None
        error, message = self._report
        if error is not None:
            raise AppendFailed(str(error))
        offset = message.offset()
        kind, append_ms = message.timestamp()
        if offset is None or offset < 0:
            raise AppendFailed("Expected an offset in the report, but it has none")
        if kind != TIMESTAMP_LOG_APPEND_TIME:
            raise AppendFailed("Expected the broker's append time in the report; topic changed?")
        self._in_flight = False
        return Landing(offset, append_ms)

    def close(self) -> None:
        """Purge what is unsent and let go; does not wait. Abandoned records may still land."""
        abandon(self._producer)

    def _reported(self, error: KafkaError | None, message: Message) -> None:
        self._report = (error, message)


class KafkaReader:
    """`Reader` by hand-assigned offset."""

    def __init__(self, bootstrap: str, topic: str, offset: int, tail: _Tail | None = None) -> None:
        self._consumer = Consumer(config.reader(bootstrap))
        self._tail = tail or _Tail()
        self.next_offset = offset
        self._consumer.assign([TopicPartition(topic, _PARTITION, offset)])

    def read(self, limit: int, wait_ms: int) -> Sequence[Record]:
        """The next records, at most `limit`; empty if none came within `wait_ms`.

        Raises:
            JournalTrimmed: the next offset does not exist any more.
        """
        ends_at = time.monotonic() + wait_ms / 1_000
        while True:
            first = self._consumer.poll(max(0.0, ends_at - time.monotonic()))
            if first is None:
                return ()
            # `consume` with a time-out would wait until all of `limit` are there.
            records = list(self._records([first, *self._consumer.consume(limit - 1, 0)]))
            if records or time.monotonic() >= ends_at:
                return records

    def close(self) -> None:
        """Let go; does not wait."""
        self._consumer.close()

    def _records(self, messages: list[Message]) -> Iterator[Record]:
        for message in messages:
            offset = message.offset()
            error = message.error()
            if error is None:
                assert offset is not None, "Expected every record to have an offset"
                self.next_offset = offset + 1
                yield Record(
                    offset, message.timestamp()[1], message.leader_epoch(), message.value() or b""
                )
            elif error.code() == config.END_OF_LOG:
                self._tail.end = offset or 0
                self._tail.after_last_record = self.next_offset
            elif error.code() == config.OFFSET_GONE:
                raise JournalTrimmed(f"Expected a record at {self.next_offset}, but {error}")
            else:
                # The client tries again by itself; the loop above judges silence.
                _LOG.warning("journal reading: %s", error)


class KafkaPulses:
    """`Pulses` on a topic of one partition with a short retention."""

    def __init__(self, bootstrap: str, admin: KafkaAdmin, topic: str) -> None:
        self._bootstrap = bootstrap
        self._admin = admin
        self._topic = topic
        self._reader: KafkaReader | None = None
        self._producer = Producer(config.pulse_sender(bootstrap))

    def send(self, value: bytes) -> None:
        """Send one pulse; a lost pulse is no error."""
        try:
            self._producer.produce(self._topic, value, partition=_PARTITION)
        except BufferError:
            _LOG.warning("pulse not sent: the broker has not taken earlier ones")
        self._producer.poll(0)

    def read(self, wait_ms: int) -> Sequence[Record]:
        """Pulses since the last call, from the end of the topic at the first call on."""
        if self._reader is None:
            end = self._end()
            if end is None:
                return ()
            self._reader = KafkaReader(self._bootstrap, self._topic, end)
        try:
            return self._reader.read(PULSES_PER_READ_MAX, wait_ms)
        except JournalTrimmed:
            # Retention has passed a reader that was suspended: nothing to hear in what is gone.
            self._reader.close()
            self._reader = None
            return ()

    def caught_up(self) -> bool | None:
        """Whether everything up to a fresh end has been read; None if the broker did not answer."""
        end = self._end()
        if end is None or self._reader is None:
            return None
        return self._reader.next_offset >= end

    def close(self) -> None:
        """Let go; does not wait."""
        abandon(self._producer)
        if self._reader is not None:
            self._reader.close()

    def _end(self) -> int | None:
        found = self._admin.ends([(self._topic, _PARTITION)])
        return found[self._topic, _PARTITION] if found else None


def prime(producer: Producer, topic: str) -> None:
    """Connect now: the first record of an idempotent producer takes 505 ms instead of 0.7."""
    try:
        producer.list_topics(topic, config.ASK_TIMEOUT_S)
    except KafkaException as error:
        _LOG.warning("producer not primed: %s", error)


def abandon(producer: Producer) -> None:
    """Drop what is unsent and hear the last reports; never waits, unlike `flush`."""
    producer.purge(in_queue=True, in_flight=True, blocking=False)
    producer.poll(0)
