"""One cell on a real broker: bad input, greedy members and patient ones."""

import sys
from pathlib import Path

import pytest

from evenhand.dev.processes import Processes
from schemas import events as e
from schemas.codec import encode
from schemas.codes import Code
from schemas.topics import TOPICS, Topic
from streams.shell.genesis import CellDiffers
from streams.shell.settings import Settings
from streams.shell.wiring import STOPPED, apply_topics
from tests.support.asked import submission
from tests.support.kafka import PARTITIONS, Log, until
from tests.support.rig import Rig, Tail, Worker


def test_one_grant_goes_through_the_real_thing(rig: Rig) -> None:
    rig.scheduler()
    rig.configure()
    worker = Worker(rig.log)
    rig.submit(1)
    rig.until_settled(1, worker)
    assert len(worker.calls) == 1
    found = rig.judged()
    assert found.reservations == {**dict.fromkeys(found.reservations, 0), "settled": 1}


def test_bad_input_is_quarantined_with_its_reason_and_blocks_nothing(rig: Rig, log: Log) -> None:
    rig.scheduler()
    rig.configure()
    good = submission("t1", "bad")
    ((home, _),) = log.send(Topic.SUBMISSIONS, submission("t1", 0))
    truncated = encode(good)[:-1]
    bad = [
        (log.send(Topic.SUBMISSIONS, key="t1", raw=b"\xc3\x01 unknown"), Code.UNKNOWN_SCHEMA),
        (log.send(Topic.SUBMISSIONS, key="t1", raw=truncated), Code.MALFORMED),
        (log.send(Topic.SUBMISSIONS, good, key="t2"), Code.KEY_MISMATCH),
        (
            log.send(Topic.SUBMISSIONS, good, partition=(home + 1) % PARTITIONS),
            Code.WRONG_PARTITION,
        ),
        (log.send(Topic.SUBMISSIONS, good, key="", partition=0), Code.EMPTY_KEY),
    ]
    worker = Worker(log)
    rig.submit(2, first=1)
    rig.until_settled(3, worker)
    quarantine, found = Tail(log, Topic.QUARANTINE), list[e.InputQuarantined]()

    def all_there() -> bool:
        found.extend(quarantine.new())
        return len(found) >= len(bad)

    rig.until(all_there, "five quarantined inputs")
    quarantine.close()
    assert {(q.topic, q.partition, q.offset): q.code for q in found} == {
        (Topic.SUBMISSIONS, *places[0]): code for places, code in bad
    }
    assert rig.judged().submissions["quarantined"] == len(bad)


def test_two_starts_for_one_grant_give_one_call(rig: Rig) -> None:
    rig.scheduler()
    rig.configure()
    worker = Worker(rig.log)
    worker.asks_twice = True
    rig.submit(3)
    rig.until_settled(3, worker)
    assert len(worker.calls) == len(set(worker.calls)) == 3
    rig.judged()


def test_a_member_with_one_place_and_a_long_job_gets_no_second_delivery(rig: Rig) -> None:
    rig.scheduler()
    rig.configure()
    worker = Worker(rig.log, places=1)
    worker.holds = True
    rig.submit(51)
    decisions, admitted = Tail(rig.log, Topic.DECISIONS), set[bytes]()

    def all_admitted() -> bool:
        admitted.update(
            event.operation for event in decisions.new() if isinstance(event, e.OperationAdmitted)
        )
        return len(admitted) == 51 and len(worker.calls) == 1

    rig.until(all_admitted, "51 admitted operations and one call", worker)
    decisions.close()
    for job in range(1, 4):
        assert len(worker.granted) == len(worker.calls) == job
        worker.finish(worker.calls[-1])
        rig.until(lambda: len(worker.calls) == len(worker.granted) > job, "a call", worker)  # noqa: B023
    worker.holds = False
    worker.finish(worker.calls[-1])
    rig.until_settled(51, worker)
    assert rig.judged().reservations["settled"] == 51


def test_beginning_a_cell_twice_checks_it_and_changes_nothing(rig: Rig, begun: Settings) -> None:
    rig.scheduler()
    rig.configure()
    before = rig.log.read(Topic.JOURNAL)[0]
    assert not apply_topics(begun)
    assert rig.log.read(Topic.JOURNAL)[0] == before


def test_another_beginning_of_a_cell_is_refused(begun: Settings, log: Log) -> None:
    with pytest.raises(CellDiffers, match="generation"):
        apply_topics(begun, generation=2)
    assert len(log.read(Topic.JOURNAL)) == 1


def test_of_a_begun_cell_no_topic_is_created_again(begun: Settings, log: Log) -> None:
    grants = log.name(Topic.GRANTS)
    log.delete(grants)
    for _ in range(2):
        with pytest.raises(CellDiffers, match=f"topics .* missing or were made again: {grants}$"):
            apply_topics(begun)
    assert not log.exists(grants)
    log.create(grants, TOPICS[Topic.GRANTS].all_settings)
    with pytest.raises(CellDiffers, match=f"made again: {grants}$"):
        apply_topics(begun)
    assert len(log.read(Topic.JOURNAL)) == 1


@pytest.mark.parametrize("made_again", [False, True])
def test_a_cell_that_lost_its_journal_is_not_begun_over_what_it_told(
    rig: Rig, begun: Settings, log: Log, *, made_again: bool
) -> None:
    owner = rig.scheduler()
    rig.configure()
    owner.terminate()
    journal = log.name(Topic.JOURNAL)
    log.delete(journal)
    if made_again:
        log.create(journal, TOPICS[Topic.JOURNAL].all_settings)
    with pytest.raises(CellDiffers, match="delete all topics"):
        apply_topics(begun)
    assert log.exists(journal) == made_again
    log.delete(*(log.name(topic) for topic in Topic if made_again or topic != Topic.JOURNAL))
    assert apply_topics(begun, generation=2)


def test_topics_that_were_created_in_part_are_completed(settings: Settings, log: Log) -> None:
    for topic in (Topic.JOURNAL, Topic.PULSE):
        log.create(log.name(topic), TOPICS[topic].all_settings)
    assert apply_topics(settings)


def test_a_journal_that_a_stranger_began_is_begun_by_nobody(settings: Settings, log: Log) -> None:
    log.create(log.name(Topic.JOURNAL), TOPICS[Topic.JOURNAL].all_settings)
    log.send(Topic.JOURNAL, key="", raw=b"first", partition=0)
    with pytest.raises(CellDiffers, match="first entry"):
        apply_topics(settings)
    assert len(log.read(Topic.JOURNAL)) == 1


def test_a_scheduler_waits_for_its_topics_and_ends_in_order(
    settings: Settings, tmp_path: Path
) -> None:
    env = {
        "EVENHAND_BOOTSTRAP": settings.bootstrap,
        "EVENHAND_PREFIX": settings.prefix,
        "EVENHAND_DATA_DIR": str(tmp_path),
    }
    with Processes(tmp_path / "logs") as processes:
        early = processes.start("early", [sys.executable, "-m", "streams"], env=env)
        until(lambda: "evenhand topics apply" in early.tail(), "a word on what is missing")
        assert apply_topics(settings)
        until(lambda: '"role": "owner"' in early.tail(), "the scheduler to own its cell")
        assert early.terminate() == STOPPED
