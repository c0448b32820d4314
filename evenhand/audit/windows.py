"""How long a charge counts, by a second writing of scheduling.md section 5.

What is asserted: a charge counts from its grant, and leaves a sliding window no earlier than

    latest arrival + W + 1 ms + rho * (W + send-within) + takeover term

The owner rounds that up to a bucket, which only makes it stricter; the audit does not round, so it
never blames the owner for keeping a charge longer, and always finds one let go too early. A slot
counts until it is given back.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Protocol

from schemas.inputs import DimensionConfig

RHO_PPM = 200
"""Slew of entry time and drift of the host's clock, in millionths."""
CLOCK_SPREAD_MS = 21
"""Spread of the estimate of the broker's clock; with `clock_bound_ms` the takeover term."""
MILLION = 1_000_000


class Window(Protocol):
    """The charges of one dimension at one level; a key names one charge."""

    def used(self, now_ms: int) -> int:
        """What counts at this instant, at least."""
        ...

    def holds(self, key: Hashable, now_ms: int) -> bool:
        """Whether the charge still counts at this instant."""
        ...

    def hold(self, key: Hashable, amount: int) -> None:
        """Granted: it counts, with no end in sight."""
        ...

    def arrive(self, key: Hashable, first_ms: int, last_ms: int, send_within_ms: int) -> None:
        """Started, or better known: it arrives at the provider between the two instants."""
        ...

    def settle(self, key: Hashable, amount: int, now_ms: int, send_within_ms: int) -> None:
        """Known to have ended, having used `amount`."""
        ...

    def drop(self, key: Hashable) -> None:
        """Returned unused."""
        ...

    def extend(self, term_ms: int) -> None:
        """A takeover: each started charge counts that much longer, once in its life."""
        ...

    def step(self, step_ms: int) -> None:
        """Entry time was stepped forward, and every exit with it."""
        ...


class Concurrency:
    """Slots: taken from the grant until the reservation is closed."""

    def __init__(self) -> None:
        self._held: dict[Hashable, int] = {}
        self._used = 0

    def used(self, now_ms: int) -> int:  # noqa: ARG002 - time frees no slot
        """All that is held."""
        return self._used

    def holds(self, key: Hashable, now_ms: int) -> bool:  # noqa: ARG002 - time frees no slot
        """Until it is given back."""
        return key in self._held

    def hold(self, key: Hashable, amount: int) -> None:
        """Take slots."""
        self._held[key] = amount
        self._used += amount

    def arrive(self, key: Hashable, first_ms: int, last_ms: int, send_within_ms: int) -> None:
        """A start changes nothing."""

    def settle(self, key: Hashable, amount: int, now_ms: int, send_within_ms: int) -> None:  # noqa: ARG002
        """The slots are free."""
        self.drop(key)

    def drop(self, key: Hashable) -> None:
        """The slots are free."""
        self._used -= self._held.pop(key, 0)

    def extend(self, term_ms: int) -> None:
        """No exit, nothing to extend."""

    def step(self, step_ms: int) -> None:
        """No exit, nothing to move."""


@dataclass(slots=True)
class _Charge:
    amount: int
    exit_ms: int | None = None
    """None while it cannot leave by itself."""
    term_ms: int = 0
    """The takeover term that it was given; it stays when the arrival becomes known better."""


class Sliding:
    """Each charge leaves by its own exit."""

    def __init__(self, dimension: DimensionConfig) -> None:
        assert dimension.window_ms is not None
        self._window_ms = dimension.window_ms
        self._at_completion = dimension.instant == "completion"
        self._charges: dict[Hashable, _Charge] = {}
        self._exits: list[tuple[int, int, Hashable]] = []
        self._pushed = 0
        self._used = 0

    def used(self, now_ms: int) -> int:
        """Everything whose exit is not reached; half-open: at its exit it counts no more."""
        while self._exits and self._exits[0][0] <= now_ms:
            exit_ms, _, key = heappop(self._exits)
            charge = self._charges.get(key)
            if charge is not None and charge.exit_ms == exit_ms:
                self.drop(key)
        return self._used

    def holds(self, key: Hashable, now_ms: int) -> bool:
        """Before its exit."""
        charge = self._charges.get(key)
        return charge is not None and (charge.exit_ms is None or charge.exit_ms > now_ms)

    def hold(self, key: Hashable, amount: int) -> None:
        """Count it."""
        self._charges[key] = _Charge(amount)
        self._used += amount

    def arrive(self, key: Hashable, first_ms: int, last_ms: int, send_within_ms: int) -> None:  # noqa: ARG002
        """Set or move the exit, unless the charge counts until completion."""
        if not self._at_completion:
            self._leaves(key, last_ms, send_within_ms)

    def settle(self, key: Hashable, amount: int, now_ms: int, send_within_ms: int) -> None:
        """Correct the amount; a charge that counts at completion leaves from now on."""
        charge = self._charges.get(key)
        if charge is None:
            return
        self._used += amount - charge.amount
        charge.amount = amount
        if self._at_completion:
            self._leaves(key, now_ms, send_within_ms)

    def drop(self, key: Hashable) -> None:
        """Count it no more."""
        charge = self._charges.pop(key, None)
        if charge is not None:
            self._used -= charge.amount

    def extend(self, term_ms: int) -> None:
        """Every charge with an exit and without the term so far leaves later."""
        for charge in self._charges.values():
            if charge.exit_ms is not None and not charge.term_ms:
                charge.term_ms = term_ms
                charge.exit_ms += term_ms
        self._sort()

    def step(self, step_ms: int) -> None:
        """Move every exit."""
        for charge in self._charges.values():
            if charge.exit_ms is not None:
                charge.exit_ms += step_ms
        self._sort()

    def _leaves(self, key: Hashable, last_ms: int, send_within_ms: int) -> None:
        charge = self._charges.get(key)
        if charge is not None:
            rho = -(-RHO_PPM * (self._window_ms + send_within_ms) // MILLION)
            charge.exit_ms = last_ms + self._window_ms + 1 + rho + charge.term_ms
            self._push(charge.exit_ms, key)

    def _push(self, exit_ms: int, key: Hashable) -> None:
        self._pushed += 1
        heappush(self._exits, (exit_ms, self._pushed, key))

    def _sort(self) -> None:
        self._exits = [
            (charge.exit_ms, number, key)
            for number, (key, charge) in enumerate(self._charges.items())
            if charge.exit_ms is not None
        ]
        self._pushed = len(self._charges)
        heapify(self._exits)
