"""The audit and verify on a real cell: clean after kills and lies, and never blind."""

import json
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import pytest
import typer
from typer.testing import CliRunner

from evenhand.audit._kafka import partition_of
from evenhand.audit.auditor import audit
from evenhand.audit.findings import Findings
from evenhand.audit.logs import LogTrimmed
from evenhand.cli import audit as audit_command
from evenhand.cli import journal as journal_command
from evenhand.cli.recorded import LoggedInputs
from evenhand.cli.redecide import redecider
from evenhand.cli.replayed import journal_of, logs_of, replayed
from evenhand.dev.processes import Processes
from projections.accepted import judged
from projections.replay import InputRecord, Verification, verify
from schemas.codec import encode
from schemas.topics import INPUT_TOPICS, Topic
from streams.shell.settings import Settings
from streams.shell.wiring import apply_topics
from tests.support.kafka import Log
from tests.support.rig import Rig, Worker

OPERATIONS = 12


@pytest.fixture(scope="module")
def worked(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A cell at rest whose first owner was killed in the middle, with strangers on its journal."""
    home = tmp_path_factory.mktemp("worked")
    log = Log(bootstrap, prefix=f"t{uuid4().hex[:12]}")
    settings = Settings(bootstrap=bootstrap, prefix=log.prefix, data_dir=home, partitions=3)
    apply_topics(settings)
    with Processes(home / "logs") as processes:
        rig = Rig(log, settings, processes, home)
        work(rig)
        rig.close()
    return settings


def work(rig: Rig) -> None:
    first = rig.scheduler("a")
    rig.configure(slots=2)
    worker = Worker(rig.log)
    rig.submit(OPERATIONS // 2)
    rig.until_settled(2, worker)
    second = rig.scheduler("b")
    first.kill()
    rig.submit(OPERATIONS // 2, first=OPERATIONS // 2)
    rig.submit(1)  # a repeat
    rig.log.send(Topic.SUBMISSIONS, raw=b"no word", key="t1")
    rig.log.send(Topic.JOURNAL, raw=encode(rig.entries()[-1]), key="c")
    rig.log.send(Topic.JOURNAL, raw=b"no word", key="c")
    rig.until_settled(OPERATIONS, worker)
    rig.until(lambda: len(rig.log.read(Topic.QUARANTINE)) > 0, "the quarantine", worker)
    second.terminate()


def audited(settings: Settings, **options: Any) -> Findings:
    with logs_of(settings) as logs:
        return audit(logs, settings.cell, partition_of=partition_of, **options)


def command(settings: Settings, *words: str) -> tuple[int, Any, str]:
    """Exit code, JSON on stdout, and what was said, of the shipped command."""
    app = typer.Typer()
    app.command("audit")(audit_command.audit)
    app.add_typer(journal_command.app, name="journal")
    environment = {
        "EVENHAND_BOOTSTRAP": settings.bootstrap,
        "EVENHAND_PREFIX": settings.prefix,
        "EVENHAND_CELL": settings.cell,
    }
    done = CliRunner().invoke(app, [*words, "--output", "json"], env=environment)
    return done.exit_code, [json.loads(line) for line in _objects(done.stdout)], done.stderr


def _objects(text: str) -> Sequence[str]:
    """One object over many lines, or one on each."""
    return [text] if text.startswith("{\n") else text.splitlines()


def test_a_real_cell_is_clean_and_decides_the_same_again(worked: Settings) -> None:
    found = audited(worked)
    assert found.findings == ()
    assert found.submissions == {"admitted": OPERATIONS, "duplicate": 1, "quarantined": 1}
    assert found.reservations == {"settled": OPERATIONS, "open": 0}
    assert found.noise >= 2
    outcome = replayed(worked)
    assert outcome.difference is None
    assert outcome.folded >= 2
    assert outcome.noise == found.noise
    assert outcome.decided + outcome.folded == found.entries


def test_the_commands_say_so_and_exit_with_nothing(worked: Settings) -> None:
    code, (found,), _ = command(worked, "audit")
    assert (code, found["clean"], found["findings"]) == (0, True, [])
    code, (outcome,), _ = command(worked, "journal", "verify")
    assert (code, outcome["equal"]) == (0, True)
    code, lines, _ = command(worked, "journal", "tail", "--from", "0")
    assert code == 0
    assert [line["offset"] for line in lines] == list(range(len(lines)))
    assert sum(line["accepted"] for line in lines) == found["entries"]
    assert sum(len(line.get("events", ())) for line in lines) == found["events"]
    code, last, _ = command(worked, "journal", "tail")
    assert last == lines[-10:]


def test_a_strangers_public_record_is_found_at_exit_code_seven(begun: Settings, log: Log) -> None:
    log.send(Topic.GRANTS, raw=b"no word", key="t1")
    code, (found,), said = command(begun, "audit")
    assert code == 7
    assert [finding["check"] for finding in found["findings"]] == ["publication"]
    assert found["findings"][0]["position"] in said


def test_a_trimmed_journal_is_refused(begun: Settings, log: Log) -> None:
    log.send(Topic.JOURNAL, raw=b"no word", key="c")
    log.trim(Topic.JOURNAL, 0, 1)
    with pytest.raises(LogTrimmed):
        audited(begun)


def test_where_nobody_answers_the_commands_say_try_later(settings: Settings) -> None:
    code, _, said = command(settings, "audit")
    assert code == 4
    assert settings.prefix in said


class Flipped:
    """Verify's inputs with one bit of the first submission turned over."""

    def __init__(self, inputs: LoggedInputs) -> None:
        self._inputs = inputs
        self.done = False

    def read(self, run: Any) -> Sequence[InputRecord]:
        records = list(self._inputs.read(run))
        if not self.done and INPUT_TOPICS[run.topic] is Topic.SUBMISSIONS and records:
            value = bytearray(records[0].value or b"")
            value[-1] ^= 1
            records[0] = records[0]._replace(value=bytes(value))
            self.done = True
        return records


def test_one_changed_bit_of_a_recorded_input_is_named(worked: Settings) -> None:
    with journal_of(worked) as entries, logs_of(worked) as logs:
        first = next(
            record.offset
            for record in judged(entries, end=entries.end())
            if record.entry and any(run.topic == 0 for run in record.entry.inputs)
        )
        with redecider({topic: logs.partitions(topic) for topic in INPUT_TOPICS}) as decider:
            records = judged(entries, end=entries.end())
            inputs = Flipped(LoggedInputs(logs))
            outcome: Verification = verify(records, decider, inputs, cell=worked.cell)
    assert outcome.difference is not None
    assert outcome.difference.position.offset == first
