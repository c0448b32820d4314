"""How much of the slots is used while work always waits, against what the gap between calls allows.

The gap of a run is the median time from the end of a call to the next beginning in that slot, as
the worker has it. All idle time beyond three gaps is stranded: a slot was free and nothing came.
"""

import json
import math
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from schemas import events as e
from schemas.codec import decode
from schemas.entry import Entry
from schemas.topics import Topic, full_name
from tests.benchmarks.cell import CELL, Arrived, Inputs, configure, submission
from tests.benchmarks.environments import Unavailable, play
from tests.benchmarks.result import Result, not_run
from tests.benchmarks.stage import Stage
from tests.support.kafka import read_all

SERVICES_MS = (10, 20, 50, 100, 1_000)
SLOTS = (8, 64)
STRANDED_GAPS = 3
TURN = ("hop", "append", "hop")
"""What the broker does for one answer of the owner: hear, decide for good, tell."""
CALLS_MIN = 8
"""Of each slot in a run."""
RIVAL = (8, 100, 400)
"""Slots, milliseconds and calls of DBOS beside us."""


class Calls(NamedTuple):
    """What the worker noted of one run, all in seconds."""

    slots: int
    first_s: float
    until_s: float
    spans: Sequence[tuple[float, float]]
    """Beginnings and ends, in order of the beginnings."""


def run(stage: Stage) -> Iterator[Result]:
    """`slot-gap-K-S`: part of K slots used by calls of S ms, with and without standing starts."""
    services = (100,) if stage.quick else SERVICES_MS
    for slots in SLOTS[:1] if stage.quick else SLOTS:
        turn_ms = sum(stage.known.get(f"{part}-p50", math.nan) for part in TURN)
        yield from _rows(stage.beside(str(slots)), slots, services, 2 * turn_ms)
        standing = stage.beside(f"{slots}-standing")
        yield from _rows(standing, slots, services, turn_ms, standing=True)
    if not stage.quick:
        yield _dbos(stage.work, *RIVAL)


def _rows(
    stage: Stage, slots: int, services: Sequence[int], floor_ms: float, **pool: bool
) -> Iterator[Result]:
    """One cell and one worker; the services one after the other.

    `floor_ms` is what the broker alone takes between two calls.
    """
    stage.found_cell()
    stage.scheduler("owner")
    configure(stage.bootstrap, stage.prefix, slots=slots, **pool)
    notes = stage.work / "spans.json"
    worker = stage.start("worker", "-m", "tests.benchmarks.gap_worker", str(slots), str(notes))
    inputs = Inputs(stage.bootstrap, stage.prefix, linger_ms=1)
    settled = Arrived(stage.bootstrap, stage.prefix, Topic.SETTLEMENTS)
    seconds = 2.0 if stage.quick else 6.0
    spans_s = {
        service_ms: _keep_busy(
            inputs, settled, slots, service_ms, max(seconds, CALLS_MIN * service_ms / 1_000)
        )
        for service_ms in services
    }
    worker.terminate()
    lost = _lost_s(stage)
    noted = json.loads(notes.read_text())
    for service_ms, (first_s, until_s) in spans_s.items():
        spans = sorted((b / 1e9, d / 1e9) for tag, b, d in noted if tag == str(service_ms))
        calls = Calls(slots, first_s, until_s, spans)
        allows = {"the broker alone allows": f"{service_ms / (service_ms + floor_ms):.2%}"}
        name = f"slot-gap-{slots}-{service_ms}ms{'-standing' if pool else ''}"
        yield _row(name, calls, lost, {} if math.isnan(floor_ms) else allows)
    stage.stop()


