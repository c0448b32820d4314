"""The arithmetic of windows, paces and buckets, as the reference model writes it."""

from collections import Counter
from collections.abc import Iterable

from schemas.inputs import DimensionConfig
from tests.contract.reference_prices import Vector
from tests.contract.reference_work import Charge

NANOS = 1_000_000
"""In a millisecond."""


def amount(dimension: DimensionConfig, takes: Vector) -> int:
    return takes.get(dimension.unit, 0)


def settled(dimension: DimensionConfig, reserved: int, actual: Vector | None) -> int:
    """What is charged in the end."""
    used = reserved if actual is None else actual.get(dimension.unit, reserved)
    return used if dimension.amount == "actual" else max(reserved, used)


def burst(dimension: DimensionConfig) -> int | None:
    """What a pace lets through at once, as the nanoseconds in which it drains."""
    percent, window_ms = dimension.pace_percent, dimension.window_ms or 0
    if percent is None:
        percent = 10 if window_ms <= 600_000 and dimension.kind != "bucket" else 100
    if percent == 100 or not window_ms or not dimension.limit:
        return None
    return window_ms * NANOS * percent // 100


def leaves_ms(dimension: DimensionConfig, latest_ms: int, send_within_ms: int) -> int:
    """When a call that arrives at `latest_ms` at last has left (scheduling.md section 5)."""
    span_ms = dimension.window_ms or 0
    if dimension.reset_ms is not None:
        ends_ms, later_ms = dimension.reset_ms, list(dimension.later_resets_ms)
        while ends_ms <= latest_ms + dimension.reset_uncertainty_ms:
            ends_ms += span_ms
            if later_ms and ends_ms + span_ms / 2 > later_ms[0]:
                ends_ms = later_ms.pop(0)
        return ends_ms + dimension.reset_uncertainty_ms
    size_ms = max(1, ceil(span_ms, 256))
    if dimension.kind == "bucket":
        span_ms = 0
    exact_ms = latest_ms + span_ms + 1 + ceil(200 * (span_ms + send_within_ms), 1_000_000)
    return ceil(exact_ms, size_ms) * size_ms


def leaving(charges: Iterable[Charge], until_ms: int) -> list[tuple[tuple[int, bool], int]]:
    """What leaves until then, in order; what leaves together is one amount."""
    found: Counter[tuple[int, bool]] = Counter()
    for charge in charges:
        if charge.amount and charge.exit_ms is not None and charge.exit_ms <= until_ms:
            found[charge.exit_ms, charge.aged] += charge.amount
    return sorted(found.items())


def refill_ns(bucket: DimensionConfig) -> int:
    """How long all of it takes to be refilled, by a clock 200 ppm off."""
    return (bucket.window_ms or 0) * (NANOS + 200)


def refilled_ns(bucket: DimensionConfig, before_ns: int, amount: int, at_ms: int) -> int:
    """When it is full again, if so much more is missing from this instant on."""
    at_ns, whole_ns = at_ms * NANOS, refill_ns(bucket)
    return min(max(before_ns, at_ns) + ceil(amount * whole_ns, bucket.limit), at_ns + whole_ns)


def cost_ns(
    dimensions: Iterable[DimensionConfig], reserved: Vector, actual: Vector | None, held_ms: int
) -> int:
    """How long the call alone occupies its scarcest dimension (scheduling.md section 1)."""
    costs = [1]
    for one in dimensions:
        if one.limit:
            span_ms = one.window_ms or held_ms
            taken = settled(one, amount(one, reserved), actual)
            costs.append(ceil(taken * span_ms * 1_000_000, one.limit))
    return max(costs)


def ceil(number: int, by: int) -> int:
    return -(-number // by)
