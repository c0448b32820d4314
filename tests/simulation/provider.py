"""The provider: counts a call when it arrives, and judges by its own record alone."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from tests.simulation.clock import MILLI

WINDOW_MS = 120
REQUESTS_MAX = 4
TOKENS_MAX = 60
OUTPUT_MAX = 30
MONEY_MAX = 130
ALSO = (None, "output_tokens", "money")
"""What it limits beside requests, tokens and slots: of too many limits some would never bind."""
SLOTS_MAX = 3
BUCKET_MAX, REFILL_MS = 24, 60
"""Tokens of a bucket, and in which time an empty one is full again."""
CALL_MS_MAX = 700
"""No call lasts longer."""

ALWAYS = ("requests", "tokens", "slots")

Attempt = tuple[bytes, int, int]
"""Operation, incarnation and epoch."""


@dataclass
class Call:
    """One arrived call, by true time."""

    attempt: Attempt
    arrived_us: int
    tokens: int
    output_tokens: int
    ended_us: int
    outcome: str = "success"
    """How it ended, or will."""

    @property
    def micros(self) -> int:
        """Its price: 1 for a token of input, 4 for one of output, 2 for the call."""
        return self.tokens + 3 * self.output_tokens + 2


class Provider:
    """Never refuses; says afterwards where its limits were passed."""

    def __init__(self, also: str | None = None) -> None:
        self.calls: list[Call] = []
        self.also = also

    def arrive(self, call: Call) -> None:
        self.calls.append(call)

    def find(self, attempt: Attempt) -> Call | None:
        """What it has recorded of an attempt so far."""
        return next((call for call in self.calls if call.attempt == attempt), None)

    def overshoot(self) -> list[str]:
        """Every window that began with a call and held too much, half-open as scheduling has it."""
        found = list(self.overdrawn())
        calls = sorted(self.calls, key=lambda call: call.arrived_us)
        for number, first in enumerate(calls):
            end_us = first.arrived_us + WINDOW_MS * MILLI
            inside = [call for call in calls[number:] if call.arrived_us < end_us]
            running = [c for c in calls if c.arrived_us <= first.arrived_us < c.ended_us]
            for what, used, limit in (
                ("requests", len(inside), REQUESTS_MAX),
                ("tokens", sum(call.tokens for call in inside), TOKENS_MAX),
                ("output_tokens", sum(call.output_tokens for call in inside), OUTPUT_MAX),
                ("money", sum(call.micros for call in inside), MONEY_MAX),
                ("slots", len(running), SLOTS_MAX),
            ):
                if used > limit and what in (*ALWAYS, self.also):
                    found.append(f"{used} {what} of {limit} from {first.arrived_us} us on")
        return found

    def overdrawn(self) -> Iterator[str]:
        """Every call that took more than was in the bucket when it arrived."""
        missing = Fraction(0)
        before_us = 0
        for call in sorted(self.calls, key=lambda call: call.arrived_us):
            refilled = Fraction(BUCKET_MAX * (call.arrived_us - before_us), REFILL_MS * MILLI)
            missing = max(missing - refilled, Fraction(0)) + call.tokens
            before_us = call.arrived_us
            if missing > BUCKET_MAX:
                yield f"{float(missing)} of a bucket of {BUCKET_MAX} are missing at {before_us} us"

    def doubled(self) -> list[Attempt]:
        """Attempts that were called more than once."""
        seen: dict[Attempt, int] = {}
        for call in self.calls:
            seen[call.attempt] = seen.get(call.attempt, 0) + 1
        return [attempt for attempt, count in seen.items() if count > 1]
