"""Slow public partitions hold the loop back; how far is out, and for how long nothing moved."""

from streams.shell.outbox import Outbox
from streams.shell.ports import Timing

WAIT_MS = 5


class Backpressure:
    """Bounds what a new owner would have to publish again, and the producer's memory.

    Args:
        published: what the fold knows to be out; the outbox counts from there.
    """

    def __init__(self, outbox: Outbox, timing: Timing, *, published: int) -> None:
        self._outbox, self._timing = outbox, timing
        self.published = published
        """Offset up to which all outputs are known to be out."""
        self._is_on = False
        self._moved_ms = 0

    def is_on(self, at_ms: int) -> bool:
        """Whether the loop must wait; if it already did, a report is waited for a moment.

        Raises:
            PublishFailed: step down before anything later goes out.
        """
        published = self._outbox.published(WAIT_MS if self._is_on else 0)
        if published > self.published:
            self.published, self._moved_ms = published, at_ms
        entries, size = self._outbox.lag()
        timing = self._timing
        is_on = entries >= timing.lag_entries_max or size >= timing.lag_bytes_max
        if is_on and not self._is_on:
            self._moved_ms = at_ms
        self._is_on = is_on
        return is_on

    def stalled_ms(self, at_ms: int) -> int:
        """For how long the loop has waited without a single entry getting out; 0 if it does not."""
        return at_ms - self._moved_ms if self._is_on else 0
