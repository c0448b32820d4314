"""How much of a budget is used when it binds, against what can be reached (scheduling.md 6).

Estimates r times too high, tokens charged as reserved or as used, counted at arrival or completion.
"""

from collections.abc import Iterator
from itertools import product

from schemas.inputs import DimensionConfig
from tests.benchmarks.play import MILLION, Call, Play, Way, dimension, tenants
from tests.benchmarks.record import MILLI
from tests.benchmarks.result import Result

WINDOW_MS, SERVICE_MS = 60_000, 2_000
CALLS = 600
"""That fit into a window, about: what never fits exactly costs little."""
CALLS_QUICK = 200
TOKENS = 1_000
FACTORS = (1, 4, 10)
PLACES = 8
ASK_MS = 2
WEIGHTS = {"a": 2, "b": 1, "c": 1}
WAY = Way(ask_us=ASK_MS * MILLI, send_us=5 * MILLI)


def run(*, quick: bool) -> Iterator[Result]:
    """One row for each basis and each unit that binds; the floor is the ceiling of the worst."""
    windows, calls = (2, CALLS_QUICK) if quick else (8, CALLS)
    factors = FACTORS[1:2] if quick else FACTORS
    for amount, instant in product(("reserved", "actual"), ("arrival", "completion")):
        one = dimension("tokens", calls * TOKENS, amount=amount, instant=instant)
        shares = {
            f"{factor}x": (_use(one, windows, factor), _ceiling(one, factor)) for factor in factors
        }
        yield _row(f"token-budget-{amount}-{instant}", shares)
    for instant in ("arrival", "completion"):
        one = dimension("requests", calls, instant=instant)
        shares = {"requests": (_use(one, windows), _ceiling(one, 1))}
        yield _row(f"token-budget-requests-{instant}", shares)
    slots = dimension("slots", PLACES)
    shares = {"slots": (_use(slots, windows), SERVICE_MS / (SERVICE_MS + ASK_MS))}
    yield _row("token-budget-slots", shares)


def _row(name: str, shares: dict[str, tuple[float, float]]) -> Result:
    use, ceiling = min(shares.values(), key=lambda pair: pair[0] / pair[1])
    parts = {what: f"{use:.1%} of {ceiling:.1%}" for what, (use, ceiling) in shares.items()}
    return Result(name=name, value=use, unit="used", floor=ceiling, parts=parts)


def _ceiling(one: DimensionConfig, factor: int) -> float:
    """How long a call counts as what it used, of all that it counts (scheduling.md section 6)."""
    held_ms = SERVICE_MS if one.instant == "completion" else 0
    if one.amount == "reserved" or one.unit == "requests":
        return WINDOW_MS / (factor * (WINDOW_MS + held_ms))
    return WINDOW_MS / (WINDOW_MS + (factor - 1) * SERVICE_MS + held_ms)


def _use(one: DimensionConfig, windows: int, factor: int = 1) -> float:
    """The part of the limit that calls really took after the first window."""
    plenty = {"requests": 10**9, "tokens": 10**12, "slots": 10**6, one.name: one}
    dimensions = [
        it if isinstance(it, DimensionConfig) else dimension(name, it)
        for name, it in plenty.items()
    ]
    play = Play(dimensions, tenants(**WEIGHTS), way=WAY, domain={"report_send": True})

    def call(tenant: str) -> Call:
        used = int(play.chance.lognormvariate(0, 0.5) * TOKENS * 0.88) + 1
        return Call(tenant, used * factor, SERVICE_MS, used)

    for tenant in WEIGHTS:
        play.backlog(tenant, lambda tenant=tenant: call(tenant))
    first_us, span_us = WINDOW_MS * MILLI + 10 * MILLION, windows * WINDOW_MS * MILLI
    play.run(first_us + span_us)
    over = play.record.peak(one) - one.limit
    assert over <= 0, f"Expected no window above its limit, but one by {over}"
    used = play.record.used(one, first_us, first_us + span_us)
    if one.window_ms is None:
        return used / (one.limit * span_us)
    return used / (one.limit * windows)
