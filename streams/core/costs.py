"""What a call takes of each unit, what it took in the end, and what that counts for its tenant."""

from collections.abc import Iterable
from typing import Protocol

import msgspec

from schemas.inputs import DimensionConfig, Prices
from schemas.units import NANOS_PER_MILLI, Micros, Millis, Nanos, Requests, Slots, Tokens

from .limits import COST_NS_MAX
from .operations import AttemptRow
from .prices import money_of


class Used(msgspec.Struct, frozen=True, gc=False):
    """What a call used beside its request and its slot."""

    input_tokens: Tokens
    output_tokens: Tokens
    money: Micros

    @property
    def tokens(self) -> Tokens:
        """Input and output."""
        return Tokens(self.input_tokens + self.output_tokens)


def priced(prices: Prices | None, input_tokens: Tokens, output_tokens: Tokens) -> Used:
    """So many tokens, with what they and their call cost."""
    return Used(input_tokens, output_tokens, money_of(prices, input_tokens, output_tokens))


class Cost(msgspec.Struct, frozen=True, gc=False):
    """What one call takes of each unit (R49)."""

    requests: Requests
    tokens: Tokens
    """Input and output."""
    slots: Slots
    runs: int = 0
    input_tokens: Tokens = Tokens(0)
    output_tokens: Tokens = Tokens(0)
    money: Micros = Micros(0)

    def amount(self, dimension: DimensionConfig) -> int:
        """The part that counts in this dimension."""
        amount: int = getattr(self, dimension.unit)  # a unit has the name of its field
        return amount


RUN_COST = Cost(Requests(0), Tokens(0), Slots(0), 1)
"""A run holds no provider budget while it waits for its turns (R74)."""


class Reserving(Protocol):
    """What is known of an operation wherever its cost is asked for."""

    @property
    def prompt_tokens(self) -> Tokens:
        """The estimate of its input."""

    @property
    def output_tokens_max(self) -> Tokens:
        """The ceiling of its output."""

    @property
    def is_run(self) -> bool:
        """Whether it is a tool loop."""


def call_cost(prompt: Tokens, output: Tokens, prices: Prices | None) -> Cost:
    """One request, one slot, the estimated prompt, this call's output ceiling, and their price."""
    money = money_of(prices, prompt, output)
    return Cost(Requests(1), Tokens(prompt + output), Slots(1), 0, prompt, output, money)


def cost_after(attempt: AttemptRow, used: Used | None) -> Cost:
    """What the attempt takes in the end; unknown use, None, costs what was reserved."""
    if used is None:
        used = priced(attempt.prices, attempt.prompt_tokens, attempt.output_tokens_max)
    slots = attempt.slots  # a run is what holds none
    return Cost(
        attempt.requests,
        used.tokens,
        slots,
        1 - slots,
        used.input_tokens,
        used.output_tokens,
        used.money,
    )


def cost_of(one: Reserving, *, prices: Prices | None) -> Cost:
    """What an operation takes while it runs."""
    return RUN_COST if one.is_run else call_cost(one.prompt_tokens, one.output_tokens_max, prices)


def cost_ns(dimensions: Iterable[DimensionConfig], cost: Cost, *, hold_ms: Millis) -> Nanos:
    """How long the call alone would occupy its scarcest dimension, in nanoseconds.

    max over dimensions of ceil(v * W / L), at least 1; concurrency: ceil(slots * hold / K)
    (scheduling.md section 1), at most `COST_NS_MAX`. A paused dimension, L = 0, says nothing.
    """
    longest = 1
    for dimension in dimensions:
        longest = max(longest, _occupies_ns(dimension, cost.amount(dimension), hold_ms))
    return Nanos(min(longest, COST_NS_MAX))


def _occupies_ns(dimension: DimensionConfig, amount: int, hold_ms: Millis) -> int:
    if dimension.limit <= 0:
        return 1
    span_ms = hold_ms if dimension.window_ms is None else dimension.window_ms
    return -(-amount * span_ms * NANOS_PER_MILLI // dimension.limit)


def settled_cost_ns(
    dimensions: Iterable[DimensionConfig], reserved: Cost, actual: Cost, *, hold_ms: Millis
) -> Nanos:
    """The cost of a call that ended: what each dimension charges for it in the end."""
    longest = 1
    for one in dimensions:
        amount = settled_amount(one, reserved.amount(one), actual.amount(one))
        longest = max(longest, _occupies_ns(one, amount, hold_ms))
    return Nanos(min(longest, COST_NS_MAX))


def settled_amount(dimension: DimensionConfig, reserved: int, actual: int) -> int:
    """What a dimension charges once use is known.

    Use above the reservation is an overdraft and counts everywhere (R54).
    """
    return max(reserved, actual) if dimension.amount == "reserved" else actual
