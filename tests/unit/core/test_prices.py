"""Prices: what a call costs at them, and which of them may be configured."""

import pytest

from schemas import events as e
from schemas.codes import Code
from schemas.inputs import Prices, TenantBudget
from streams.core.limits import PRICE_MAX
from streams.core.prices import money_of
from tests.support import cells as s
from tests.support import core as c

PRICES = Prices(currency="EUR", call_micros=100)

PRICED = [
    # input and output micros for a million tokens, micros a call, tokens of each, micros
    (0, 0, 7, 1_000, 1_000, 7),
    (1, 0, 0, 1, 0, 1),
    (1, 1, 0, 1, 1, 1),  # parts of a micro are rounded up once
    (1, 0, 0, 1_000_000, 0, 1),
    (1, 0, 0, 1_000_001, 0, 2),
    (3_000_000, 15_000_000, 100, 10, 90, 1_480),
    (3_000_000, 15_000_000, 100, 0, 0, 100),
]


@pytest.mark.parametrize(("first", "second", "call", "prompt", "output", "micros"), PRICED)
def test_money_is_whole_micros_rounded_up(first, second, call, prompt, output, micros):
    prices = Prices(currency="EUR", input_micros=first, output_micros=second, call_micros=call)
    assert money_of(prices, prompt, output) == micros


# -- what is refused when configured ------------------------------------------------------------

FAULTS = [
    # the dimension's limit, prices, and what the refusal says
    (None, "Expected the domain to have prices, since money limits money"),
    (Prices(currency="EUR"), "Expected a price above 0"),
    (Prices(currency="EUR", input_micros=-1), "Expected input_micros from 0"),
    (Prices(currency="EUR", output_micros=PRICE_MAX + 1), "Expected output_micros from 0"),
    (Prices(currency="EUR", call_micros=-1), "Expected call_micros from 0"),
    (Prices(currency="Eur", call_micros=1), "currency of three capital letters"),
    (Prices(currency="EURO", call_micros=1), "currency of three capital letters"),
    (Prices(currency="ÄÖÜ", call_micros=1), "currency of three capital letters"),
]


@pytest.mark.parametrize(("prices", "says"), FAULTS)
def test_prices_that_make_no_sense_are_refused_with_a_sentence(prices, says):
    asked = c.domain(c.dimension("money", 5), prices=prices)
    refused = s.one(e.ConfigRefused, s.cell().run(asked))
    assert says in refused.detail
    assert refused.code == Code.INVALID_FIELD


def test_a_tenant_cannot_limit_money_where_a_call_has_no_price():
    own = TenantBudget(domain="d", dimensions=(c.dimension("money", 5),))
    refused = s.one(e.ConfigRefused, s.cell().run(c.tenant("a", budgets=(own,))))
    assert "Expected the domain to have prices" in refused.detail


@pytest.mark.parametrize("prices", [None, Prices(currency="USD", call_micros=1)])
@pytest.mark.parametrize("level", ["domain", "tenant"])
def test_prices_stay_in_their_currency_while_money_is_limited(prices, level):
    slots, money = c.dimension("slots", 9), c.dimension("money", 5_000)
    own = () if level == "domain" else (TenantBudget(domain="d", dimensions=(money,)),)
    cell = s.cell(*((slots, money) if level == "domain" else (slots,)), prices=PRICES)
    cell.run(c.tenant("a", budgets=own))
    refused = s.one(e.ConfigRefused, cell.run(c.domain(slots, prices=prices)))
    assert "Expected prices in EUR while money limits money" in refused.detail
    cell.run(c.tenant("a"), c.domain(slots, prices=PRICES))
    assert s.one(e.ConfigActivated, cell.run(c.domain(slots, prices=prices)))
