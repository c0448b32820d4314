"""Reads the journal topic of a cell for the follower."""

from collections.abc import Sequence

from confluent_kafka import (
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from .ports import JournalMissing, JournalTrimmed, Record

ASK_SECONDS = 5.0
"""How long a question to the broker may take at start."""
_GONE = frozenset(
    (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)  # noqa: SLF001  # its own names
)


class KafkaEntries:
    """`Entries` on a real cluster; `quiet`, whoever asks says himself that nobody answers."""

    def __init__(self, *, bootstrap: str, topic: str, quiet: bool = False) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"{topic}.follower",  # required by the client; nothing is committed
                "enable.auto.commit": False,
                "isolation.level": "read_uncommitted",
                "auto.offset.reset": "error",
                "fetch.min.bytes": 1,
                "fetch.queue.backoff.ms": 1,
                "socket.nagle.disable": True,
                "log_level": 2 if quiet else 3,
            }
        )

    def topic_id(self) -> str:
        """The id that the cluster gave the topic.

        Raises:
            JournalMissing: there is no such topic, or no broker.
        """
        admin = AdminClient({"bootstrap.servers": self._bootstrap, "log_level": 3})
        topics = TopicCollection([self._topic])
        answers = admin.describe_topics(topics, request_timeout=ASK_SECONDS)
        try:
            return str(answers[self._topic].result(ASK_SECONDS).topic_id)
        except KafkaException as error:
            raise JournalMissing(
                f"Expected topic {self._topic} at {self._bootstrap}, but: {error}; "
                "`evenhand topics apply` makes it"
            ) from error

    def begin(self, offset: int) -> None:
        """Read from this offset on."""
        self._consumer.assign([TopicPartition(self._topic, 0, offset)])

    def read(self, limit: int, wait_ms: int) -> Sequence[Record]:
        """The next records; a broker that does not answer is waited for.

        Raises:
            JournalTrimmed: the next offset does not exist any more.
        """
        first = self._consumer.poll(wait_ms / 1000)
        if first is None:
            return []
        messages = [first, *self._consumer.consume(limit - 1, 0)]
        return [record for message in messages if (record := self._record(message)) is not None]

    def _record(self, message: Message) -> Record | None:
        error = message.error()
        if error is not None:
            if error.code() in _GONE:
                raise JournalTrimmed(
                    f"Expected the next record of {self._topic}, but its offset is gone: "
                    "the topic was trimmed, or deleted and made again"
                )
            return None  # a broker that is away; the client goes on by itself
        offset, value = message.offset(), message.value()
        assert offset is not None, "Expected a consumed record to have an offset"
        return Record(offset, bytes(value or b""))

    def end(self) -> int | None:
        """The offset after the last record now."""
        try:
            _, end = self._consumer.get_watermark_offsets(
                TopicPartition(self._topic, 0, OFFSET_END), timeout=ASK_SECONDS
            )
        except KafkaException:
            return None
        return int(end)

    def close(self) -> None:
        """Let go."""
        self._consumer.close()
