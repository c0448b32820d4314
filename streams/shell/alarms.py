"""What an operator must know about appends, clocks and publishing; each at most once a minute."""

from streams.shell.ports import Timing
from streams.shell.watch import Alert, Watch

AGAIN_MS = 60_000
"""An alert that comes with every entry would drown the others."""


class Alarms:
    """Turns measures into alerts."""

    def __init__(self, watch: Watch, timing: Timing) -> None:
        self._watch, self._timing = watch, timing
        self._told_ms: dict[Alert, int] = {}

    def appended(
        self, at_ms: int, *, append_ms: int, jump_ms: int, bound_ms: int, is_deaf: bool
    ) -> None:
        """An append was reported after `append_ms`.

        Args:
            at_ms: monotonic now.
            append_ms: the round trip; `takeover_ms` is to be at least twice the longest.
            jump_ms: how far the broker's clock moved against ours since the last quick report.
            bound_ms: how far it may.
            is_deaf: no report was quick enough to learn from for a minute.
        """
        if jump_ms > bound_ms:
            self._tell("broker_clock_step", at_ms, f"The broker's clock moved by {jump_ms} ms")
        if is_deaf:
            self._tell("no_quick_report", at_ms, "No quick report of an append for a minute")
        if 2 * append_ms > self._timing.takeover_ms:
            self._tell("slow_append", at_ms, f"An append took {append_ms} ms")

    def stalled(self, at_ms: int, stalled_ms: int) -> None:
        """The loop waits for a public partition."""
        if stalled_ms >= self._timing.publish_stall_ms:
            text = f"Nothing got out for {stalled_ms} ms; a standby may try"
            self._tell("publish_stalled", at_ms, text)

    def _tell(self, name: Alert, at_ms: int, text: str) -> None:
        told_ms = self._told_ms.get(name)
        if told_ms is None or at_ms - told_ms >= AGAIN_MS:
            self._told_ms[name] = at_ms
            self._watch.alert(name, text)
