"""What is wrong with dimensions and prices that somebody proposes: a sentence for each."""

from collections.abc import Iterator
from itertools import pairwise

from schemas.inputs import DimensionConfig, Prices

from .configured import Domain
from .limits import LIMIT_MAX, PRICE_MAX, RESETS_MAX, WINDOW_MS_MAX
from .pace import HUNDRED
from .shape import valid_name

MONEY = "money"
UNITS = ("requests", "tokens", "input_tokens", "output_tokens", MONEY, "slots", "runs")
HELD = ("slots", "runs")
"""Units that count until the attempt ends."""
KINDS = ("sliding", "fixed", "bucket", "concurrency")


PRICES = ("input_micros", "output_micros", "call_micros")
CURRENCY_CHARS = 3


def price_faults(domain: Domain | None, prices: Prices | None) -> Iterator[str]:
    """Each thing that is wrong with prices of a domain, as it is so far; the first is told."""
    if prices is not None:
        yield from _absurd(prices)
    if domain is None or domain.config.prices is None:
        return
    before = domain.config.prices.currency
    if prices is None or prices.currency != before:
        for window in domain.all_windows():
            if window.config.unit == MONEY:
                limit = window.config.name
                yield f"Expected prices in {before} while {limit} limits money: drop that first"


def _absurd(prices: Prices) -> Iterator[str]:
    currency = prices.currency
    if len(currency) != CURRENCY_CHARS or not (currency.isascii() and currency.isupper()):
        yield f"Expected a currency of three capital letters, but got {currency!r:.40}"
    for field in PRICES:
        micros = getattr(prices, field)
        if not 0 <= micros <= PRICE_MAX:
            yield f"Expected {field} from 0 to {PRICE_MAX}, but got {micros}"
    if not any(getattr(prices, field) for field in PRICES):
        yield f"Expected a price above 0 among {', '.join(PRICES)}, or no prices"


def contradictions(one: DimensionConfig, prices: Prices | None) -> Iterator[str]:
    """Each thing that is wrong in a domain with these prices; the first is told."""
    if one.unit == MONEY and prices is None:
        yield f"Expected the domain to have prices, since {one.name} limits money"
    if not valid_name(one.name):
        yield "Expected a printable dimension name"
    if one.unit not in UNITS:
        units = ", ".join(UNITS)
        yield f"Expected a unit for {one.name} ({units}), but got {one.unit!r:.40}"
    if one.kind not in KINDS:
        kinds = ", ".join(KINDS)
        yield f"Expected a kind for {one.name} ({kinds}), but got {one.kind!r:.40}"
    if (one.unit in HELD) != (one.kind == "concurrency"):
        kind = "concurrency" if one.unit in HELD else "a window or a bucket"
        yield f"Expected {one.unit} limited by {kind} in {one.name}, but got kind {one.kind}"
    if not 0 <= one.limit <= LIMIT_MAX:
        yield f"Expected a limit from 0 to {LIMIT_MAX} for {one.name}, but got {one.limit}"
    yield from _window(one)
    yield from _pace(one)
    if one.amount not in ("reserved", "actual"):
        yield f"Expected amount reserved or actual for {one.name}, but got {one.amount!r:.40}"
    if one.instant not in ("arrival", "completion"):
        yield f"Expected instant arrival or completion for {one.name}, but got {one.instant!r:.40}"


def _window(one: DimensionConfig) -> Iterator[str]:
    if (one.window_ms is None) != (one.kind == "concurrency"):
        yield f"Expected window_ms for a window, and none for concurrency, in {one.name}"
    if one.window_ms is not None and not 1 <= one.window_ms <= WINDOW_MS_MAX:
        yield f"Expected window_ms from 1 to {WINDOW_MS_MAX} in {one.name}, got {one.window_ms}"
    if one.reset_ms is not None and one.kind != "fixed":
        yield f"Expected no reset_ms in {one.name}: only a fixed window is reset at an instant"
    if one.reset_ms is not None and not 0 <= one.reset_ms <= LIMIT_MAX:
        yield f"Expected reset_ms from 0 to {LIMIT_MAX} in {one.name}, but got {one.reset_ms}"
    yield from _later_resets(one)
    if not 0 <= one.reset_uncertainty_ms <= WINDOW_MS_MAX:
        yield f"Expected reset_uncertainty_ms from 0 to {WINDOW_MS_MAX} in {one.name}"


def _later_resets(one: DimensionConfig) -> Iterator[str]:
    later, window_ms = one.later_resets_ms, one.window_ms
    if later and (one.reset_ms is None or window_ms is None):
        yield f"Expected a reset_ms before the later_resets_ms of {one.name}"
    if len(later) > RESETS_MAX or max(later, default=0) > LIMIT_MAX:
        yield f"Expected later_resets_ms of at most {RESETS_MAX} instants to {LIMIT_MAX}"
    for before, after in pairwise((one.reset_ms or 0, *later)):
        if 2 * (after - before) < (window_ms or 0):
            yield f"Expected half a window or more between {before} and {after} in {one.name}"


def _pace(one: DimensionConfig) -> Iterator[str]:
    if one.pace_percent is None:
        return
    if not 1 <= one.pace_percent <= HUNDRED:
        yield f"Expected pace_percent from 1 to 100 in {one.name}, but got {one.pace_percent}"
    if one.kind == "bucket":
        yield f"Expected no pace_percent in {one.name}: the capacity of a bucket is its burst"
    if one.kind == "concurrency":
        yield f"Expected no pace_percent in {one.name}: slots and runs have no speed"
