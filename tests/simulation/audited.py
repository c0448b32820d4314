"""A world's topics as `evenhand audit` reads them: the third judge, and the one that users have."""

from collections.abc import Iterator
from zlib import crc32

from evenhand.audit.auditor import audit
from evenhand.audit.findings import Finding
from evenhand.audit.logs import Record
from schemas import codec
from schemas.inputs import Input
from schemas.topics import INPUT_TOPICS, TOPICS, Topic, input_key
from streams.core.outcomes import Unreadable
from streams.shell import journal
from streams.shell.inputs import Place
from tests.simulation.inputs import PARTITIONS, InputTopics
from tests.simulation.outbox import PublicTopics
from tests.simulation.workload import CELL


class WorldLogs:
    """`Logs` over what lies on the simulated topics."""

    def __init__(
        self, log: list[journal.Record], inputs: InputTopics, public: PublicTopics
    ) -> None:
        self._log, self._inputs, self._public = log, inputs, public

    def partitions(self, topic: Topic) -> int:
        return 1 if TOPICS[topic].single_partition else PARTITIONS

    def start(self, topic: Topic, partition: int) -> int:
        return 0

    def read(self, topic: Topic, partition: int, first: int) -> Iterator[Record]:
        return (one for one in self._records(topic, partition) if one.offset >= first)

    def _records(self, topic: Topic, partition: int) -> Iterator[Record]:
        if topic is Topic.JOURNAL:
            return (Record(one.offset, None, one.value, None) for one in self._log)
        if topic in INPUT_TOPICS:
            words = self._inputs.records[Place(INPUT_TOPICS.index(topic), partition)]
            return (_asked(offset, word) for offset, word in enumerate(words))
        return (
            Record(offset, one.key.encode(), one.value, [("position", str(one.position).encode())])
            for offset, one in enumerate(self._public.records[topic, partition])
        )


def _asked(offset: int, word: Input | Unreadable) -> Record:
    if isinstance(word, Unreadable):
        return Record(offset, b"", b"", None)
    return Record(offset, input_key(word).encode(), codec.encode(word), None)


def found(
    log: list[journal.Record], inputs: InputTopics, public: PublicTopics
) -> tuple[Finding, ...]:
    """What the audit of the whole world says."""
    logs = WorldLogs(log, inputs, public)
    findings = audit(logs, CELL, partition_of=lambda key, count: crc32(key) % count)
    return findings.findings
