"""How fast a window may be used: one instant in integers, the virtual scheduling form of GCRA.

What was taken drains at a steady rate, limit over span; the instant at which all of it will have
drained is the whole state. Ten calls of a limit of 100 a second drain in 100 ms; with a burst of
50 ms the next call goes when less than that is left:

>>> rate = Rate(limit=100, span_ns=Nanos(1_000 * NANOS_PER_MILLI))
>>> drained_ns = rate.drained_ns(Nanos(0), 10, now_ms=Millis(1_000))
>>> drained_ns // NANOS_PER_MILLI, opens_ms(drained_ns, Nanos(50 * NANOS_PER_MILLI))
(1100, 1051)
"""

from typing import NamedTuple

from schemas.inputs import DimensionConfig
from schemas.units import NANOS_PER_MILLI, Millis, Nanos

from .limits import PACE_PERCENT, PACED_WINDOW_MS_MAX

HUNDRED = 100


class Rate(NamedTuple):
    """How fast what was taken drains."""

    limit: int
    """At least 1."""
    span_ns: Nanos
    """In which the whole limit drains."""

    def drained_ns(self, before_ns: Nanos, change: int, *, now_ms: Millis) -> Nanos:
        """When all will have drained, after so much more was taken or, below zero, given back.

        Never before now, so that idleness saves nothing up; and never more than a whole span from
        now, by when all that counts now has left.
        """
        now_ns = now_ms * NANOS_PER_MILLI
        takes_ns = -(-abs(change) * self.span_ns // self.limit)
        drained = max(before_ns, now_ns) + (takes_ns if change > 0 else -takes_ns)
        return Nanos(min(max(drained, now_ns), now_ns + self.span_ns))


def rate(dimension: DimensionConfig) -> Rate:
    """That of a window which is not paused."""
    assert dimension.window_ms is not None, "Expected a window"
    return Rate(dimension.limit, Nanos(dimension.window_ms * NANOS_PER_MILLI))


def burst_ns(dimension: DimensionConfig) -> Nanos | None:
    """How much may be used at once, as the time in which it drains; None without a pace."""
    window_ms, percent = dimension.window_ms, dimension.pace_percent
    if window_ms is None or not dimension.limit:
        return None
    if percent is None:
        percent = PACE_PERCENT if window_ms <= PACED_WINDOW_MS_MAX else HUNDRED
    if percent == HUNDRED:
        return None
    return Nanos(window_ms * NANOS_PER_MILLI * percent // HUNDRED)


def opens_ms(drained_ns: Nanos, burst: Nanos) -> Millis:
    """The first instant at which less than the burst is left to drain."""
    return Millis((drained_ns - burst) // NANOS_PER_MILLI + 1)
