"""`lag`: ten ways to load a cell, and how near each comes to the bound of scheduling.md 1."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from schemas import inputs as i
from schemas.inputs import DimensionConfig
from tests.benchmarks.lag import Watch, largest_lag
from tests.benchmarks.play import MILLION, Call, Play, Way, dimension, tenants
from tests.benchmarks.record import MILLI
from tests.benchmarks.result import Result
from tests.support import core as c

WINDOW_MS = 10_000
TOKENS_MAX = 200_000
"""Some 20 calls a second of 1,000 tokens."""
WEIGHTS = {"a": 2, "b": 1, "c": 1}
WAY = Way(ask_us=2 * MILLI, send_us=5 * MILLI)


class Span(NamedTuple):
    """How long a scene lasts."""

    s: int

    @property
    def us(self) -> int:
        return self.s * MILLION


def run(*, quick: bool) -> Iterator[Result]:
    """The largest lag of any scene by its bound; beside it each scene's."""
    span = Span(10 if quick else 200)
    lags = {}
    for name, scene in SCENES.items():
        play, watch, weights = scene(span)
        play.run(span.us)
        lags[name] = largest_lag(watch, weights, WINDOW_MS)
    parts = {name: f"{lag:.3f}" for name, lag in lags.items()}
    yield Result(name="lag", value=max(lags.values()), unit="of bound", parts=parts)


Scene = tuple[Play, Watch, dict[str, int]]


def _begin(*dimensions: DimensionConfig, caps: dict | None = None, places: int = 1_000) -> Scene:
    configured = [
        c.tenant(
            name, weight=weight, waiting_count_max=10**9, waiting_bytes_max=10**15,
            budgets=(caps or {}).get(name, ()),
        )
        for name, weight in WEIGHTS.items()
    ] if caps else tenants(**WEIGHTS)  # fmt: skip
    wanted = dimensions or (dimension("tokens", TOKENS_MAX, window_ms=WINDOW_MS, amount="actual"),)
    play = Play(
        wanted, configured, places=places, way=WAY, bounds={"grants_per_entry_max": 1},
        domain={"hold_initial_ms": 100},
    )  # fmt: skip
    return play, Watch(play, WEIGHTS), dict(WEIGHTS)


def _sized(play: Play, tenant: str, mean: int = 1_000, spread: float = 0.8, ms: int = 500) -> Call:
    tokens = int(play.chance.lognormvariate(0, spread) * mean) + 1
    return Call(tenant, min(tokens, TOKENS_MAX // 2), ms)


def _always(play: Play, *names: str, **sizes: float) -> None:
    for name in names:
        play.backlog(name, lambda name=name: _sized(play, name, **sizes))


def _overload(_: Span) -> Scene:
    """All three ask for more than there is."""
    scene = play, *_ = _begin()
    _always(play, *WEIGHTS)
    return scene


def _proportional(span: Span) -> Scene:
    """Each asks for its share of nearly everything."""
    scene = play, *_ = _begin()
    for name, weight in WEIGHTS.items():
        rate = 0.97 * TOKENS_MAX / WINDOW_MS / 1.37 * weight / 4
        play.poisson(lambda name=name: _sized(play, name), rate, 0, span.us)
    return scene


def _on_off(span: Span) -> Scene:
    """One is on for two seconds and off for three; the others always wait."""
    scene = play, *_ = _begin()
    _always(play, "b", "c")
    for at_s in range(0, span.s, 5):
        play.later(at_s * MILLION, lambda: _always(play, "a"))
        play.later((at_s + 2) * MILLION, lambda: play.drain("a"))
    return scene


def _short_against_long(_: Span) -> Scene:
    """Calls of 0.1 s against calls of 5 s, and slots bind."""
    scene = play, *_ = _begin(dimension("slots", 8))
    _always(play, "a", ms=100)
    _always(play, "b", ms=5_000)
    _always(play, "c", ms=1_000)
    return scene


def _increase(span: Span) -> Scene:
    """One asks for twice as much again and again, up to three times the whole budget."""
    scene = play, *_ = _begin()
    _always(play, "b", "c")
    rate, steps = 0.5, 7
    for step in range(steps):
        first_us = span.us * step // steps
        play.poisson(
            lambda: _sized(play, "a"), rate * 2**step, first_us, first_us + span.us // steps
        )
    return scene


def _shift(span: Span) -> Scene:
    """Small calls become large ones, and large ones small."""
    scene = play, *_ = _begin()

    def size(name: str, before: int, after: int) -> Call:
        return _sized(play, name, before if play.now_us < span.us // 2 else after)

    play.backlog("a", lambda: size("a", 200, 8_000))
    play.backlog("b", lambda: size("b", 8_000, 200))
    _always(play, "c")
    return scene


def _dimensions(_: Span) -> Scene:
    """Many small calls against few large ones: requests bind the one, tokens the other."""
    scene = play, *_ = _begin(
        dimension("requests", 300, window_ms=WINDOW_MS),
        dimension("tokens", TOKENS_MAX, window_ms=WINDOW_MS),
        dimension("slots", 32),
    )
    _always(play, "a", mean=20)
    _always(play, "b", mean=4_000)
    _always(play, "c", mean=700, ms=2_000)
    return scene


def _caps(_: Span) -> Scene:
    """One is held back by a cap of its own again and again."""
    own = i.TenantBudget(domain="d", dimensions=(dimension("slots", 2),))
    scene = play, *_ = _begin(dimension("slots", 8), caps={"a": (own,)})

    def mixed() -> Call:
        return _sized(play, "a", ms=play.chance.choice((50, 50, 3_000)))

    play.backlog("a", mixed)
    _always(play, "b", "c", ms=300)
    return scene


def _returning(span: Span) -> Scene:
    """Two stay away for most of the time and come back together."""
    scene = play, *_ = _begin()
    _always(play, "c")
    for part in (2, 5, 8):
        play.later(span.us * part // 10, lambda: _always(play, "a", "b"))
        for name in "ab":
            play.later(span.us * (part + 1) // 10, lambda name=name: play.drain(name))
    return scene


def _estimates(_: Span) -> Scene:
    """One reserves four times what it uses, and another a quarter."""
    scene = play, *_ = _begin()

    def wrong(name: str, times: float) -> Call:
        call = _sized(play, name, mean=500)
        return call._replace(tokens=max(1, int(call.tokens * times)), used=call.tokens)

    play.backlog("a", lambda: wrong("a", 4))
    play.backlog("b", lambda: wrong("b", 0.25))
    _always(play, "c")
    return scene


SCENES: dict[str, Callable[[Span], Scene]] = {
    "overload": _overload,
    "proportional": _proportional,
    "on and off": _on_off,
    "short and long": _short_against_long,
    "increase": _increase,
    "shift": _shift,
    "dimensions": _dimensions,
    "caps": _caps,
    "returning": _returning,
    "estimates": _estimates,
}
