"""Whether any window ever held too much by the provider's exact record, at the worst that may be.

Calls are sent as late as they may and arrive as late as they may, or at once; entry time runs fast
by what the rules allow for; owners change, and each has another estimate of the time; a tenth of
what workers say comes twice. Windows of the provider are aligned in every possible way.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator

from schemas.inputs import DimensionConfig, Prices
from streams.core.limits import CLOCK_SPREAD_MS, RHO_PPM
from tests.benchmarks.play import MILLION, Call, Play, Way, dimension, tenants
from tests.benchmarks.record import MILLI, Record
from tests.benchmarks.result import Result

SEND_WITHIN_MS, TRANSIT_MS, CLOCK_BOUND_MS = 1_000, 300, 100
BEGUN_MS = 1_000_000
"""When a play begins."""
RESET_UNCERTAINTY_MS = 400
"""What the clock may be off in a play of two minutes, and some."""
TAKEOVERS_PER_S = 0.3
REPEATS = 0.1
WEIGHTS = {"a": 2, "b": 1, "c": 1}
PRICES = Prices(currency="EUR", input_micros=3_000_000, output_micros=15_000_000, call_micros=500)
WORLDS = {
    "requests-1s": [
        dimension("requests", 40, window_ms=1_000),
        dimension("requests-60s", 1_500, window_ms=60_000),
    ],
    "tokens-10s": [
        dimension("tokens", 60_000, window_ms=10_000, amount="actual"),
        dimension("slots", 24),
    ],
    "tokens-completion": [
        dimension("tokens", 60_000, window_ms=10_000, amount="actual", instant="completion")
    ],
    "bucket": [dimension("tokens", 60_000, kind="bucket", window_ms=10_000)],
    "input-10s": [dimension("input_tokens", 40_000, window_ms=10_000, amount="actual")],
    "output-bucket": [dimension("output_tokens", 40_000, kind="bucket", window_ms=10_000)],
    "money-completion": [
        dimension("money", 500_000, window_ms=10_000, amount="actual", instant="completion"),
        dimension("money-1s", 460_000, window_ms=1_000),
    ],
    "fixed-unknown": [dimension("tokens", 60_000, kind="fixed", window_ms=10_000)],
    "fixed-known": [
        dimension(
            "requests", 60, kind="fixed", window_ms=10_000,
            reset_ms=BEGUN_MS, reset_uncertainty_ms=RESET_UNCERTAINTY_MS,
        )
    ],
    "fixed-unequal": [
        dimension(
            "tokens", 60_000, kind="fixed", window_ms=10_000, reset_ms=BEGUN_MS,
            later_resets_ms=tuple(BEGUN_MS + one for one in (21_500, 39_000, 84_000)),
            reset_uncertainty_ms=RESET_UNCERTAINTY_MS,
        )
    ],
}  # fmt: skip
UNEQUAL_MS = (
    0,
    10_000,
    21_500,
    31_500,
    *range(39_000, 84_000, 10_000),
    *range(84_000, 130_000, 10_000),
)
"""Where the unequal windows begin, counted from the first."""


def run(*, quick: bool) -> Iterator[Result]:
    """`overshoot`: the most above any limit; beside it the most that each window held."""
    seeds, seconds = (1, 40) if quick else (5, 120)
    over, parts, least = 0, {}, 1.0
    for name, dimensions in WORLDS.items():
        peaks: defaultdict[str, int] = defaultdict(int)
        for seed in range(seeds):
            play = _play(dimensions, seed, seconds)
            for one in dimensions:
                peaks[one.name] = max(peaks[one.name], _peak(play.record, one))
        for one in dimensions:
            peak = peaks[one.name]
            over = max(over, peak - one.limit)
            least = min(least, 1 - peak / one.limit)
            parts[f"{name}/{one.name}" if len(dimensions) > 1 else name] = f"{peak} of {one.limit}"
    parts["smallest margin"] = f"{least:.2%}"
    yield Result(name="overshoot", value=over, unit="calls, tokens or micros", parts=parts)


def _peak(record: Record, one: DimensionConfig) -> int:
    if one.reset_ms is None:
        return record.peak(one)
    held: defaultdict[int, int] = defaultdict(int)
    assert one.window_ms is not None, "Expected a window"
    begins_ms = UNEQUAL_MS if one.later_resets_ms else range(0, 130_000, one.window_ms)
    for call in record.calls:  # the play begins at the reset
        held[bisect_right(begins_ms, call.counted_us(one) // MILLI)] += call.amount(one)
    return max(held.values())


def _play(dimensions: list[DimensionConfig], seed: int, seconds: int) -> Play:
    play = Play(
        dimensions,
        tenants(**WEIGHTS),
        way=Way(20 * MILLI, SEND_WITHIN_MS * MILLI, TRANSIT_MS * MILLI),
        seed=seed,
        repeats=REPEATS,
        bounds={"clock_bound_ms": CLOCK_BOUND_MS},
        domain={"send_within_ms": SEND_WITHIN_MS, "transit_ms": TRANSIT_MS, "prices": PRICES},
    )
    chance = play.chance
    play.clock.rate_ppm = RHO_PPM

    def call(tenant: str) -> Call:
        used = int(chance.lognormvariate(6, 0.8)) + 1
        used = min(used, 30_000)
        reserved = min(used * chance.choice((1, 1, 2, 8)), 30_000)
        part = chance.random()
        output = int(used * part), int(reserved * part)
        return Call(
            tenant,
            reserved,
            chance.choice((5, 200, 3_000)),
            used,
            output=output[1],
            used_output=output[0],
        )

    for tenant in WEIGHTS:
        play.backlog(tenant, lambda tenant=tenant: call(tenant))
    at_us = 0
    while (at_us := at_us + int(chance.expovariate(TAKEOVERS_PER_S) * MILLION)) < seconds * MILLION:
        ahead_ms = chance.choice((0, CLOCK_BOUND_MS + CLOCK_SPREAD_MS))
        play.later(at_us, lambda ahead_ms=ahead_ms: play.take_over(ahead_ms))
    play.run(seconds * MILLION)
    return play
