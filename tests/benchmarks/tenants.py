"""What a decision costs beside ten active tenants, a hundred thousand, and a million.

A tenant is active while something of it waits. Each round a call ends, the next is granted and
started, and its tenant asks for another, so that all stay active. What the others are counts too:
whether nothing of them waits, or each waits with a call that is too large for what is free.
"""

import gc
import resource
import time
from collections.abc import Iterable, Iterator
from itertools import islice

from schemas import events as e
from schemas import inputs as i
from streams.core.decider import decide
from streams.core.evolution import evolve
from streams.core.outcomes import Source, Taken
from tests.benchmarks.play import FOREVER_MS
from tests.benchmarks.result import Result
from tests.support import cells as s
from tests.support import core as c
from tests.support.rows import MemoryRows

PLACES = 64
AHEAD = 400
"""Calls that wait at least, so that no place is ever idle."""
YEAR_MS = 365 * 86_400_000
TOKENS, LARGE, SMALLER, SPREAD = 10**9, 900_000_000, 700_000_000, 7_919
"""The budget of a year, and calls that take much of it, less by a prime each."""
TOGETHER = 8
"""Calls that end in one entry."""
IDLE_MAX = 100_000
"""More need not come and go: what they leave behind is in rows alone."""
PATIENCE_S = 20.0
"""Of CPU for a figure; whatever is not constant takes for ever at a million."""
CHUNK = 1_000
"""Inputs of one entry while the tenants come."""


def run(*, quick: bool) -> Iterator[Result]:
    """`scale-tenants-N`: microseconds of CPU for a lifecycle; the floor is that at ten.

    Beside it rows read for one lifecycle, kilobytes for a tenant (rows included), and the cost
    of ten while the others are idle, or wait with calls that are too large.
    """
    rounds = 100 if quick else 1_000
    few_us, steps, _ = _cost(10, rounds)
    yield Result(
        name="scale-tenants-10", value=few_us, unit="us", parts={"rows read": f"{steps:.1f}"}
    )
    for count in (2_000,) if quick else (100_000, 1_000_000):
        us, steps, kb = _cost(count, rounds)
        parts = {"rows read": f"{steps:.1f}", "kB a tenant": f"{kb:.1f}"}
        if count <= IDLE_MAX:
            idle_us, *_ = _cost(count, rounds, active=10)
            parts["others idle"] = f"{idle_us:.0f} us"
        large_us, *_ = _cost(count, rounds, active=10, large=True)
        parts["others too large"] = f"{large_us:.0f} us"
        yield Result(name=f"scale-tenants-{count}", value=us, unit="us", floor=few_us, parts=parts)


def _cost(
    tenants: int, rounds: int, *, active: int | None = None, large: bool = False
) -> tuple[float, float, float]:
    """Microseconds and rows read a lifecycle, and kilobytes a tenant."""
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cell = _Cell(tenants, active or tenants, large=large)
    kb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb) / tenants
    gc.collect()
    gc.freeze()  # a million tenants are looked at by nobody, not even by the collector
    cell.play(rounds // 5)
    rows, lifecycles = cell.core.rows.steps, cell.lifecycles
    us = 1e6 * cell.play(rounds)
    gc.unfreeze()
    return us, (cell.core.rows.steps - rows) / (cell.lifecycles - lifecycles), kb


class _Cell:
    """Some tenants, and as many places as calls run."""

    def __init__(self, tenants: int, active: int, *, large: bool) -> None:
        self.core = c.Core(rows=MemoryRows())
        self.running: list[e.GrantIssued] = []
        self.lifecycles = 0
        self._sent = 0
        events = self.core.run(
            s.bounds(waiting_count_max=10**9),
            c.domain(
                c.dimension("requests", 10**12),
                c.dimension("tokens", TOKENS, window_ms=YEAR_MS, instant="completion"),
                c.dimension("slots", 10**6),
                waiting_count_max=10**9,
                skips_max=10**9,  # nobody saves: the small calls go on
                age_max_ms=10**9,
            ),
            c.pool(lease_ms=FOREVER_MS),
        )
        assert not c.only(e.ConfigRefused, events), "Expected the configuration to hold"
        names = [f"t{number}" for number in range(tenants)]
        others = names[active:]
        self.core.run(c.join(places=PLACES), c.heartbeat())
        if large:  # one of them runs, and leaves no room for the others
            (first,) = s.grants(self.core.run(self._asked("first", LARGE)))
            self.core.run(c.start(first))
            sizes = (LARGE - n * SPREAD % SMALLER for n in range(len(others)))
            self._take(map(self._asked, others, sizes))
        else:  # the others come and go
            asked = [self._asked(name) for name in others]
            self._take(asked)
            self._take(map(s.cancel, asked))
        self._submit(names[:active], max(1, AHEAD // active))
        self._keep(self.core.run())

    def _submit(self, names: list[str], each: int) -> None:
        self._take(self._asked(name) for name in names for _ in range(each))

    def _take(self, inputs: Iterable[i.Input]) -> None:
        """A chunk in each entry, and nothing is granted: only what comes after is measured."""
        core, left = self.core, iter(inputs)
        while chunk := [*islice(left, CHUNK)]:
            core.height += 1
            core.state.begin(c.Made(core.height, core.epoch, core.now_ms))
            for one in chunk:
                for event in decide(core.state, Taken(Source(c.TOPIC_OF[type(one)], 0, 0), one)):
                    evolve(core.state, event)
            core.rows.write(core.state.drain())

    def _asked(self, tenant: str, tokens: int = 0) -> i.OperationSubmitted:
        self._sent += 1
        tokens = tokens or 500 + self._sent % 1_000
        return c.submitted(tenant, str(self._sent), prompt_tokens=tokens)

    def _keep(self, events: list) -> None:
        self.core.entries.clear()
        granted = s.grants(events)
        if granted:
            self.running += granted
            self.core.run(*map(c.start, granted))
            self.core.entries.clear()

    def _end(self, count: int, *more: i.Input) -> None:
        ended, self.running = self.running[:count], self.running[count:]
        self._keep(self.core.run(*map(c.result, ended), *more, after_ms=1))

    def play(self, rounds: int) -> float:
        """So many lifecycles, or fewer if that takes too long; seconds of CPU for each."""
        begun, first, spent = time.process_time(), self.lifecycles, 0.0
        for _ in range(rounds):
            asked = [self._asked(one.tenant) for one in self.running[:TOGETHER]]
            self._end(TOGETHER, *asked)
            self.lifecycles += TOGETHER
            spent = time.process_time() - begun
            if spent > PATIENCE_S:
                break
        return spent / (self.lifecycles - first)
