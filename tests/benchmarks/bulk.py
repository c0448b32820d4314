"""A long bulk run beside interactive work: what it adds to how long a person waits (R112).

196 operations of some 8.5 calls each: a call is submitted when the one before it has ended.
"""

import statistics
from collections.abc import Iterator

from schemas import events as e
from schemas.ids import OperationId
from schemas.lanes import LANES
from tests.benchmarks.play import MILLION, Call, Play, Way, dimension
from tests.benchmarks.record import MILLI
from tests.benchmarks.result import Result
from tests.support import core as c

RUNS = 196
CALLS = (7, 8, 9, 10)
"""Of one run; 8.5 in the mean."""
SLOTS, TOKENS_MAX, WINDOW_MS = 16, 1_000_000, 60_000
PER_S = 5.0
"""Interactive calls; they alone use half of the slots and less than half of the tokens."""
WAY = Way(ask_us=2 * MILLI, send_us=5 * MILLI)


def run(*, quick: bool) -> Iterator[Result]:
    """`bulk-run`: p95 of interactive calls from submission to end; the floor is that without it."""
    runs = RUNS // 4 if quick else RUNS
    idle_ms, _ = _p95_ms(0, 4 * 60 if quick else 15 * 60)
    busy_ms, took_s = _p95_ms(runs, None)
    parts = {"runs": f"{runs}", "took": f"{took_s:,.0f} s"}
    yield Result(name="bulk-run", value=busy_ms, unit="ms", floor=idle_ms, parts=parts)


class _Chains:
    """Bulk operations, each a chain of calls."""

    def __init__(self, play: Play, runs: int) -> None:
        self._play = play
        self._left: dict[OperationId, int] = {}
        self.open = runs
        for _ in range(runs):
            self._next(play.chance.choice(CALLS))
        play.watchers.append(self._see)

    def _next(self, left: int) -> None:
        self._left[self._play.submit(_call(self._play, "crowd", "bulk"))] = left - 1

    def _see(self, events: list[e.Event]) -> None:
        for event in events:
            if isinstance(event, e.ResultRecorded) and event.operation in self._left:
                left = self._left.pop(event.operation)
                if left:
                    self._next(left)
                else:
                    self.open -= 1


def _call(play: Play, tenant: str, lane: str) -> Call:
    tokens = int(play.chance.lognormvariate(7, 0.6)) + 1
    return Call(tenant, tokens, play.chance.randint(800, 2_400), more={"lane": lane})


def _p95_ms(runs: int, span_s: int | None) -> tuple[float, float]:
    """Of the interactive calls until the bulk is done, or over a span; and how long that took."""
    room = {"waiting_count_max": 10**9, "waiting_bytes_max": 10**15}
    tenants = [c.tenant(name, lanes=tuple(LANES), **room) for name in ("person", "crowd")]
    dimensions = (
        dimension("requests", 2_000),
        dimension("tokens", TOKENS_MAX),
        dimension("slots", SLOTS),
    )
    play = Play(dimensions, tenants, way=WAY, domain={"report_send": True})
    longest_s = span_s or 3_600
    play.poisson(lambda: _call(play, "person", "interactive"), PER_S, 0, longest_s * MILLION)
    chains = _Chains(play, runs)
    at_s = 0
    while at_s < longest_s and (span_s or chains.open):
        at_s += 1
        play.run(at_s * MILLION)
    latencies = [
        (story.seen.ended_us - story.asked_us) / MILLI
        for story in play.stories.values()
        if story.call.tenant == "person" and story.seen and story.seen.ended_us < play.now_us
    ]
    return statistics.quantiles(latencies, n=100, method="inclusive")[94], at_s
