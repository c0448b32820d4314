"""What a call takes of each unit, as the reference model writes it: a plain table."""

from fractions import Fraction
from math import ceil

from schemas.inputs import OperationSubmitted, Prices

Vector = dict[str, int]
"""By unit; what is not in it is not taken."""
Used = tuple[int, int]
"""Input and output."""


def price(prices: Prices | None, input_tokens: int, output_tokens: int) -> int:
    if prices is None:
        return 0
    millions = Fraction(input_tokens * prices.input_micros, 10**6)
    millions += Fraction(output_tokens * prices.output_micros, 10**6)
    return ceil(millions) + prices.call_micros


def usage(used: Used, prices: Prices | None) -> Vector:
    return {
        "tokens": sum(used),
        "input_tokens": used[0],
        "output_tokens": used[1],
        "money": price(prices, *used),
    }


def needs(asked: OperationSubmitted, prices: Prices | None) -> Vector:
    """A run takes nothing but itself."""
    if asked.turns_max is not None:
        return {"runs": 1}
    used = asked.prompt_tokens, asked.output_tokens_max or 0
    return {"requests": 1, "slots": 1, **usage(used, prices)}
