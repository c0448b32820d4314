"""When a standby tries to own the cell, when it does not, and what makes it stop for good."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from schemas.journal import EntryEvent
from streams.shell.authority import LEGAL, Role
from streams.shell.inputs import InputTrimmed
from streams.shell.journal import JournalError, JournalRecreated, JournalTrimmed
from streams.shell.restore import FutureEntry, StateDiffers
from streams.shell.standby import TopicRecreated
from streams.shell.tables import WrongStore
from tests.simulation.faults import Faults
from tests.simulation.stage import Stage
from tests.simulation.world import TIMING

WAIT_MAX_MS = TIMING.takeover_ms + TIMING.takeover_spread_ms


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_a_standby_takes_over_after_silence_and_not_before(stage: Stage) -> None:
    stage.own(stage.x)
    stage.y.start()
    stage.wait(300, stage.x, stage.y)
    assert stage.role(stage.y) is Role.STANDBY
    silent_ms = stage.play(lambda: stage.role(stage.y) is Role.OWNER, stage.y)
    assert TIMING.takeover_ms - TIMING.pulse_ms <= silent_ms <= WAIT_MAX_MS + 15


def test_pulses_alone_keep_a_standby_quiet(stage: Stage) -> None:
    stage.own(stage.x)
    stage.y.start()
    entries = len(stage.accepted())
    stage.wait(1_000, stage.x, stage.y)
    assert len(stage.accepted()) == entries
    assert stage.role(stage.y) is Role.STANDBY


@pytest.mark.parametrize(("behind", "quiet"), [(0, True), (-1, True), (1, False)])
def test_only_pulses_of_the_epoch_or_above_count(stage: Stage, behind: int, *, quiet: bool) -> None:
    stage.own(stage.x)
    stage.y.start()
    stage.wait(20, stage.x, stage.y)
    epoch = stage.accepted()[-1][1].epoch - behind
    for _ in range(20):
        stage.pulse(epoch=epoch)
        stage.wait(10, stage.y)
    assert (stage.role(stage.y) is Role.STANDBY) is quiet


def test_no_owner_begins_a_cell_without_genesis(stage: Stage) -> None:
    stage.world.journal.records.clear()
    stage.x.start()
    stage.wait(1_000, stage.x)
    assert stage.world.journal.records == []
    assert stage.role(stage.x) is Role.STANDBY


@pytest.mark.parametrize("missing", ["network", "topic ids"])
def test_a_standby_that_cannot_see_everything_does_not_try(stage: Stage, missing: str) -> None:
    stage.own(stage.x)
    stage.y.start()
    stage.wait(20, stage.x, stage.y)
    entries = len(stage.accepted())
    ids = stage.world.topic_ids
    if missing == "network":
        stage.y.cut(300)
    else:
        stage.world.topic_ids = None
    stage.wait(290, stage.y)
    assert len(stage.accepted()) == entries
    stage.world.topic_ids = ids
    stage.play(lambda: stage.role(stage.y) is Role.OWNER, stage.y)


@pytest.mark.parametrize(
    ("takeovers", "factor"), [(0, 1), (1, 2), (2, 4), (3, 8), (4, 16), (5, 16), (9, 16)]
)
def test_the_wait_doubles_while_takeovers_follow_each_other(
    stage: Stage, takeovers: int, factor: int
) -> None:
    stage.own(stage.x)
    stage.y.start()
    stage.wait(20, stage.x, stage.y)
    for _ in range(takeovers):
        stage.put(stage.stranger())
    stage.wait(2, stage.y)
    waited_ms = stage.play(lambda: stage.role(stage.y) is Role.CLAIMING, stage.y)
    least_ms = TIMING.takeover_ms * factor - TIMING.pulse_ms
    assert least_ms <= waited_ms <= least_ms + TIMING.takeover_spread_ms + 15


def test_a_takeover_takes_nothing_and_copies_what_it_extends(stage: Stage) -> None:
    stage.own(stage.x)
    stage.y.start()
    stage.wait(20, stage.x, stage.y)
    stage.world.workload.step()
    stage.play(lambda: stage.role(stage.y) is Role.OWNER, stage.y)
    before, after = next(
        (one, two) for one, two in pairwise(stage.accepted()) if two[1].takeover and one[0] > 1
    )
    assert (after[1].inputs, after[1].events) == ((), ())
    for name in ("time_ms", "published", "clock_shift_ms"):
        assert getattr(after[1], name) == getattr(before[1], name)
    assert after[1].epoch == before[1].epoch + 1


@pytest.mark.parametrize("fate", ["lost_append", "lost_report", "late_landing"])
def test_a_second_takeover_waits_for_the_fate_of_the_first(stage: Stage, fate: str) -> None:
    stage.own(stage.x)
    stage.y.start()
    stage.wait(20, stage.x, stage.y)
    stage.y.faults = replace(Faults.none(), **{fate: 1.0})
    stage.play(lambda: stage.role(stage.y) is Role.CLAIMING, stage.y)
    end = len(stage.world.journal.records)
    stage.play(lambda: stage.role(stage.y) is Role.STANDBY, stage.y)
    assert len(stage.world.journal.records) <= end + 1
    stage.y.faults = Faults.none()
    stage.play(lambda: stage.role(stage.y) is Role.OWNER, stage.y)


def test_of_two_standbys_one_owns_and_nothing_is_believed_twice(stage: Stage) -> None:
    stage.x.start()
    stage.y.start()
    stage.wait(400, stage.x, stage.y)
    assert {stage.role(stage.x), stage.role(stage.y)} == {Role.OWNER, Role.STANDBY}
    owners = {entry.owner for _, entry in stage.accepted()}
    assert len(owners) == 1 + stage.accepted()[-1][1].epoch - 1


def test_a_paused_owner_wakes_up_replaced_and_steps_down(stage: Stage) -> None:
    stage.own(stage.x)
    stage.y.start()
    stage.wait(20, stage.x, stage.y)
    stage.play(lambda: stage.role(stage.y) is Role.OWNER, stage.y)
    stage.world.workload.step()
    stage.play(lambda: stage.role(stage.x) is not Role.OWNER, stage.x, within_ms=100)
    stage.wait(100, stage.x, stage.y)
    assert stage.role(stage.x) is Role.STANDBY
    assert stage.role(stage.y) is Role.OWNER


def test_a_warm_takeover_goes_on_with_the_time_that_was_heard(stage: Stage) -> None:
    stage.own(stage.x)
    stage.y.start()
    stage.wait(100, stage.x, stage.y)
    before = stage.accepted()[-1][1].time_ms
    heard_us = stage.world.clock.now_us
    stage.world.broker.change_leader(-5_000)  # the broker's clock is not asked
    stage.play(lambda: stage.is_at_rest(stage.y), stage.y)
    passed_ms = (stage.world.clock.now_us - heard_us) // 1_000
    assert 100 <= stage.accepted()[-1][1].time_ms - before <= 100 + passed_ms + 5


def recreated(stage: Stage) -> None:
    stage.world.journal.topic_id = "journal-2"


def shorter(stage: Stage) -> None:
    del stage.world.journal.records[2:]


def rewritten(stage: Stage) -> None:
    records = stage.world.journal.records
    records[-1] = records[-1]._replace(value=b"something else")


def trimmed(stage: Stage) -> None:
    stage.world.journal.start = 1


@pytest.mark.parametrize(
    ("happens", "error"),
    [
        (recreated, WrongStore),
        (shorter, JournalRecreated),
        (rewritten, JournalRecreated),
        (trimmed, JournalTrimmed),
    ],
)
def test_tables_of_another_journal_stop_a_restart_with_an_alert(
    stage: Stage, happens: Callable[[Stage], None], error: type[Exception]
) -> None:
    stage.own(stage.x)
    stage.x.kill()
    happens(stage)
    stage.x.start()
    with pytest.raises(error):
        stage.wait(50, stage.x)
    assert stage.role(stage.x) is Role.HALTED
    assert stage.x.watch.alerts[-1][0] == "halted"


def other_hash(stage: Stage) -> None:
    stage.put(stage.stranger(state_hash=bytes(32)))


def future_event(stage: Stage) -> None:
    body = b"\xc3\x01" + bytes(20)
    stage.put(stage.stranger(events=(EntryEvent(cause=-1, body=body),)))


def future_entry(stage: Stage) -> None:
    stage.world.journal.append(b"\xc3\x01" + bytes(200))


@pytest.mark.parametrize(
    ("happens", "error"),
    [(other_hash, StateDiffers), (future_event, FutureEntry), (future_entry, FutureEntry)],
)
def test_a_standby_stops_at_what_it_cannot_fold(
    stage: Stage, happens: Callable[[Stage], None], error: type[JournalError]
) -> None:
    stage.own(stage.x)
    stage.y.start()
    stage.wait(20, stage.x, stage.y)
    happens(stage)
    with pytest.raises(error):
        stage.wait(20, stage.y)
    assert stage.role(stage.y) is Role.HALTED


def test_a_trimmed_input_stops_the_owner_with_an_alert(stage: Stage) -> None:
    stage.own(stage.x)
    for place in stage.world.inputs.records:
        stage.world.inputs.start[place] = 99
    with pytest.raises(InputTrimmed):
        stage.wait(20, stage.x)


def test_a_recreated_input_topic_stops_whoever_would_take_over(stage: Stage) -> None:
    stage.world.topic_ids = {"journal": "another"}
    stage.x.start()
    with pytest.raises(TopicRecreated):
        stage.wait(300, stage.x)


def test_a_store_of_another_core_version_is_folded_again(stage: Stage) -> None:
    stage.own(stage.x)
    digest = stage.x.disk.rows.digest()
    stage.x.kill()
    assert stage.x.disk.applied is not None
    stage.x.disk.applied = stage.x.disk.applied._replace(core_version=0)
    stage.x.start()
    stage.play(lambda: stage.role(stage.x) is Role.STANDBY, stage.x)
    assert stage.x.disk.rows.digest() == digest
    assert stage.x.disk.applied.core_version > 0


@pytest.mark.parametrize("lost", ["nothing", "everything"])
def test_a_restart_gives_the_state_of_a_follower(stage: Stage, lost: str) -> None:
    stage.own(stage.x)
    for _ in range(10):
        stage.world.workload.step()
    stage.play(lambda: stage.is_at_rest(stage.x), stage.x)
    stage.x.kill()
    if lost == "everything":
        stage.x.disk.clear()
    stage.x.start()
    stage.play(lambda: stage.role(stage.x) is Role.STANDBY, stage.x)
    fold = stage.authority(stage.x).fold
    assert fold is not None
    assert fold.state_hash == stage.next_hash()


def test_every_role_can_end_and_only_restoring_begins() -> None:
    for role, after in LEGAL.items():
        assert (Role.CLOSED in after) or role is Role.CLOSED
    assert [role for role, after in LEGAL.items() if Role.OWNER in after] == [Role.CLAIMING]


@pytest.mark.parametrize("role", [Role.RESTORING, Role.STANDBY, Role.CLAIMING, Role.OWNER])
def test_a_process_can_be_ended_in_order_from_every_role(stage: Stage, role: Role) -> None:
    stage.x.start()
    stage.play(lambda: stage.role(stage.x) is role, stage.x)
    stage.authority(stage.x).close()
    assert stage.role(stage.x) is Role.CLOSED
    stage.x.start()
    stage.play(lambda: stage.role(stage.x) is Role.OWNER, stage.x)
