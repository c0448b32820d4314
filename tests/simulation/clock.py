"""True time, which nobody in the world can read, and the clocks that drift around it."""

from collections.abc import Callable
from heapq import heappop, heappush

MILLI = 1_000
EPOCH_MS = 1_700_000_000_000


class SimulatedClock:
    """True time in microseconds, and what is due to happen in it."""

    def __init__(self) -> None:
        self.now_us = 0
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = 0

    def after(self, delay_us: int, happens: Callable[[], None]) -> None:
        self._sequence += 1
        heappush(self._due, (self.now_us + delay_us, self._sequence, happens))

    def advance(self, span_us: int) -> None:
        """Let time pass, and everything happen that is due in it, in order."""
        until_us = self.now_us + span_us
        while self._due and self._due[0][0] <= until_us:
            self.now_us, _, happens = heappop(self._due)
            happens()
        self.now_us = until_us


class HostClock:
    """A monotonic clock: begins anywhere, drifts, never steps."""

    def __init__(self, clock: SimulatedClock, *, base_ms: int, drift_ppm: int) -> None:
        self._clock, self._base_ms, self._drift_ppm = clock, base_ms, drift_ppm

    def now_ms(self) -> int:
        now_us = self._clock.now_us
        return self._base_ms + (now_us + now_us * self._drift_ppm // 1_000_000) // MILLI


class BrokerClock:
    """The append clock: drifts too, and steps when another broker becomes the leader."""

    def __init__(self, clock: SimulatedClock, *, drift_ppm: int) -> None:
        self._clock, self._drift_ppm = clock, drift_ppm
        self._offset_ms = 0
        self.leader_epoch = 0

    def now_ms(self) -> int:
        now_us = self._clock.now_us
        true_ms = (now_us + now_us * self._drift_ppm // 1_000_000) // MILLI
        return EPOCH_MS + true_ms + self._offset_ms

    def change_leader(self, offset_ms: int) -> None:
        """The new leader's clock is this far from the truth."""
        self._offset_ms = offset_ms
        self.leader_epoch += 1
