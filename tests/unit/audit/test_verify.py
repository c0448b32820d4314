"""Deciding again gives what was decided, and names the first position where it does not."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

import pytest
from msgspec.structs import replace

from evenhand.cli.recorded import LoggedInputs
from evenhand.cli.redecide import redecider
from projections.accepted import judged
from projections.ports import Record
from projections.replay import InputRecord, Verification, verify
from schemas.codec import decode_as, encode
from schemas.entry import Entry, InputRun
from schemas.topics import INPUT_TOPICS, Topic
from tests.support import core as c
from tests.support.logs import CELL, Logs
from tests.support.recorded import RecordedCore
from tests.support.walk import Walk


class Entries:
    """`Entries` in memory."""

    def __init__(self, logs: Logs) -> None:
        self._logs = logs
        self._left: Iterator[Any] = iter(())

    def topic_id(self) -> str:
        return "x"

    def begin(self, offset: int) -> None:
        self._left = self._logs.read(Topic.JOURNAL, 0, offset)

    def read(self, limit: int, wait_ms: int) -> Sequence[Record]:
        return [Record(each.offset, each.value) for each in islice(self._left, limit)]

    def end(self) -> int:
        return len(self._logs.records[Topic.JOURNAL, 0])

    def close(self) -> None:
        pass


class Flipped:
    """Recorded inputs with one bit of one record turned over."""

    def __init__(self, inputs: LoggedInputs, at: InputRun, byte: int) -> None:
        self._inputs = inputs
        self._at = at
        self._byte = byte

    def read(self, run: InputRun) -> Sequence[InputRecord]:
        return [self._flip(run, record) for record in self._inputs.read(run)]

    def _flip(self, run: InputRun, record: InputRecord) -> InputRecord:
        place = (run.topic, run.partition, record.offset)
        if place != (self._at.topic, self._at.partition, self._at.first):
            return record
        value = bytearray(record.value or b"")
        value[self._byte] ^= 1
        return record._replace(value=bytes(value))


def history(seed: int = 3, entries: int = 120) -> RecordedCore:
    cell = RecordedCore()
    walk = Walk(seed, cell)
    for _ in range(entries):
        walk.entry()
    return cell


def verification(
    logs: Logs, wrap: Callable[[LoggedInputs], Any] = lambda inputs: inputs
) -> Verification:
    entries = Entries(logs)
    with redecider({topic: logs.partitions(topic) for topic in INPUT_TOPICS}) as decider:
        inputs = wrap(LoggedInputs(logs))
        return verify(judged(entries, end=entries.end()), decider, inputs, cell=CELL)


def rewrite(logs: Logs, offset: int, **changes: Any) -> None:
    """Change what the journal holds, as nobody ever may."""
    records = logs.records[Topic.JOURNAL, 0]
    entry = decode_as(Entry, records[offset].value or b"")
    records[offset] = records[offset]._replace(value=encode(replace(entry, **changes)))


@pytest.mark.parametrize("seed", range(5))
def test_a_history_is_decided_again_event_by_event(seed: int) -> None:
    cell = history(seed)
    outcome = verification(cell.logs)
    assert outcome.difference is None
    takeovers = sum(made.takeover for made, _ in cell.entries)
    assert outcome.folded == takeovers
    assert outcome.decided == len(cell.entries) - takeovers
    assert outcome.through is not None
    assert outcome.through.offset == cell.head_offset


def test_one_bit_of_a_recorded_input_is_found_at_the_entry_that_took_it() -> None:
    cell = RecordedCore()
    cell.run(c.domain(c.dimension("slots", 4)), c.pool())
    asked = c.submitted("t", "a", content_sha256="0" * 64)
    cell.run(asked)
    value = encode(asked)
    run = cell.entries[2][0].inputs[0]
    for byte in range(len(value)):
        outcome = verification(cell.logs, partial(Flipped, at=run, byte=byte))
        assert outcome.difference is not None, byte
        assert outcome.difference.position.offset == 2, byte


def test_a_changed_event_is_named_by_its_index() -> None:
    cell = history()
    offset, (_, decided) = next(
        (at, one) for at, one in enumerate(cell.entries) if len(one[1]) >= 3
    )
    entry = decode_as(Entry, cell.logs.records[Topic.JOURNAL, 0][offset].value or b"")
    events = [*entry.events[:2], replace(entry.events[0], cause=entry.events[2].cause)]
    rewrite(cell.logs, offset, events=(*events, *entry.events[3:]))
    outcome = verification(cell.logs)
    assert outcome.difference is not None
    assert outcome.difference.position.offset == offset
    assert outcome.difference.position.index == 2
    assert len(decided) >= 3


def test_an_event_too_few_is_named() -> None:
    cell = history()
    offset = next(at for at, (_, decided) in enumerate(cell.entries) if at and decided)
    rewrite(cell.logs, offset, events=())
    outcome = verification(cell.logs)
    assert outcome.difference is not None
    assert (outcome.difference.position.offset, outcome.difference.position.index) == (offset, 0)


def test_another_state_is_named_by_the_entry_that_stands_on_it() -> None:
    cell = history()
    rewrite(cell.logs, 50, state_hash=bytes(32))
    outcome = verification(cell.logs)
    assert outcome.difference is not None
    assert outcome.difference.position.offset == 50


def test_entries_of_another_version_are_counted_apart_and_folded() -> None:
    cell = history()
    ordinary = [at for at, (made, _) in enumerate(cell.entries) if not made.takeover]
    for offset in ordinary[10:20]:
        rewrite(cell.logs, offset, core_version=0, state_hash=bytes(32))
    outcome = verification(cell.logs)
    assert outcome.difference is None
    assert outcome.other_version == 10
    assert outcome.decided == len(ordinary) - 10


def test_entries_whose_inputs_are_gone_are_counted_apart_and_folded() -> None:
    cell = history()
    for place in cell.logs.records:
        if place[0] is Topic.SUBMISSIONS:
            cell.logs.starts[place] = 3
    outcome = verification(cell.logs)
    assert outcome.difference is None
    assert outcome.without_inputs > 0


def test_an_entry_that_held_time_back_is_decided_as_it_was() -> None:
    cell = RecordedCore()
    cell.run(c.domain(c.dimension("slots", 4)), c.pool())
    cell.run(c.submitted("t", "a", start_within_ms=5))
    cell.run(after_ms=10, timers=False)
    cell.run()
    assert verification(cell.logs).difference is None


def test_noise_is_counted_and_skipped() -> None:
    cell = history(entries=10)
    records = cell.logs.records[Topic.JOURNAL, 0]
    stale = records[5].value or b""
    for value in (stale, b"no word", stale[:-1]):
        cell.logs.append(Topic.JOURNAL, 0, None, value)
    outcome = verification(cell.logs)
    assert outcome.difference is None
    assert outcome.noise == 3
