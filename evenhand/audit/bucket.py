"""What a provider's bucket still has to refill, by a second writing of scheduling.md section 5.

A call takes its amount out of the bucket at its grant. From its latest arrival on the provider has
surely begun to refill it, at capacity over span: until then the amount counts in full, and after
that as a backlog that shrinks. The owner rounds both up, which only makes it stricter.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from heapq import heappop, heappush

from schemas.inputs import DimensionConfig

from .windows import MILLION, RHO_PPM

NANOS = 1_000_000
"""In a millisecond."""


@dataclass(slots=True)
class _Charge:
    amount: int
    from_ms: int | None = None
    """From when it is refilled; None while it may still arrive at any time."""
    term_ms: int = 0
    is_refilled: bool = False
    """Whether it is in the backlog, or was."""


class Bucket:
    """One bucket; it begins full."""

    def __init__(self, dimension: DimensionConfig) -> None:
        assert dimension.window_ms is not None
        self._capacity = max(1, dimension.limit)
        self._span_ns = dimension.window_ms * (NANOS + RHO_PPM)
        self._at_completion = dimension.instant == "completion"
        self._charges: dict[Hashable, _Charge] = {}
        self._waiting: list[tuple[int, int, Hashable]] = []
        self._pushed = 0
        self._held = 0
        self._backlog_ns = self._at_ms = 0

    def used(self, now_ms: int) -> int:
        """What is missing in it at this instant, at least."""
        while self._waiting and self._waiting[0][0] <= now_ms:
            from_ms, _, key = heappop(self._waiting)
            charge = self._charges.get(key)
            if charge is not None and charge.from_ms == from_ms and not charge.is_refilled:
                charge.is_refilled = True
                self._held -= charge.amount
                self._owe(charge.amount, from_ms)
        return self._held - (-self._left_ns(now_ms) * self._capacity // self._span_ns)

    def holds(self, key: Hashable, now_ms: int) -> bool:
        """Before it is refilled."""
        charge = self._charges.get(key)
        return charge is not None and (charge.from_ms is None or charge.from_ms > now_ms)

    def hold(self, key: Hashable, amount: int) -> None:
        """Take it out."""
        self._charges[key] = _Charge(amount)
        self._held += amount

    def arrive(self, key: Hashable, first_ms: int, last_ms: int, send_within_ms: int) -> None:  # noqa: ARG002
        """It is refilled from its latest arrival on, unless it counts at completion."""
        if not self._at_completion:
            self._refilled_from(key, last_ms, send_within_ms)

    def settle(self, key: Hashable, amount: int, now_ms: int, send_within_ms: int) -> None:
        """Correct the amount, also of what is being refilled."""
        charge = self._charges.get(key)
        if charge is None:
            return
        if charge.is_refilled:
            self._owe(amount - charge.amount, now_ms)
            del self._charges[key]
            return
        self._held += amount - charge.amount
        charge.amount = amount
        if self._at_completion:
            self._refilled_from(key, now_ms, send_within_ms)

    def drop(self, key: Hashable) -> None:
        """It never arrived."""
        charge = self._charges.pop(key, None)
        if charge is not None and charge.is_refilled:
            self._owe(-charge.amount, self._at_ms)
        elif charge is not None:
            self._held -= charge.amount

    def extend(self, term_ms: int) -> None:
        """A takeover: what is being refilled, or will be, is so that much later."""
        if self._backlog_ns:
            self._backlog_ns += term_ms * NANOS
        for charge in self._charges.values():
            if charge.from_ms is not None and not charge.term_ms:
                charge.term_ms = term_ms
                charge.from_ms += term_ms
        self._sort()

    def step(self, step_ms: int) -> None:
        """Entry time was stepped forward."""
        self._at_ms += step_ms
        for charge in self._charges.values():
            if charge.from_ms is not None:
                charge.from_ms += step_ms
        self._sort()

    def _refilled_from(self, key: Hashable, last_ms: int, send_within_ms: int) -> None:
        charge = self._charges.get(key)
        if charge is not None and not charge.is_refilled:
            rho = -(-RHO_PPM * send_within_ms // MILLION)
            charge.from_ms = last_ms + 1 + rho + charge.term_ms
            self._push(charge.from_ms, key)

    def _owe(self, amount: int, at_ms: int) -> None:
        """The backlog from this instant on."""
        left_ns = self._left_ns(at_ms) + amount * self._span_ns // self._capacity
        self._backlog_ns = min(max(left_ns, 0), self._span_ns)
        self._at_ms = max(self._at_ms, at_ms)

    def _left_ns(self, now_ms: int) -> int:
        return max(0, self._backlog_ns - max(0, now_ms - self._at_ms) * NANOS)

    def _push(self, from_ms: int, key: Hashable) -> None:
        self._pushed += 1
        heappush(self._waiting, (from_ms, self._pushed, key))

    def _sort(self) -> None:
        self._waiting = []
        for key, charge in self._charges.items():
            if charge.from_ms is not None and not charge.is_refilled:
                self._push(charge.from_ms, key)
