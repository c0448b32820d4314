"""Input, output and money in the audit: each planted breach is named at its position."""

from typing import Any

import pytest
from msgspec.structs import replace

from schemas.ids import OperationId
from tests.support.budget import SLOTS, domain_of
from tests.support.history import History
from tests.support.plants import Plant, Plants, judge, started
from tests.support.words import e, i

plants = Plants()

PRICES = i.Prices(currency="EUR", input_micros=3_000_000, output_micros=15_000_000, call_micros=9)
PAID = 30 + 300 + 9
"""What a call of 10 and 20 tokens costs."""


def limited(history: History, unit: str, limit: int, **over: Any) -> None:
    """The domain has prices, and a limit of this unit beside its slots."""
    fields: dict[str, Any] = {"kind": "sliding", "window_ms": 60_000, "pace_percent": 100}
    one = i.DimensionConfig(name=unit, unit=unit, limit=limit, **{**fields, **over})
    history.configure("domain", "d", domain=replace(domain_of(one, SLOTS), prices=PRICES))


def run(history: History, key: str, **settled: Any) -> OperationId:
    """Granted, started and settled, with its price."""
    operation = history.submit(key)
    history.grant(operation, money_micros=PAID)
    history.start(operation)
    history.result(operation, **settled)
    return operation


@pytest.mark.parametrize(
    ("unit", "limit"), [("input_tokens", 20), ("output_tokens", 40), ("money", 2 * PAID)]
)
def test_what_stays_within_a_limit_of_each_unit_is_clean(unit: str, limit: int) -> None:
    history = History()
    limited(history, unit, limit)
    for key in "ab":
        run(history, key)
    assert history.audit().clean


def beyond(history: History, unit: str, limit: int) -> int:
    limited(history, unit, limit)
    run(history, "a")
    return history.grant(history.submit("b"), money_micros=PAID)


@plants.breaks("budgets")
def more_input_than_its_limit(history: History) -> int:
    return beyond(history, "input_tokens", 19)


@plants.breaks("budgets")
def more_output_than_its_limit(history: History) -> int:
    return beyond(history, "output_tokens", 39)


@plants.breaks("budgets")
def more_money_than_its_limit(history: History) -> int:
    return beyond(history, "money", 2 * PAID - 1)


def over(history: History, unit: str, limit: int, **used: int) -> int:
    """A call that used more of a unit than it reserved, and then another one."""
    limited(history, unit, limit, amount="actual")
    run(history, "a", **used)
    return history.grant(history.submit("b"), money_micros=PAID)


@plants.breaks("budgets")
def an_overdraft_of_input_that_counts_as_output(history: History) -> int:
    used = {"tokens_actual": 30, "input_tokens_actual": 30}
    return over(history, "input_tokens", 39, **used, money_micros=99)


@plants.breaks("budgets")
def an_overdraft_of_money_that_frees_it(history: History) -> int:
    used = {"tokens_actual": 60, "input_tokens_actual": 10, "overdraft_tokens": 30}
    return over(history, "money", 3 * PAID, **used, money_micros=30 + 750 + 9)


@plants.breaks("grants")
def a_grant_below_its_price(history: History) -> int:
    limited(history, "money", 10_000)
    return history.grant(history.submit("a"), money_micros=PAID - 1)


@plants.breaks("grants")
def a_grant_at_a_former_price(history: History) -> int:
    limited(history, "money", 10_000)
    dearer = replace(PRICES, call_micros=10)
    history.configure("domain", "d", domain=replace(domain_of(SLOTS), prices=dearer))
    return history.grant(history.submit("a"), money_micros=PAID)


@plants.breaks("grants")
def a_run_that_takes_money(history: History) -> int:
    limited(history, "money", 10_000)
    run_of = {"prompt_tokens": 0, "output_tokens_max": 0, "turns_max": 2}
    calls = {"requests": 0, "slots": 0, "tokens": 0, "money_micros": 9}
    return history.grant(history.submit("a", **run_of), **calls)


@plants.breaks("settlements")
def a_settlement_at_a_later_price(history: History) -> int:
    limited(history, "money", 10_000)
    operation = history.submit("a")
    history.grant(operation, money_micros=PAID)
    history.start(operation)
    dearer = replace(PRICES, call_micros=10)
    history.configure("domain", "d", domain=replace(domain_of(SLOTS), prices=dearer))
    return history.result(operation, money_micros=PAID + 1)


@plants.breaks("settlements")
def more_input_than_tokens(history: History) -> int:
    return history.result(started(history), tokens_actual=5, input_tokens_actual=6)


def correct(history: History, **changes: int) -> int:
    """Later usage tells of 20 tokens of input, where 10 were charged."""
    limited(history, "money", 10_000)
    named = history.named(run(history, "a"))
    usage = {"unit": "tokens", "prompt_tokens": 20, "output_tokens": 20, "evidence": "u"}
    charge = {
        "tokens_before": 30,
        "tokens_actual": 40,
        "input_tokens_before": 10,
        "input_tokens_actual": 20,
        "money_before_micros": PAID,
        "money_actual_micros": PAID + 30,
    }
    corrected = e.UsageCorrected(**named, domain="d", evidence="u", **{**charge, **changes})
    return history.append([i.UsageReported(**named, **usage)], [corrected])


def test_a_correction_of_each_unit_is_clean_and_counts() -> None:
    history = History()
    correct(history)
    assert history.audit().clean


@plants.breaks("settlements")
def a_correction_that_forgets_what_was_paid(history: History) -> int:
    return correct(history, money_before_micros=0)


@plants.breaks("settlements")
def a_correction_at_another_price(history: History) -> int:
    return correct(history, money_actual_micros=PAID)


@plants.breaks("told")
def a_correction_that_takes_input_for_output(history: History) -> int:
    return correct(history, input_tokens_actual=10, money_actual_micros=30 + 450 + 9)


@plants.breaks("budgets")
def a_corrected_surplus_of_money_that_counts_nowhere(history: History) -> int:
    correct(history)
    limited(history, "money", 2 * PAID + 29)
    return history.grant(history.submit("b"), money_micros=PAID)


@plants.cases()
def test_a_planted_defect_is_named_at_its_position(check: str, plant: Plant) -> None:
    judge(check, plant)
