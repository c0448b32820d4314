"""The follower on a real journal: what it reads, and when it must stop."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from projections.kafka import KafkaEntries
from projections.ports import JournalMissing, JournalTrimmed
from schemas.topics import Topic
from streams.shell.settings import Settings
from tests.support.kafka import Log, until
from tests.support.told import Told, ToldJournal, began, configured

WAIT_MS = 100


def entries(log: Log) -> KafkaEntries:
    return KafkaEntries(bootstrap=log.bootstrap, topic=log.name(Topic.JOURNAL))


def told(log: Log) -> ToldJournal:
    """A journal told on the topic of this test."""
    log.create(log.name(Topic.JOURNAL))
    journal = ToldJournal()
    journal.tell(began(), *configured())
    for number in range(20):
        one = Told(f"k{number}", sequence=number)
        journal.tell((0, one.admitted()), inputs=[(0, 0, 1)])
    for record in journal.records:
        log.send(Topic.JOURNAL, key=log.cell, raw=record.value)
    return journal


def test_records_come_in_order_and_densely_up_to_the_end(log: Log) -> None:
    journal = told(log)
    reader = entries(log)
    reader.begin(3)
    found = list(reader.read(5, 5_000))
    assert len(found) <= 5
    while len(found) < len(journal.records) - 3:
        found += reader.read(100, WAIT_MS)
    assert found == journal.records[3:]
    assert reader.end() == len(journal.records)
    assert reader.read(1, WAIT_MS) == []
    reader.close()


def test_a_trimmed_journal_is_no_journal(log: Log) -> None:
    told(log)
    log.trim(Topic.JOURNAL, 0, before=5)
    reader = entries(log)
    reader.begin(0)

    def refused() -> bool:
        try:
            reader.read(100, WAIT_MS)
        except JournalTrimmed:
            return True
        return False

    until(refused, "the reader to refuse")
    reader.close()


def test_a_recreated_journal_has_another_id(log: Log) -> None:
    told(log)
    reader = entries(log)
    before = reader.topic_id()
    log.delete(log.name(Topic.JOURNAL))
    log.create(log.name(Topic.JOURNAL))
    assert reader.topic_id() != before
    reader.close()


def test_a_missing_journal_is_told_from_an_empty_one(log: Log) -> None:
    reader = entries(log)
    with pytest.raises(JournalMissing, match="topics apply"):
        reader.topic_id()
    reader.close()


def test_rebuilding_gives_the_same_digests(begun: Settings, log: Log, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "EVENHAND_BOOTSTRAP": begun.bootstrap,
        "EVENHAND_PREFIX": begun.prefix,
    }
    printed = [
        subprocess.run(
            [sys.executable, "-m", "projections"],
            env={**environment, "EVENHAND_VIEWS_DIR": str(tmp_path / where)},
            check=True,
            capture_output=True,
            timeout=60,
        ).stdout.decode()
        for where in ("one", "one", "two")
    ]
    assert printed[0] == printed[1] == printed[2]
    assert printed[0].startswith("position main:1:0:0\n")


@pytest.mark.parametrize("command", [["projections"], ["evenhand", "journal", "tail"]])
def test_every_reader_says_in_a_sentence_that_the_journal_was_trimmed(
    begun: Settings, log: Log, tmp_path: Path, command: list[str]
) -> None:
    log.send(Topic.JOURNAL, key="", raw=b"noise", partition=0)
    log.trim(Topic.JOURNAL, 0, before=1)
    done = subprocess.run(
        [sys.executable, "-m", *command],
        env={
            **os.environ,
            "EVENHAND_BOOTSTRAP": begun.bootstrap,
            "EVENHAND_PREFIX": begun.prefix,
            "EVENHAND_DATA_DIR": str(tmp_path),
        },
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "its offset is gone" in done.stderr
    assert "Traceback" not in done.stderr
