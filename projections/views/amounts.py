"""What calls take of each unit, as the budget views add it up."""

from schemas import events as e

from .unknown import Reserved

UNITS = ("requests", "tokens", "slots", "runs", "input_tokens", "output_tokens", "money")

Amounts = list[int]
"""By the places of `UNITS`."""
Taken = tuple[int, int, int, int, int, int, int]
"""The same, of one call."""


def nothing() -> Amounts:
    """Of every unit."""
    return [0] * len(UNITS)


def amounts(of: e.GrantIssued | Reserved) -> Taken:
    """A run is what holds no slot: it counts as one run, and nothing else does."""
    used = of.prompt_tokens, of.output_tokens_max, of.money_micros
    return of.requests, of.tokens, of.slots, 1 - of.slots, *used


def usage(input_tokens: int, tokens: int, money: int) -> Taken:
    """What was used alone, as later events tell it."""
    return 0, tokens, 0, 0, input_tokens, tokens - input_tokens, money


def add(to: Amounts, taken: Taken, sign: int) -> None:
    """Count it, or no longer."""
    requests, tokens, slots, runs, input_tokens, output_tokens, money = taken
    to[0] += sign * requests
    to[1] += sign * tokens
    to[2] += sign * slots
    to[3] += sign * runs
    to[4] += sign * input_tokens
    to[5] += sign * output_tokens
    to[6] += sign * money


def used(event: e.ReservationSettled) -> Taken | None:
    """What a settlement says was used; None if that is unknown."""
    if event.tokens_actual is None:
        return None
    return usage(event.input_tokens_actual, event.tokens_actual, event.money_micros)
