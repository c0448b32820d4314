"""How fast a journal becomes state and tables again: what a restart and a standby can do."""

import time
from collections.abc import Iterator

from schemas.topics import Topic, full_name
from streams.shell.journal import Record
from streams.shell.restore import Fold
from streams.shell.rocks import RocksTables
from tests.benchmarks.cell import CELL
from tests.benchmarks.result import Result
from tests.benchmarks.stage import Stage
from tests.support.kafka import read_all


def run(stage: Stage) -> Iterator[Result]:
    """`fold`: events a second over the journal that `lifecycles-bare` left."""
    journal = full_name("bench-lifecycles-bare", CELL, Topic.JOURNAL)
    records = [
        Record(got.offset, got.append_ms, 0, got.value or b"")
        for got in read_all(stage.bootstrap, journal)
    ]
    store = RocksTables(stage.work / "tables")
    fold = Fold(store, "bench")
    begun, events = time.perf_counter(), 0
    for record in records:
        entry = fold.apply(record)
        events += len(entry.events) if entry else 0
    seconds = time.perf_counter() - begun
    store.close()
    costs = {"fold": seconds * 1e6 / events}
    yield Result(name="fold", value=events / seconds, unit="events/s", core_us=costs)
