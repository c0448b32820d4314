"""The provider's own record: when each call arrived and ended, and the most that any window held.

A window of unknown alignment may begin at any instant, so that all of them are counted.
"""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from math import ceil
from typing import NamedTuple

from schemas.inputs import DimensionConfig, Prices

MILLI = 1_000


class Seen(NamedTuple):
    """One call, by the provider's clock."""

    at_us: int
    ended_us: int
    tenant: str
    reserved: int
    used: int
    reserved_output: int = 0
    """The part of what was reserved that is output."""
    used_output: int = 0
    prices: Prices | None = None

    def amount(self, one: DimensionConfig) -> int:
        """What the provider counts of it in this dimension."""
        tokens, output = self.used, self.used_output
        if one.amount == "reserved":
            tokens, output = self.reserved, self.reserved_output
        match one.unit:
            case "tokens":
                return tokens
            case "input_tokens":
                return tokens - output
            case "output_tokens":
                return output
            case "money":
                return self._price(tokens - output, output)
            case _:
                return 1

    def _price(self, input_tokens: int, output_tokens: int) -> int:
        """In whole micros: nobody asks for parts of one."""
        assert self.prices is not None, "Expected a call with a price"
        exact = Fraction(input_tokens * self.prices.input_micros, 10**6)
        exact += Fraction(output_tokens * self.prices.output_micros, 10**6)
        return ceil(exact) + self.prices.call_micros

    def counted_us(self, one: DimensionConfig) -> int:
        """When it counts."""
        return self.ended_us if one.instant == "completion" else self.at_us


class Record:
    """All calls of a play."""

    def __init__(self) -> None:
        self.calls: list[Seen] = []

    def peak(self, one: DimensionConfig) -> int:
        """The most that any window held, that was missing in a bucket, or that ran at once."""
        if one.window_ms is None:
            return max(_running(self.calls), default=0)
        items = sorted((call.counted_us(one), call.amount(one)) for call in self.calls)
        if one.kind == "bucket":
            return max(_missing(items, one.limit, one.window_ms * MILLI), default=0)
        return max(_sliding(items, one.window_ms * MILLI), default=0)

    def used(self, one: DimensionConfig, first_us: int, until_us: int) -> int:
        """Tokens, requests or microseconds of slots that calls really took in a span."""
        if one.window_ms is None:
            spans = (
                min(call.ended_us, until_us) - max(call.at_us, first_us) for call in self.calls
            )
            return sum(span for span in spans if span > 0)
        return sum(
            call.used if one.unit == "tokens" else 1
            for call in self.calls
            if first_us <= call.counted_us(one) < until_us
        )


def _sliding(items: list[tuple[int, int]], window_us: int) -> Iterator[int]:
    """The sum of each half-open window that ends with an item."""
    held = first = 0
    for at_us, amount in items:
        held += amount
        while items[first][0] <= at_us - window_us:
            held -= items[first][1]
            first += 1
        yield held


def _missing(items: list[tuple[int, int]], capacity: int, fills_us: int) -> Iterator[int]:
    """What a bucket lacks after each item, rounded up; empty, it is full again after `fills_us`."""
    missing = last_us = 0
    for at_us, amount in items:
        missing = max(0, missing - (at_us - last_us) * capacity) + amount * fills_us
        last_us = at_us
        yield -(-missing // fills_us)


def _running(calls: Iterable[Seen]) -> Iterator[int]:
    running = 0
    ends = ((call.ended_us, -1) for call in calls)
    begins = ((call.at_us, 1) for call in calls if call.ended_us > call.at_us)
    for _, change in sorted((*ends, *begins)):
        running += change
        yield running
