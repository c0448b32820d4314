"""How fast a window was used, by a second writing of scheduling.md section 2.

What was granted leaves a backlog that shrinks at the window's own rate. A grant is inside the pace
while the backlog before it is smaller than the burst; what the grant adds does not matter then.
"""

from schemas.inputs import DimensionConfig

NANOS = 1_000_000
"""In a millisecond."""
WHOLE = 100
"""Percent: the whole limit at once is no pace."""
USUAL = 10
"""Percent where nothing is configured, but in windows longer than `UNPACED_MS`."""
UNPACED_MS = 600_000


class Pace:
    """The backlog of one window, as the time in which it would be gone."""

    def __init__(self) -> None:
        self._backlog_ns = 0
        self._at_ms = 0

    def allows(self, dimension: DimensionConfig, now_ms: int) -> bool:
        """Whether a call may go at this instant."""
        burst_ms = _burst_ms(dimension)
        return burst_ms is None or WHOLE * self._left_ns(now_ms) < burst_ms * NANOS

    def take(self, dimension: DimensionConfig, amount: int, now_ms: int) -> None:
        """So much more was taken or, below zero, came back."""
        if not amount or _burst_ms(dimension) is None or not dimension.limit:
            return
        whole_ns = (dimension.window_ms or 0) * NANOS
        left_ns = self._left_ns(now_ms)
        if amount < 0:
            left_ns -= -(amount * whole_ns // dimension.limit)
        else:
            left_ns += -(-amount * whole_ns // dimension.limit)
        self._backlog_ns, self._at_ms = min(max(left_ns, 0), whole_ns), now_ms

    def step(self, step_ms: int) -> None:
        """Entry time was stepped forward, and nothing shrank meanwhile."""
        self._at_ms += step_ms

    def _left_ns(self, now_ms: int) -> int:
        return max(0, self._backlog_ns - (now_ms - self._at_ms) * NANOS)


def is_paced(dimension: DimensionConfig) -> bool:
    """Whether it has a pace."""
    return _burst_ms(dimension) is not None


def _burst_ms(dimension: DimensionConfig) -> int | None:
    """The burst in hundredths of a millisecond; None where there is no pace."""
    percent, window_ms = dimension.pace_percent, dimension.window_ms
    if window_ms is None or dimension.kind == "bucket" or percent == WHOLE:
        return None
    if percent is None and window_ms > UNPACED_MS:
        return None
    return window_ms * (USUAL if percent is None else percent)
