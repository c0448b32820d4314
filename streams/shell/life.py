"""Showing that an owner lives, and noticing that it was replaced."""

from schemas.codec import encode
from schemas.journal import Pulse
from schemas.units import Millis
from streams.shell.inputs import Inputs
from streams.shell.journal import Pulses
from streams.shell.ports import Ports
from streams.shell.restore import Fold
from streams.shell.walk import Walk


class Replaced(Exception):
    """An accepted entry of a higher epoch is on the journal: the term is over."""


class Life:
    """When an owner may look alive, and the look at the journal that goes with it.

    A pulse says "I could decide now". So none is sent by an owner that cannot reach its journal or
    read its inputs, or that has waited too long for a public partition: a standby shall try.
    """

    def __init__(self, ports: Ports, fold: Fold, *, pulses: Pulses, inputs: Inputs) -> None:
        self._ports, self._fold = ports, fold
        self._pulses, self._inputs = pulses, inputs
        self._born_ms = self._shown_ms = ports.monotonic.now_ms()
        self._has_read = False
        self._following: Walk | None = None

    def has_appended(self, at_ms: int) -> None:
        """An accepted entry is the best sign of life; what was being followed is behind it."""
        self._shown_ms = at_ms
        self._follow(None)

    def show(self, at_ms: int, time_ms: int, *, stalled_ms: int) -> None:
        """Send a pulse if one is due and allowed; never called with an append outstanding.

        Args:
            at_ms: monotonic now.
            time_ms: entry time now, as a standby will take it over.
            stalled_ms: how long the outbox has not moved although it should.

        Raises:
            Replaced: another owner's takeover was accepted. Step down.
        """
        self._check_replaced()
        if at_ms - self._shown_ms < self._ports.timing.pulse_ms:
            return
        self._shown_ms = at_ms
        end = self._ports.journal.end()
        if end is None or not self._can_read(at_ms):
            return
        if end > self._fold.next_offset and self._following is None:
            head, first = self._fold.head, self._fold.next_offset
            self._follow(Walk(self._ports.journal, head=head, first=first, end=end))
        if stalled_ms < self._ports.timing.publish_stall_ms:
            self._pulses.send(self._pulse(time_ms))

    def _pulse(self, time_ms: int) -> bytes:
        head = self._fold.head
        assert head is not None, "Expected a head in a term"
        pulse = Pulse(
            epoch=head.epoch, height=head.height, owner=head.owner, time_ms=Millis(time_ms)
        )
        return encode(pulse)

    def _can_read(self, at_ms: int) -> bool:
        readable = self._inputs.readable()
        self._has_read = self._has_read or readable
        if not self._has_read:
            return at_ms - self._born_ms < self._ports.timing.first_read_ms
        return readable

    def _check_replaced(self) -> None:
        walk = self._following
        if walk is None:
            return
        walk.step()
        if walk.head != self._fold.head:
            raise Replaced(f"Expected to extend {self._fold.head}, but {walk.head} was accepted")
        if walk.is_done:
            self._fold.next_offset = walk.end  # only noise: the next entry lands behind it
            self._follow(None)

    def _follow(self, walk: Walk | None) -> None:
        if self._following is not None:
            self._following.close()
        self._following = walk

    def close(self) -> None:
        """Let go of a reader that may be open."""
        self._follow(None)
