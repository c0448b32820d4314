"""What the core alone decides in a second: no broker, no disk, no codec but that of its rows."""

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence

from schemas import events as e
from schemas import inputs as i
from streams.core.decider import Acted, step
from streams.core.outcomes import Source, Taken
from tests.benchmarks.play import FOREVER_MS
from tests.benchmarks.result import Result
from tests.support import cells as s
from tests.support import core as c
from tests.support.rows import MemoryRows

TENANTS, PLACES = 8, 512
TOGETHER = 64
"""Inputs of one kind in one entry, as under load; as many grants as an entry may hold."""


def run(*, quick: bool) -> Iterator[Result]:
    """`core`: decisions (events recorded) a second of CPU; beside it what a lifecycle is made of.

    `rows` is the encoding of changed rows; to keep them costs nothing here.
    """
    entries = 60 if quick else 1_000
    loop = _Loop()
    loop.play(entries // 4)
    loop.spent_s.clear()
    loop.decisions = 0
    loop.play(entries)
    lifecycles = entries * TOGETHER
    spent_us = {name: 1e6 * spent / lifecycles for name, spent in loop.spent_s.items()}
    seconds = sum(loop.spent_s.values())
    parts = {"lifecycles/s": f"{lifecycles / seconds:,.0f}"}
    value = loop.decisions / seconds
    yield Result(name="core", value=value, unit="decisions/s", core_us=spent_us, parts=parts)


class _Loop:
    """Submissions, results with the grants that they make room for, starts: an entry each."""

    def __init__(self) -> None:
        self.core = c.Core(rows=MemoryRows())
        self.spent_s: defaultdict[str, float] = defaultdict(float)
        self.decisions = 0
        self._sent = 0
        self.core.run(
            s.bounds(),
            c.domain(
                c.dimension("requests", 10**12),
                c.dimension("tokens", 10**14),
                c.dimension("slots", 10**6),
            ),
            c.pool(lease_ms=FOREVER_MS),
        )
        self.core.run(*self._asked(PLACES))
        events = self.core.run(c.join(places=PLACES), c.heartbeat())
        while self.core.state.more:
            events += self.core.run()
        self._running = s.grants(events)
        assert len(self._running) == PLACES, f"Expected every place taken: {len(self._running)}"
        self.core.run(*map(c.start, self._running))
        self.core.run(*self._asked(TOGETHER))
        self.core.entries.clear()

    def _asked(self, count: int) -> list[i.OperationSubmitted]:
        first, self._sent = self._sent, self._sent + count
        return [c.submitted(f"t{n % TENANTS}", str(n)) for n in range(first, self._sent)]

    def play(self, entries: int) -> None:
        for _ in range(entries):
            ended, self._running = self._running[:TOGETHER], self._running[TOGETHER:]
            self._timed("admit", self._asked(TOGETHER))
            granted = s.grants(self._timed("settle and grant", [*map(c.result, ended)]))
            assert len(granted) == TOGETHER, f"Expected as many grants, got {len(granted)}"
            self._timed("start", [*map(c.start, granted)])
            self._running += granted

    def _timed(self, name: str, asked: Sequence[i.Input]) -> list[e.Event]:
        """One entry, as `Core.run` makes it, with a watch around its parts."""
        core = self.core
        core.height, core.now_ms = core.height + 1, core.now_ms + 1
        made = c.Made(core.height, core.epoch, core.now_ms)
        taken = [Taken(Source(c.TOPIC_OF[type(one)], 0, n), one) for n, one in enumerate(asked)]
        begun = time.process_time()
        core.state.begin(made)
        decided = step(core.state, taken, Acted())
        stepped = time.process_time()
        images = core.state.drain()
        self.spent_s["rows"] += time.process_time() - stepped
        self.spent_s[name] += stepped - begun
        self.decisions += len(decided)
        core.rows.write(images)
        return [one.event for one in decided]
