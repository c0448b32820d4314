"""What a call costs in money: whole micros, rounded up, at the prices of its domain.

>>> prices = Prices(currency="EUR", input_micros=3_000_000, output_micros=15_000_000)
>>> money_of(prices, 1_000, 200)  # 3 + 3 thousandths of a euro
6000
>>> money_of(prices, 1, 0), money_of(None, 1_000, 200)
(3, 0)
"""

from schemas.inputs import Prices
from schemas.units import Micros

PER_TOKENS = 1_000_000
"""Prices of tokens are for so many."""


def money_of(prices: Prices | None, input_tokens: int, output_tokens: int) -> Micros:
    """What one call costs; nothing where no prices are configured."""
    if prices is None:
        return Micros(0)
    tokens = input_tokens * prices.input_micros + output_tokens * prices.output_micros
    return Micros(prices.call_micros - (-tokens // PER_TOKENS))
