"""What calls take of a dimension, reserved, used and corrected, and what bulk leaves free of it."""

from typing import Any

from schemas import events as e
from schemas.inputs import DimensionConfig, Prices

from .records import Charged, Operation


def price(prices: Prices | None, used: Charged) -> int:
    """Micros of one call of so many tokens, of which parts are rounded up together."""
    if prices is None:
        return 0
    input_parts = used.input_tokens * prices.input_micros
    whole, part = divmod(input_parts + used.output_tokens * prices.output_micros, 1_000_000)
    return whole + (part > 0) + prices.call_micros


def amount_of(grant: e.GrantIssued, dimension: DimensionConfig) -> int:
    """What a grant takes of a dimension."""
    match dimension.unit:
        case "requests":
            return grant.requests
        case "tokens":
            return grant.tokens
        case "input_tokens":
            return grant.prompt_tokens
        case "output_tokens":
            return grant.output_tokens_max
        case "money":
            return grant.money_micros
        case "slots":
            return grant.slots
        case _:
            return 1 - grant.slots  # a run is what holds no slot


def amount_waiting(waiting: Operation, dimension: DimensionConfig, prices: Prices | None) -> int:
    """What it will take, at the prices in force; a run takes nothing but itself."""
    is_run = waiting.turns_max is not None
    match dimension.unit:
        case "runs":
            return int(is_run)
        case _ if is_run:
            return 0
        case "requests" | "slots":
            return 1
        case unit:
            money = price(prices, waiting.reserved)
            return amount_used(waiting.reserved._replace(money=money), unit)


def amount_used(used: Charged, unit: str) -> int:
    """Of a unit that use is told in; nothing of the others."""
    match unit:
        case "tokens":
            return used.tokens
        case "input_tokens":
            return used.input_tokens
        case "output_tokens":
            return used.output_tokens
        case "money":
            return used.money
        case _:
            return 0


def used_by(event: e.ReservationSettled) -> Charged | None:
    """What a settlement says was used; None if that is unknown."""
    if event.tokens_actual is None:
        return None
    output_tokens = event.tokens_actual - event.input_tokens_actual
    return Charged(event.input_tokens_actual, output_tokens, event.money_micros)


def charged_by(event: Any, grant: e.GrantIssued) -> Charged | None:
    """What the closing of a reservation charges in the end; None if it is returned."""
    reserved = Charged(grant.prompt_tokens, grant.output_tokens_max, grant.money_micros)
    match event:
        case e.ReservationSettled():
            return used_by(event) or reserved
        case e.ReservationForfeited():
            return reserved
        case _:
            return None


def corrected_by(event: e.UsageCorrected) -> tuple[Charged, Charged]:
    """What a correction says was charged, and what was used."""
    return (
        Charged(
            event.input_tokens_before,
            event.tokens_before - event.input_tokens_before,
            event.money_before_micros,
        ),
        Charged(
            event.input_tokens_actual,
            event.tokens_actual - event.input_tokens_actual,
            event.money_actual_micros,
        ),
    )


def reserve(dimension: DimensionConfig, percent: int) -> int:
    """What bulk leaves free of a limit; of slots all but one at most (R109)."""
    part = (dimension.limit * percent + 99) // 100
    return min(part, max(0, dimension.limit - 1)) if dimension.kind == "concurrency" else part
