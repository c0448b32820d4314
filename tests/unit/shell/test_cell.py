"""What an owner believes, when it looks alive, and what holds it back."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from schemas.codec import encode
from streams.shell import cell as cell_module
from streams.shell.authority import Role
from streams.shell.cell import Cell, EntryTooLarge
from streams.shell.journal import JournalRecreated
from streams.shell.walk import Walk
from tests.simulation.faults import Faults
from tests.simulation.host import Host
from tests.simulation.stage import Stage
from tests.simulation.world import TIMING


@pytest.fixture
def stage() -> Stage:
    return Stage()


def decide_until(stage: Stage, step: str) -> Cell:
    """An owner with one more entry, stopped before that step."""
    cell = stage.own(stage.x)
    stage.world.workload.step()
    stage.play(lambda: cell.next_step == step, stage.x)
    return cell


def beliefs(stage: Stage, host: Host) -> list[int]:
    return [
        applied.head.offset for name, applied in stage.world.auditor.beliefs if name == host.name
    ]


def test_an_entry_that_landed_where_expected_is_accepted(stage: Stage) -> None:
    decide_until(stage, "wait")
    stage.play(lambda: stage.is_at_rest(stage.x), stage.x)
    assert beliefs(stage, stage.x) == [offset for offset, _ in stage.accepted()]


NOISE: dict[str, Callable[[Stage], bytes]] = {
    "garbage": lambda _: b"no word of ours",
    "a lower epoch": lambda stage: encode(stage.stranger(epoch=1)),
    "a stale previous": lambda stage: encode(stage.stranger(previous=0)),
    "a wrong owner": lambda stage: encode(stage.stranger(epoch=2, takeover=False)),
    "a wrong height": lambda stage: encode(stage.stranger(height=99)),
    "an epoch ahead": lambda stage: encode(stage.stranger(epoch=9)),
}


@pytest.mark.parametrize("kind", NOISE)
def test_an_owner_reads_past_noise_and_goes_on(stage: Stage, kind: str) -> None:
    decide_until(stage, "append")
    noise = stage.world.journal.append(NOISE[kind](stage)).offset
    stage.play(lambda: stage.is_at_rest(stage.x), stage.x)
    assert noise not in beliefs(stage, stage.x)
    assert beliefs(stage, stage.x) == [offset for offset, _ in stage.accepted()]
    assert stage.x.watch.roles.count("owner") == 1


@pytest.mark.parametrize("before", ["append", "take"])
def test_an_accepted_takeover_ends_the_term_before_anything_else_goes_out(
    stage: Stage, before: str
) -> None:
    decide_until(stage, before)
    public = {lane: len(records) for lane, records in stage.world.public.records.items()}
    takeover = stage.put(stage.stranger())
    stage.play(lambda: stage.role(stage.x) is not Role.OWNER, stage.x, within_ms=100)
    assert [offset for offset in beliefs(stage, stage.x) if offset > takeover] == []
    if before == "append":
        assert public == {lane: len(r) for lane, r in stage.world.public.records.items()}


def test_a_refused_copy_of_an_accepted_entry_is_not_believed(stage: Stage) -> None:
    """An older copy counted, then a stranger took over; the landing that is reported is noise."""
    cell = decide_until(stage, "append")
    assert cell._decided is not None
    copy = stage.put(cell._decided.entry)
    stage.put(stage.stranger(published=cell._decided.entry.published))
    stage.play(lambda: stage.role(stage.x) is not Role.OWNER, stage.x, within_ms=100)
    assert copy not in beliefs(stage, stage.x)


def test_a_landing_below_the_expected_place_stops_with_an_alert(stage: Stage) -> None:
    decide_until(stage, "append")
    stage.world.journal.records.clear()
    with pytest.raises(JournalRecreated):
        stage.wait(50, stage.x)
    assert stage.role(stage.x) is Role.HALTED
    assert stage.x.watch.alerts[-1][0] == "halted"


@pytest.mark.parametrize("fate", ["lost_report", "lost_append", "late_landing"])
def test_an_append_without_answer_ends_the_term(stage: Stage, fate: str) -> None:
    decide_until(stage, "append")
    stage.x.faults = replace(Faults.none(), **{fate: 1.0})
    taken = stage.play(lambda: stage.role(stage.x) is not Role.OWNER, stage.x)
    assert taken <= TIMING.append_timeout_ms + 10


def test_nothing_leaves_the_owner_before_it_knows_of_acceptance(stage: Stage) -> None:
    decide_until(stage, "append")
    stage.x.faults = replace(Faults.none(), slow_report=1.0)
    before = {lane: len(records) for lane, records in stage.world.public.records.items()}
    believed = len(beliefs(stage, stage.x))
    end = len(stage.world.journal.records)
    stage.play(lambda: len(stage.world.journal.records) > end, stage.x)
    assert before == {lane: len(r) for lane, r in stage.world.public.records.items()}
    assert len(beliefs(stage, stage.x)) == believed


def test_a_ready_owner_appends_one_entry_and_an_idle_one_only_pulses(stage: Stage) -> None:
    stage.own(stage.x)
    kinds = [(entry.takeover, len(entry.inputs) > 0) for _, entry in stage.accepted()]
    assert kinds[:2] == [(True, False), (True, False)]
    assert not stage.accepted()[2][1].takeover
    entries, pulses = len(stage.accepted()), stage.pulses()
    stage.wait(1_000, stage.x)
    assert len(stage.accepted()) == entries
    assert 70 <= stage.pulses() - pulses <= 100


def test_no_pulse_is_sent_while_an_append_is_outstanding_or_the_network_is_gone(
    stage: Stage,
) -> None:
    decide_until(stage, "append")
    stage.x.faults = replace(Faults.none(), lost_append=1.0)
    pulses = stage.pulses()
    stage.wait(TIMING.append_timeout_ms - 20, stage.x)
    assert stage.pulses() == pulses
    stage.x.faults = Faults.none()
    stage.own(stage.x)
    stage.wait(5, stage.x)
    stage.x.cut(200)
    pulses = stage.pulses()
    stage.wait(190, stage.x)
    assert stage.pulses() == pulses


def test_a_slow_public_partition_holds_the_loop_back_and_silences_it_in_the_end(
    stage: Stage,
) -> None:
    stage.own(stage.x)
    stage.x.faults = replace(Faults.none(), slow_partition=1.0)
    for _ in range(60):
        stage.world.workload.step()
    stage.wait(40, stage.x)
    entries, pulses = len(stage.accepted()), stage.pulses()
    stage.wait(TIMING.publish_stall_ms // 2, stage.x)
    assert len(stage.accepted()) <= entries + 1
    assert stage.pulses() > pulses
    stage.wait(TIMING.publish_stall_ms, stage.x)
    assert "publish_stalled" in [name for name, _ in stage.x.watch.alerts]
    pulses = stage.pulses()
    stage.wait(100, stage.x)
    assert stage.pulses() == pulses
    stage.x.faults = Faults.none()
    stage.play(lambda: stage.is_at_rest(stage.x), stage.x)


def test_a_refused_publish_ends_the_term_and_the_next_owner_leaves_no_gap(stage: Stage) -> None:
    decide_until(stage, "publish")
    stage.x.faults = replace(Faults.none(), failed_publish=1.0)
    stage.play(lambda: stage.role(stage.x) is not Role.OWNER, stage.x)
    stage.x.faults = Faults.none()
    stage.own(stage.x)
    stage.world.follow()
    assert not [f for f in stage.world.findings() if "records where" in f]


def test_timers_wait_until_inputs_sent_during_a_silence_are_taken(stage: Stage) -> None:
    cell = stage.own(stage.x)
    stage.world.clock.advance(100_000)
    for _ in range(12):
        stage.world.workload.step()
    ends = {p: len(r) for p, r in stage.world.inputs.records.items()}
    stage.play(lambda: cell.next_step == "decide", stage.x)
    stage.play(lambda: cell.next_step == "append", stage.x)
    first = stage.fold_positions(stage.x)
    assert any(first.get(place, 0) < end for place, end in ends.items())
    assert cell._silence.is_over(stage.x.monotonic.now_ms()) is False
    stage.play(lambda: stage.is_at_rest(stage.x), stage.x)
    assert cell._silence.is_over(stage.x.monotonic.now_ms())


def test_a_decision_that_fits_no_record_stops_with_an_alert(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.own(stage.x)
    monkeypatch.setattr(cell_module, "ENTRY_BYTES_MAX", 100)
    stage.world.workload.step()
    with pytest.raises(EntryTooLarge):
        stage.wait(50, stage.x)


def test_a_walk_takes_the_place_it_begins_at_as_accepted(stage: Stage) -> None:
    stage.own(stage.x)
    (first, _), *later = stage.accepted()[1:]
    ports = stage.world.ports(stage.x)
    end = len(stage.world.journal.records)
    walk = Walk(ports.journal, head=None, first=first, end=end)
    found = [record.offset for record, _ in walk.step()]
    assert found == [offset for offset, _ in later]
    assert walk.is_done
