"""Port to the process's monotonic clock; how the broker's append clock is estimated from it."""

from typing import Protocol


class Monotonic(Protocol):
    """A clock that never steps and counts suspension too (CLOCK_BOOTTIME where there is one)."""

    def now_ms(self) -> int:
        """Milliseconds since an arbitrary instant."""
        ...
