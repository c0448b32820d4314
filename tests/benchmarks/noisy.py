"""One tenant sends 90 % of everything: how long the quiet ones wait (R151)."""

import statistics
from collections.abc import Iterator

from schemas.inputs import DimensionConfig
from tests.benchmarks.play import MILLION, Call, Play, Way, dimension, tenants
from tests.benchmarks.record import MILLI
from tests.benchmarks.result import Result

WINDOW_MS = 60_000
CALLS = 600
"""That fit into a window, about."""
TOKENS = 1_000
"""Of a call, about."""
OFFERED = 1.5
"""Of what the budget can carry."""
QUIET = tuple(f"quiet-{number}" for number in range(10))
NOISY, NOISE = "noisy", 0.9
WAY = Way(ask_us=2 * MILLI, send_us=5 * MILLI)
FIRST_US = WINDOW_MS * MILLI
"""Until the window is full and the noisy one's queue long."""


def run(*, quick: bool) -> Iterator[Result]:
    """`noisy-neighbour`: p99 from submission to grant of the quiet ones, with a pace of 5 %.

    Beside it with the default pace, without any, and without the noisy one.
    """
    minutes = 2 if quick else 30
    waits = {"no pace": _p99_ms(minutes, pace=100)}
    if not quick:
        waits["pace 10 %"] = _p99_ms(minutes, pace=10)
        waits["alone"] = _p99_ms(minutes, pace=5, noise=False)
    value = _p99_ms(minutes, pace=5)
    parts = {name: f"{wait:,.0f} ms" for name, wait in waits.items()}
    yield Result(name="noisy-neighbour", value=value, unit="ms", parts=parts)


def _dimension(name: str, limit: int, pace: int) -> DimensionConfig:
    return dimension(name, limit, pace_percent=pace, amount="actual")


def _p99_ms(minutes: int, *, pace: int, noise: bool = True) -> float:
    dimensions = [
        _dimension("requests", 2 * CALLS, pace),
        _dimension("tokens", CALLS * TOKENS, pace),
        dimension("slots", 256),
    ]
    weights = dict.fromkeys((NOISY, *QUIET), 1)
    play = Play(dimensions, tenants(**weights), way=WAY, domain={"report_send": True})
    per_s = OFFERED * CALLS * 1_000 / WINDOW_MS
    until_us = FIRST_US + minutes * 60 * MILLION

    def call(tenant: str) -> Call:
        used = int(play.chance.lognormvariate(0, 0.5) * TOKENS * 0.88) + 1
        return Call(tenant, used, 2_000)

    for tenant in QUIET:
        rate = per_s * (1 - NOISE) / len(QUIET)
        play.poisson(lambda tenant=tenant: call(tenant), rate, 0, until_us)
    if noise:
        play.poisson(lambda: call(NOISY), per_s * NOISE, 0, until_us)
    play.run(until_us)
    waits = [
        story.wait_ms
        for story in play.stories.values()
        if story.grant is not None and story.asked_us >= FIRST_US and story.call.tenant != NOISY
    ]
    return statistics.quantiles(waits, n=100, method="inclusive")[98]
