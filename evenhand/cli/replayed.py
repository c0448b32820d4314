"""Verify put together: a real journal, real inputs, and the rules of this version."""

from collections.abc import Iterator
from contextlib import contextmanager

from evenhand.audit._kafka import KafkaLogs
from evenhand.cli.recorded import LoggedInputs
from evenhand.cli.redecide import redecider
from projections.accepted import judged
from projections.kafka import KafkaEntries
from projections.replay import Verification, verify
from schemas.topics import INPUT_TOPICS, Topic, full_name
from streams.shell.settings import Settings


@contextmanager
def journal_of(settings: Settings) -> Iterator[KafkaEntries]:
    """The journal of the cell that the settings name."""
    topic = full_name(settings.prefix, settings.cell, Topic.JOURNAL)
    entries = KafkaEntries(bootstrap=settings.bootstrap, topic=topic, quiet=True)
    try:
        yield entries
    finally:
        entries.close()


@contextmanager
def logs_of(settings: Settings) -> Iterator[KafkaLogs]:
    """The topics of the cell that the settings name."""
    logs = KafkaLogs(bootstrap=settings.bootstrap, prefix=settings.prefix, cell=settings.cell)
    try:
        yield logs
    finally:
        logs.close()


def replayed(settings: Settings) -> Verification:
    """Every entry decided again, up to the journal's present end or to a difference."""
    with journal_of(settings) as entries, logs_of(settings) as logs:
        partitions = {topic: logs.partitions(topic) for topic in INPUT_TOPICS}
        with redecider(partitions) as decider:
            records = judged(entries, end=entries.end())
            return verify(records, decider, LoggedInputs(logs), cell=settings.cell)
