"""Entry time: the broker's append clock, estimated from reports and a monotonic clock.

A report tells the broker's time at an append; between reports the process's monotonic clock
carries the estimate on. Entry time follows it slowly, so that no window is shortened by a jump:

>>> clock = BrokerClock(at_ms=0, time_ms=10_000, append_ms=10_000, last_ms=10_000)
>>> clock.now_ms(500)
10500
>>> clock.report(sent_ms=500, at_ms=501, append_ms=10_510)  # 10 ms ahead of us: no jump
0
>>> clock.now_ms(10_500), clock.now_ms(110_500)  # 100 ppm: a millisecond in ten seconds
(20501, 120510)
"""

import time
from collections import deque
from typing import NamedTuple, Protocol

from schemas.units import NANOS_PER_MILLI, Millis

QUICK_MS = 20
"""A report with a shorter round trip always counts: its error is bounded by the round trip."""
ROUND_TRIPS = 100
"""How many round trips say what is quick in this network."""
SLEW_NANOS_PER_MILLI = 100
"""100 ppm, half of `rho`, which covers it (scheduling.md section 5)."""
RHO_NANOS_PER_MILLI = 200
"""How far two good clocks may drift apart without either having stepped."""
NO_QUICK_REPORT_MS = 60_000


class Monotonic(Protocol):
    """A clock that never steps and counts suspension too (CLOCK_BOOTTIME where there is one)."""

    def now_ms(self) -> int:
        """Milliseconds since an arbitrary instant."""
        ...


class SystemMonotonic:
    """The host's own monotonic clock."""

    def __init__(self) -> None:
        self._clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

    def now_ms(self) -> int:
        """Milliseconds since the host started."""
        return time.clock_gettime_ns(self._clock) // NANOS_PER_MILLI


class Anchor(NamedTuple):
    """Where entry time and the broker's clock were last seen together: the last ordinary entry."""

    append_ms: int
    time_ms: int
    leader_epoch: int
    """-1 when unknown."""


class Seen(NamedTuple):
    """What a live owner of this epoch said the time was, and when that was heard."""

    epoch: int
    time_ms: int
    at_ms: int


class Reading(NamedTuple):
    """What an entry records about time."""

    time_ms: Millis
    shift_ms: Millis
    """Entry time minus the estimate of the broker's append clock."""
    step_ms: Millis | None


def cold_time_ms(
    append_ms: int, leader_epoch: int, shift_ms: int, anchor: Anchor, bound_ms: int
) -> int:
    """Entry time at the takeover's append, for an owner that never heard its predecessor.

    The smaller of two witnesses: the broker's clock as the predecessor used it, and what has
    passed since the anchor on that clock, with the bound that two brokers may differ by. Another
    leader since, or one that nobody knows, takes the bound off again: late is safe, early is not.
    """
    known = leader_epoch >= 0 and leader_epoch == anchor.leader_epoch
    passed_ms = append_ms - anchor.append_ms
    time_ms = min(append_ms + shift_ms, anchor.time_ms + passed_ms + bound_ms)
    return time_ms if known else time_ms - bound_ms


class BrokerClock:
    """Entry time of one term; pure, all readings are handed in (requirements R174).

    Args:
        at_ms: monotonic instant of the takeover's report; the first estimate is anchored there,
            late and never early.
        time_ms: entry time at `at_ms`, warm or cold.
        append_ms: append time of the takeover.
        last_ms: time of the entry extended; entry time never goes back behind it.
    """

    def __init__(self, *, at_ms: int, time_ms: int, append_ms: int, last_ms: int) -> None:
        self._own_nanos = (time_ms - at_ms) * NANOS_PER_MILLI
        self._broker_nanos = (append_ms - at_ms) * NANOS_PER_MILLI
        self._slewed_ms = at_ms
        self._last_ms = last_ms
        self._round_trips: deque[int] = deque(maxlen=ROUND_TRIPS)
        self._quick_ms = at_ms
        self._learned = False

    def now_ms(self, at_ms: int) -> int:
        """Entry time at a monotonic instant; never less than it ever was."""
        room = max(0, at_ms - self._slewed_ms) * SLEW_NANOS_PER_MILLI
        gap = self._broker_nanos - self._own_nanos
        self._own_nanos += max(-room, min(room, gap))
        self._slewed_ms = max(self._slewed_ms, at_ms)
        self._last_ms = max(self._last_ms, at_ms + self._own_nanos // NANOS_PER_MILLI)
        return self._last_ms

    def is_behind(self, silence_ms: int) -> bool:
        """Whether the gap is too long to slew: the host was suspended."""
        return self._broker_nanos - self._own_nanos > silence_ms * NANOS_PER_MILLI

    def read(self, at_ms: int, silence_ms: int) -> Reading:
        """What the entry decided now records; steps forward if that is due."""
        before_ms = self.now_ms(at_ms)
        step_ms = None
        if self.is_behind(silence_ms):
            self._own_nanos = self._broker_nanos
            step_ms = Millis(max(0, self.now_ms(at_ms) - before_ms))
        shift_ms = self._last_ms - at_ms - self._broker_nanos // NANOS_PER_MILLI
        return Reading(Millis(self._last_ms), Millis(shift_ms), step_ms)

    def report(self, *, sent_ms: int, at_ms: int, append_ms: int) -> int:
        """Learn from the report of an append; only quick ones move the estimate.

        Returns: milliseconds that the broker's clock jumped since the last quick report, beyond
            drift.
        """
        round_trip_ms = at_ms - sent_ms
        quick_ms = max(QUICK_MS, 2 * min(self._round_trips, default=0))
        self._round_trips.append(round_trip_ms)
        if round_trip_ms >= quick_ms:
            return 0
        broker_nanos = (append_ms - sent_ms) * NANOS_PER_MILLI
        drift_nanos = (at_ms - self._quick_ms) * RHO_NANOS_PER_MILLI
        jump_nanos = abs(broker_nanos - self._broker_nanos) - drift_nanos if self._learned else 0
        self._broker_nanos = broker_nanos
        self._quick_ms = at_ms
        self._learned = True
        return max(0, jump_nanos) // NANOS_PER_MILLI

    def is_deaf(self, at_ms: int) -> bool:
        """Whether reports come, and for a minute none was quick enough to learn from."""
        return at_ms - self._quick_ms > NO_QUICK_REPORT_MS
