"""How late it can be at the owner by now: what proves a standing start fresh (requirements R185).

An answer to a heartbeat brings the owner's time when it took it, which was not before the heartbeat
was sent. So the owner's time now is at most that, and what has passed since the sending, and the
drift of clocks. A late answer only makes the bound looser; the tightest one counts.

>>> from evenhand._words import events
>>> now_ms = 5_000
>>> time = OwnerTime(lambda: now_ms * 1_000_000)
>>> life = {"member": "m", "member_epoch": "e", "authority_epoch": 1}
>>> time.hear(events.PlacesOffered(sent_ms=4_990, time_ms=70_000, **life))
>>> time.since_ns(70_004, authority_epoch=1)  # 6 ms, and 200 ppm of 10
6002000
>>> time.since_ns(70_004, authority_epoch=2)  # another owner's time may be ahead
"""

from collections.abc import Callable
from typing import Final

from evenhand._words import events, units

RHO_PPM: Final = 200
"""How far the clocks of two hosts may drift apart, and how fast an owner's time follows the
broker's clock."""
_MILLION: Final = 1_000_000


class OwnerTime:
    """An upper bound of the owner's time, less all steps of it; one thread has it."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        """Nothing is known before an answer.

        Args:
            now_ns: a monotonic clock that counts suspension, and by which heartbeats are sent.
        """
        self._now_ns = now_ns
        self._best: events.PlacesOffered | None = None

    @property
    def is_known(self) -> bool:
        """Whether an owner has ever answered."""
        return self._best is not None

    def hear(self, offered: events.PlacesOffered) -> None:
        """An answer; of the newest owner the one that tells most."""
        best = self._best
        if best is not None and best.authority_epoch == offered.authority_epoch:
            offered = min(best, offered, key=self._bound_ns)
        self._best = offered

    def since_ns(self, started_ms: units.Millis, *, authority_epoch: int) -> int | None:
        """How long ago the owner started something, at most; None if nothing proves any bound."""
        best = self._best
        if best is None or best.authority_epoch < authority_epoch:
            return None
        return max(0, self._bound_ns(best) - started_ms * units.NANOS_PER_MILLI)

    def _bound_ns(self, offered: events.PlacesOffered) -> int:
        passed_ns = self._now_ns() - offered.sent_ms * units.NANOS_PER_MILLI
        drift_ns = -(-passed_ns * RHO_PPM // _MILLION)
        return offered.time_ms * units.NANOS_PER_MILLI + passed_ns + drift_ns
