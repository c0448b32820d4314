"""Owners paused, raced and replaced; brokers, disks and topics that change under them."""

import shutil

from msgspec.structs import replace

from schemas.codec import encode
from schemas.entry import Entry
from schemas.ids import OwnerId
from schemas.journal import Chain
from schemas.topics import TOPICS, Topic
from streams.shell.settings import Settings
from streams.shell.wiring import apply_topics
from tests.support.asked import start
from tests.support.kafka import Log
from tests.support.rig import Rig, Worker

AS_DECLARED = TOPICS[Topic.JOURNAL].all_settings
HASTY = {
    "EVENHAND_TIMING__PULSE_MS": "90",
    "EVENHAND_TIMING__TAKEOVER_MS": "100",
    "EVENHAND_TIMING__TAKEOVER_SPREAD_MS": "40",
}
"""A standby with so little patience takes over from owners that live."""


def test_an_owner_stopped_past_the_takeover_and_continued_steps_down(rig: Rig) -> None:
    paused = rig.scheduler("a")
    rig.configure()
    standby = rig.scheduler("b")
    worker = Worker(rig.log)
    rig.submit(5)
    rig.until_settled(5, worker)
    rig.until_role(standby, "standby")
    paused.pause()
    rig.submit(5, first=5)
    rig.until_settled(10, worker)
    rig.until_role(standby, "owner")
    paused.resume()
    rig.submit(5, first=10)
    rig.until_settled(15, worker)
    rig.until_role(paused, "standby")
    assert rig.judged().reservations["settled"] == 15


def test_two_hasty_schedulers_race_and_readers_accept_one_history(rig: Rig) -> None:
    one, other = rig.scheduler("a", **HASTY), rig.scheduler("b", **HASTY)
    rig.configure()
    worker = Worker(rig.log)
    for n in range(8):
        paused = one if n % 2 else other
        rig.submit(10, first=20 * n)
        paused.pause()
        rig.until_settled(20 * n + 10, worker)
        paused.resume()  # with the memory of an owner, if it was one
        rig.submit(10, first=20 * n + 10)
        rig.until_settled(20 * n + 20, worker)
    assert one.alive, "Expected no difference between their states"
    assert other.alive, "Expected no difference between their states"
    assert max(entry.epoch for entry in rig.entries()) > 2
    assert rig.judged().reservations["settled"] == 160
    assert len(worker.calls) == len(set(worker.calls)) == 160


def test_a_deleted_disk_is_folded_again_and_a_foreign_one_stops_the_scheduler(
    rig: Rig, begun: Settings
) -> None:
    first = rig.scheduler("a")
    rig.configure()
    worker = Worker(rig.log)
    rig.submit(3)
    rig.until_settled(3, worker)
    first.terminate()
    elsewhere = begun.model_copy(update={"prefix": f"{begun.prefix}-2"})
    assert apply_topics(elsewhere)
    foreign = rig.tables("c").with_name(f"{elsewhere.prefix}.{elsewhere.cell}")
    shutil.copytree(rig.tables("a"), foreign)
    halted = rig.scheduler("c", EVENHAND_PREFIX=elsewhere.prefix)
    shutil.rmtree(rig.tables("a"))
    rig.scheduler("a")
    rig.submit(3, first=3)
    rig.until_settled(6, worker)
    rig.until_halted(halted, "WrongStore")
    assert rig.judged().reservations["settled"] == 6


def test_a_second_scheduler_on_the_same_disk_says_so_and_leaves_the_first_alone(rig: Rig) -> None:
    owner = rig.scheduler("a")
    rig.configure()
    second = rig.scheduler("a")
    rig.until_halted(second, "TablesInUse: Expected")
    assert "EVENHAND_DATA_DIR" in second.tail()
    assert "Traceback" not in second.tail()
    worker = Worker(rig.log)
    rig.submit(3)
    rig.until_settled(3, worker)
    assert owner.alive


def test_strangers_in_the_journal_are_noise_to_every_reader(rig: Rig) -> None:
    owner = rig.scheduler("a")
    rig.configure()
    worker = Worker(rig.log)
    rig.submit(3)
    rig.until_settled(3, worker)
    strangers = 0
    for first in (3, 6):
        strangers += _write_strange_entries(rig)
        rig.submit(3, first=first)
        rig.until_settled(first + 3, worker)
    fresh = rig.scheduler("b")
    rig.until_role(fresh, "standby")
    owner.kill()
    rig.submit(3, first=9)
    rig.until_settled(12, worker)
    found = rig.judged()
    assert found.noise == strangers
    assert len(_accepted(rig)) == found.entries


def _accepted(rig: Rig) -> list[Entry]:
    chain = Chain()
    return [entry for offset, entry in enumerate(rig.entries()) if chain.accept(offset, entry)]


def _write_strange_entries(rig: Rig) -> int:
    """Each differs in one thing from the entry that the owner would write next."""
    chain, last = Chain(), None
    for offset, entry in enumerate(rig.entries()):
        if chain.accept(offset, entry):
            last = entry
    head = chain.head
    assert head is not None
    assert last is not None
    stranger = OwnerId(b"stranger-stranger"[:16])
    ours = replace(
        last, previous=head.offset, height=head.height + 1, takeover=False, inputs=(), events=()
    )
    strange = (
        replace(ours, previous=head.offset - 1),
        replace(ours, epoch=head.epoch - 1),
        replace(ours, height=head.height),
        replace(ours, owner=stranger),
        replace(ours, owner=stranger, takeover=True),
        replace(ours, owner=stranger, takeover=True, epoch=head.epoch + 2),
        replace(ours, previous=-1, height=0, epoch=1, takeover=True, owner=stranger),
    )
    for entry in strange:
        rig.log.send(Topic.JOURNAL, key="", raw=encode(entry), partition=0)
    return len(strange)


def test_a_recreated_journal_stops_its_owner_and_whoever_comes_after(rig: Rig) -> None:
    owner = rig.scheduler("a")
    rig.configure()
    journal = rig.log.name(Topic.JOURNAL)
    rig.log.delete(journal)
    rig.log.create(journal, AS_DECLARED)
    rig.submit(1)
    rig.until_halted(owner, "Journal")
    again = rig.scheduler("a")
    rig.until_halted(again, "halted")
    assert not any(entry.takeover for entry in rig.entries())


def test_a_recreated_empty_journal_is_begun_by_nobody(rig: Rig) -> None:
    owner = rig.scheduler("a")
    rig.configure()
    owner.terminate()
    journal = rig.log.name(Topic.JOURNAL)
    rig.log.delete(journal)
    rig.log.create(journal, AS_DECLARED)
    rig.until_halted(rig.scheduler("a"), "WrongStore")
    assert rig.entries() == []


def test_a_trimmed_input_stops_the_owner(rig: Rig, log: Log) -> None:
    rig.scheduler("a").terminate()
    ((partition, _),) = log.send(Topic.STARTS, start("t1"))
    log.send(Topic.STARTS, start("t1"), start("t1"))
    log.trim(Topic.STARTS, partition, 2)
    rig.until_halted(rig.scheduler("a"), "InputTrimmed")