def _dbos(work: Path, slots: int, service_ms: int, count: int) -> Result:
    """The same of a queue of DBOS in one process; the first and last calls do not count."""
    name, notes = f"slot-gap-{slots}-{service_ms}ms-dbos", work / "dbos.json"
    work.mkdir(parents=True, exist_ok=True)
    try:
        play("dbos_queue.py", ("dbos==3.4.0",), *map(str, (slots, service_ms, count, notes)))
    except Unavailable as error:
        return not_run(name, str(error))
    spans = sorted((begun / 1e9, ended / 1e9) for _, begun, ended in json.loads(notes.read_text()))
    return _row(name, Calls(slots, spans[2 * slots][0], spans[-2 * slots][0], spans), {}, {})


def _keep_busy(
    inputs: Inputs, settled: Arrived, slots: int, service_ms: int, seconds: float
) -> tuple[float, float]:
    """Work always waits over this span of the monotonic clock; then what waits is worked off."""
    ahead = 2 * slots + 100 * slots // service_ms
    first, sent, begun_s = settled.count, 0, math.inf
    while (now_s := time.monotonic()) < begun_s + seconds:
        done = settled.count - first
        for number in range(sent, done + slots + ahead):
            asked = submission(number, f"{service_ms}-")
            inputs.send(replace(asked, payload_ref=str(service_ms)))
            sent = number + 1
        inputs.producer.poll(0)
        settled.look(0.002)
        if done > 2 * slots:  # every slot is busy and the paths are warm
            begun_s = min(begun_s, now_s)
    while settled.count - first < sent:
        settled.look(0.05)
    return begun_s, now_s


def _row(name: str, calls: Calls, lost: dict[str, float], more: dict[str, str]) -> Result:
    clipped = [
        (max(begun, calls.first_s), min(ended, calls.until_s))
        for begun, ended in calls.spans
        if ended > calls.first_s and begun < calls.until_s
    ]
    whole_s = calls.slots * (calls.until_s - calls.first_s)
    use = sum(ended - begun for begun, ended in clipped) / whole_s
    # A slot takes its next call in the order in which slots become free.
    begun = [begun for begun, _ in calls.spans][calls.slots :]
    ended = sorted(ended for _, ended in calls.spans)
    gaps = [
        later - earlier
        for earlier, later in zip(ended, begun, strict=False)
        if calls.first_s < earlier and later < calls.until_s
    ]
    cuts = statistics.quantiles(gaps, n=100, method="inclusive")
    gap_s, service_s = cuts[49], statistics.fmean(d - b for b, d in calls.spans)
    stranded = sum(max(0.0, gap - STRANDED_GAPS * gap_s) for gap in gaps) / whole_s
    parts = {
        "gap": f"{cuts[49] * 1e3:.2f} ms, p99 {cuts[98] * 1e3:.2f}",
        "lost by the gap": f"{1 - use - stranded:.2%}",
        "stranded": f"{stranded:.2%}",
        **{what: f"{seconds / whole_s:.2%}" for what, seconds in lost.items()},
        **more,
    }
    ceiling = service_s / (service_s + gap_s)
    return Result(name=name, value=use, unit="used", floor=ceiling, parts=parts)


def _lost_s(stage: Stage) -> dict[str, float]:
    """Seconds of slots held by grants that expired, and by calls of unknown outcome."""
    granted_ms: dict[bytes, int] = {}
    unknown_ms: dict[bytes, int] = {}
    lost = {"expired": 0.0, "unknown": 0.0}
    journal = full_name(stage.prefix, CELL, Topic.JOURNAL)
    for got in read_all(stage.bootstrap, journal):
        entry: Entry = decode(got.value or b"")
        for event in (decode(one.body) for one in entry.events):
            match event:
                case e.GrantIssued():
                    granted_ms[event.operation] = entry.time_ms
                case e.GrantExpired():
                    lost["expired"] += (entry.time_ms - granted_ms[event.operation]) / 1_000
                case e.OutcomeMarkedUnknown():
                    unknown_ms[event.operation] = entry.time_ms
                case e.ReservationSettled() | e.ReservationForfeited():
                    since_ms = unknown_ms.pop(event.operation, entry.time_ms)
                    lost["unknown"] += (entry.time_ms - since_ms) / 1_000
                case _:
                    pass
    return lost
