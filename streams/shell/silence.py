"""What a silence of the loop leaves behind: inputs to be taken before timers may fire."""

from collections.abc import Mapping

from schemas.units import Millis
from streams.core.state import State
from streams.shell.inputs import Inputs, Place


class Silence:
    """After a silence the owner takes inputs up to the ends seen then, and only then fires timers.

    Otherwise an outage of the scheduler would look like an outage of its members: their heartbeats
    wait in the inputs while their time to live runs out (requirements R164). A takeover counts as
    a silence.
    """

    def __init__(self, inputs: Inputs, state: State, *, at_ms: int) -> None:
        self._inputs, self._state = inputs, state
        self._looked_ms = self._found_ms = at_ms
        self._catching_up = True
        self._ends: Mapping[Place, int] | None = None
        self._silent_ms: int | None = None
        """Of silences that no entry has told of; None: since the entry before this term."""

    def before_take(self, at_ms: int) -> None:
        """Notice a silence, and ask where the inputs end as long as nobody has answered."""
        silent_ms = at_ms - self._looked_ms
        if silent_ms > self._state.bounds.silence_ms:
            self._catching_up, self._ends = True, None
            if self._silent_ms is not None:
                self._silent_ms += silent_ms
        if self._catching_up and self._ends is None:
            self._ends, self._found_ms = self._inputs.ends(), at_ms

    def after_take(self, at_ms: int, found: int) -> None:
        """The loop has looked, and found so many inputs."""
        self._looked_ms = at_ms
        if found:
            self._found_ms = at_ms

    def owed_ms(self, elapsed_ms: int, step_ms: int) -> Millis:
        """By how much the next entry extends leases; it tells of all silences until now.

        Args:
            elapsed_ms: since the entry before it; the first of a term was preceded by silence only.
            step_ms: by how much a step of time extends them already.
        """
        silent_ms = elapsed_ms if self._silent_ms is None else min(self._silent_ms, elapsed_ms)
        self._silent_ms = 0
        return Millis(max(0, silent_ms - step_ms))

    def is_over(self, at_ms: int) -> bool:
        """Whether timers may fire.

        An end may lie behind a hole that is never given, so a quiet `silence_ms` counts as well.
        """
        if self._catching_up and self._ends is not None:
            positions = self._state.positions
            quiet = (
                at_ms - self._found_ms > self._state.bounds.silence_ms and self._inputs.readable()
            )
            self._catching_up = not quiet and any(
                positions.get(place, 0) < end for place, end in self._ends.items()
            )
        return not self._catching_up
