"""How fast a window may be used: one instant in integers, the virtual scheduling form of GCRA.

A pace is such an instant, and so is what a bucket still has to refill. Each grant asks for it in
every window, so that these are plain integers: to name their unit by a type costs a call.

What was taken drains at a steady rate, limit over span; the instant at which all of it will have
drained is the whole state. Ten calls of a limit of 100 a second drain in 100 ms; with a burst of
50 ms the next call goes when less than that is left:

>>> rate = Rate(limit=100, span_ns=1_000 * NANOS_PER_MILLI)
>>> drained_ns = rate.drained_ns(0, 10, now_ms=1_000)
>>> drained_ns // NANOS_PER_MILLI, opens_ms(drained_ns, 50 * NANOS_PER_MILLI)
(1100, 1051)
"""

from typing import NamedTuple

from schemas.inputs import DimensionConfig
from schemas.units import NANOS_PER_MILLI, Millis

from .limits import BUCKETS_PER_WINDOW, PACE_PERCENT, PACED_WINDOW_MS_MAX, RHO_PPM

HUNDRED = 100


class Rate(NamedTuple):
    """How fast what was taken drains."""

    limit: int
    """At least 1."""
    span_ns: int
    """In which the whole limit drains."""

    @property
    def step(self) -> int:
        """What drains is seen in steps: a 256th of the limit, at least one unit."""
        return -(-self.limit // BUCKETS_PER_WINDOW)

    def left(self, drained_ns: int, now_ms: Millis) -> int:
        """What has not drained yet, rounded up to a step."""
        left_ns = drained_ns - now_ms * NANOS_PER_MILLI
        if left_ns <= 0:
            return 0
        amount = -(-left_ns * self.limit // self.span_ns)
        return -(-amount // self.step) * self.step

    def falls_ms(self, drained_ns: int, amount: int) -> Millis:
        """The first instant at which no more than this amount, a number of steps, is left."""
        return Millis(-(-(drained_ns - amount * self.span_ns // self.limit) // NANOS_PER_MILLI))

    def drained_ns(self, before_ns: int, change: int, *, now_ms: int) -> int:
        """When all will have drained, after so much more was taken or, below zero, given back.

        Never before now, so that idleness saves nothing up; and never more than a whole span from
        now, by when all that counts now has left.
        """
        limit, span_ns = self
        now_ns = now_ms * NANOS_PER_MILLI
        drained_ns = max(before_ns, now_ns)
        if change > 0:
            return min(drained_ns - (-change * span_ns // limit), now_ns + span_ns)
        return max(drained_ns + change * span_ns // limit, now_ns)


def rate(dimension: DimensionConfig, *, before: int) -> Rate:
    """That of a window; while it is paused, that of the limit before: its provider goes on.

    A bucket is refilled a little more slowly than by its own clock, which may differ from ours.
    """
    per_ms = NANOS_PER_MILLI + (RHO_PPM if dimension.kind == "bucket" else 0)
    return Rate(max(1, dimension.limit or before), (dimension.window_ms or 0) * per_ms)


def burst_ns(dimension: DimensionConfig) -> int | None:
    """How much may be used at once, as the time in which it drains; None without a pace."""
    window_ms, percent = dimension.window_ms, dimension.pace_percent
    if window_ms is None or dimension.kind == "bucket" or not dimension.limit:
        return None
    if percent is None:
        percent = PACE_PERCENT if window_ms <= PACED_WINDOW_MS_MAX else HUNDRED
    if percent == HUNDRED:
        return None
    return window_ms * NANOS_PER_MILLI * percent // HUNDRED


def opens_ms(drained_ns: int, burst: int) -> Millis:
    """The first instant at which less than the burst is left to drain."""
    return Millis((drained_ns - burst) // NANOS_PER_MILLI + 1)
