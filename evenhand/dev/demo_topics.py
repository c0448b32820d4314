"""What the demo left on its topics: the story, the inputs behind it, FIFO's version, the audit."""

from collections.abc import Iterator
from pathlib import Path

from evenhand.audit._kafka import KafkaLogs, partition_of
from evenhand.audit.auditor import audit
from evenhand.dev.demo_cell import CELL, SPEED_UP, WEIGHTS
from evenhand.dev.play import prompts
from evenhand.dev.story import Recorded, Story
from schemas.codec import decode
from schemas.entry import Entry
from schemas.errors import Undecodable, UnknownSchema
from schemas.events import GrantIssued
from schemas.ids import CellId
from schemas.journal import Chain
from schemas.topics import INPUT_TOPICS, Topic
from streams.core import whatif
from streams.core.decider import Decided
from streams.core.outcomes import Source, Taken
from streams.shell.kafka.inputs import input_topic, read_input


class Topics:
    """The topics of a finished play."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self._logs = KafkaLogs(bootstrap=bootstrap, prefix=prefix, cell=CellId(CELL))
        # The journal first: what it took is on the inputs by then, and members still send more.
        accepted = list(self._accepted())
        self._inputs = dict(self._read_inputs())
        self._entries = [self._recorded(entry) for entry in accepted]

    @property
    def submissions(self) -> int:
        """Records on the submissions topic."""
        return sum(source.topic == INPUT_TOPICS.index(Topic.SUBMISSIONS) for source in self._inputs)

    def story(self) -> Story:
        """What happened."""
        return Story(WEIGHTS).fold(
            Recorded(
                entry.header.time_ms, entry.header.epoch, tuple(one.event for one in entry.decided)
            )
            for entry in self._entries
        )

    def under(self, policy: str) -> Story:
        """What would have happened to the same inputs under another policy."""
        texts = prompts()

        def service_ms(grant: GrantIssued) -> int:
            return texts[grant.payload_ref or ""].service_ms(SPEED_UP)

        replayed = whatif.replayed(self._entries, service_ms=service_ms, policy=policy)
        return Story(WEIGHTS).fold(
            Recorded(one.time_ms, 1, tuple(each.event for each in one.decided)) for one in replayed
        )

    def audit(self, provider_record: Path) -> list[str]:
        """Findings of the program that shares no rule with the owner; empty if all is well."""
        with provider_record.open() as lines:
            found = audit(
                self._logs,
                CellId(CELL),
                partition_of=partition_of,
                strict=True,
                provider_record=lines,
            )
        return [f"{one.position} {one.check}: {one.detail}" for one in found.findings]

    def close(self) -> None:
        """Let go of the reader."""
        self._logs.close()

    def _accepted(self) -> Iterator[Entry]:
        chain = Chain()
        for record in self._logs.read(Topic.JOURNAL, 0, 0):
            try:
                entry = decode(record.value or b"")
            except (UnknownSchema, Undecodable):
                continue
            if isinstance(entry, Entry) and chain.accept(record.offset, entry):
                yield entry

    def _recorded(self, entry: Entry) -> whatif.Recorded:
        taken = [
            self._inputs[Source(run.topic, run.partition, offset)]
            for run in entry.inputs
            for offset in range(run.first, run.next)
        ]
        decided = [Decided(event.cause, decode(event.body)) for event in entry.events]
        return whatif.Recorded(entry, taken, decided)

    def _read_inputs(self) -> Iterator[tuple[Source, Taken]]:
        for number, topic in enumerate(INPUT_TOPICS):
            checks = input_topic(topic, self._logs.partitions(topic))
            for partition in range(checks.partitions):
                for record in self._logs.read(topic, partition, 0):
                    source = Source(number, partition, record.offset)
                    body = read_input(checks, partition, record.key, record.value)
                    yield source, Taken(source, body)
