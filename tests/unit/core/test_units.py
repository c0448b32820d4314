"""Input, output and money: what a call reserves of each, and what it is charged in the end."""

import pytest

from schemas import events as e
from schemas.codec import encode
from schemas.codes import Code
from schemas.inputs import Prices, TenantBudget
from streams.core.costs import call_cost, cost_ns
from streams.core.limits import LIMIT_MAX, PRICE_MAX, TOKENS_MAX
from tests.support import cells as s
from tests.support import core as c

PRICES = Prices(currency="EUR", input_micros=3_000_000, output_micros=15_000_000, call_micros=100)
DEARER = Prices(currency="EUR", input_micros=9_000_000, output_micros=45_000_000, call_micros=300)
TAKEN = {"input_tokens": 10, "output_tokens": 90, "money": 30 + 1_350 + 100}
"""By a call of 10 and 90 tokens."""
UNITS = tuple(TAKEN)
ONE, TWO = c.submitted("a", "1"), c.submitted("a", "2")
ROOMY = 10**6


def cell_of(*dimensions, amount="actual", **over):
    """Wide limits of all three units, and slots, if no others are given."""
    wide = [c.dimension(unit, ROOMY, amount=amount) for unit in UNITS]
    return s.cell(*(dimensions or (*wide, c.dimension("slots", 9))), prices=PRICES, **over)


def used(cell):
    return tuple(s.used(cell, unit) for unit in UNITS)


# -- what is reserved ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sliding", "fixed", "bucket"])
@pytest.mark.parametrize("unit", UNITS)
def test_each_unit_binds_alone_and_the_deferral_names_it(unit, kind):
    wide = [c.dimension(other, ROOMY) for other in UNITS if other != unit]
    tight = c.dimension(f"{unit}-60s", 2 * TAKEN[unit] - 1, kind=kind)
    cell = cell_of(*wide, tight)
    events = cell.run(ONE, TWO)
    assert len(s.grants(events)) == 1
    assert s.one(e.OperationDeferred, events).dimension == f"{unit}-60s"
    assert s.used(cell, f"{unit}-60s") == TAKEN[unit]
    assert s.same_as_followed(cell)


@pytest.mark.parametrize("unit", UNITS)
def test_a_call_above_a_limit_never_fits_and_one_at_it_does(unit):
    for limit, kind in ((TAKEN[unit], e.GrantIssued), (TAKEN[unit] - 1, e.OperationRejected)):
        event = s.one(kind, cell_of(c.dimension(unit, limit)).run(ONE))
    assert (event.code, event.dimension) == (Code.NEVER_FITS, unit)


def test_a_dearer_price_parks_what_then_never_fits_and_a_cheaper_one_brings_it_back():
    money = c.dimension("money", 1_500), c.dimension("slots", 1)
    cell = cell_of(*money)
    grant = s.started(cell, ONE)
    cell.run(TWO)
    dearer = cell.run(c.domain(*money, prices=DEARER))
    assert s.one(e.OperationParked, dearer).dimension == "money"
    cheaper = cell.run(c.result(grant), c.domain(*money, prices=PRICES), after_ms=70_000)
    assert s.grants(cheaper)


def test_a_tenant_has_its_own_limit_of_money():
    own = TenantBudget(domain="d", dimensions=(c.dimension("money", 2_000),))
    cell = cell_of()
    s.one(e.ConfigActivated, cell.run(c.tenant("a", budgets=(own,))))
    events = cell.run(ONE, TWO, c.submitted("b", "1"))
    assert [one.tenant for one in s.grants(events)] == ["a", "b"]
    assert s.used(cell, "money", "tenant:a") == TAKEN["money"]


def test_a_run_takes_no_money():
    cell = cell_of()
    run = {"prompt_tokens": 0, "output_tokens_max": None, "turns_max": 3}
    grant = s.started(cell, c.submitted("a", "1", **run))
    assert (grant.money_micros, used(cell)) == (0, (0, 0, 0))
    cell.run(c.result(grant))
    assert used(cell) == (0, 0, 0)
    assert s.same_as_followed(cell)


COSTS = [
    # limits of input, output and money, and how long a call of 10 and 90 occupies the scarcest
    ((100, 9_000, 1_480_000), 6_000),
    ((10_000, 900, 1_480_000), 6_000),
    ((10_000, 90_000, 14_800), 6_000),
]


@pytest.mark.parametrize(("limits", "cost_ms"), COSTS)
def test_the_scarcest_of_the_units_makes_the_cost(limits, cost_ms):
    dimensions = [c.dimension(unit, limit) for unit, limit in zip(UNITS, limits, strict=True)]
    assert cost_ns(dimensions, call_cost(10, 90, PRICES), hold_ms=0) == cost_ms * 10**6


# -- what is charged in the end -----------------------------------------------------------------

SETTLED = [
    # amount, prompt and output used, then what counts of each unit
    ("actual", 5, 20, (5, 20, 15 + 300 + 100)),
    ("reserved", 5, 20, (10, 90, 1_480)),
    ("actual", 0, 0, (0, 0, 100)),
    ("reserved", 50, 20, (50, 90, 1_480)),
    ("actual", 50, 20, (50, 20, 150 + 300 + 100)),
    ("reserved", 5, 190, (10, 190, 15 + 2_850 + 100)),
    ("actual", None, None, (10, 90, 1_480)),
    ("actual", None, 20, (10, 90, 1_480)),
    ("actual", None, 190, (10, 190, 30 + 2_850 + 100)),
    ("actual", 50, None, (50, 90, 150 + 1_350 + 100)),
    ("actual", -1, 20, (10, 90, 1_480)),
]


@pytest.mark.parametrize("instant", ["arrival", "completion"])
@pytest.mark.parametrize(("amount", "prompt", "output", "counts"), SETTLED)
def test_a_settlement_charges_each_unit_what_was_used_of_it(
    amount, prompt, output, counts, instant
):
    wide = [c.dimension(unit, ROOMY, amount=amount, instant=instant) for unit in UNITS]
    cell = cell_of(*wide)
    grant = s.started(cell, ONE)
    assert grant.money_micros == 1_480
    cell.run(c.result(grant, prompt_tokens=prompt, output_tokens=output))
    assert used(cell) == counts
    assert s.same_as_followed(cell)
    cell.run(after_ms=70_000)
    assert used(cell) == (0, 0, 0)


def test_what_is_held_and_paid_follows_the_prices_of_the_grant():
    dimensions = [c.dimension(unit, ROOMY, amount="actual") for unit in UNITS]
    cell = cell_of(*dimensions)
    grant = s.started(cell, ONE)
    cell.run(c.domain(*dimensions, prices=DEARER))
    assert s.used(cell, "money") == 1_480
    settled = s.one(e.ReservationSettled, cell.run(c.result(grant, prompt_tokens=5)))
    assert settled.money_micros == s.used(cell, "money") == 15 + 1_350 + 100
    corrected = s.one(e.UsageCorrected, cell.run(c.usage(grant, 100)))
    assert (corrected.money_before_micros, corrected.money_actual_micros) == (1_465, 1_600)
    assert s.granted(cell, TWO).money_micros == 3 * 1_480
    assert s.same_as_followed(cell)


def test_a_call_that_the_provider_did_not_take_costs_its_price_and_no_token():
    cell = cell_of()
    grant = s.started(cell, ONE)
    cell.run(c.result(grant, "throttled", prompt_tokens=None, output_tokens=None))
    assert used(cell) == (0, 0, 100)


def test_a_call_that_was_never_made_costs_nothing():
    cell = cell_of()
    grant = s.started(cell, ONE)
    cell.run(s.cancel(ONE), c.result(grant, "not_sent"))
    assert used(cell) == (0, 0, 0)
    cell.run(c.usage(grant, 20, prompt_tokens=5))
    assert used(cell) == (5, 20, 15 + 300 + 100)
    assert s.same_as_followed(cell)


def test_an_outcome_that_nobody_knows_is_paid_in_full():
    cell = cell_of(unknown_hold_ms=1_000)
    grant = s.unknown(cell, ONE)
    s.one(e.ReservationForfeited, cell.run(after_ms=1_000))
    assert used(cell) == tuple(TAKEN.values())
    corrected = s.one(e.UsageCorrected, cell.run(c.usage(grant, 20, prompt_tokens=5)))
    assert (corrected.money_before_micros, corrected.money_actual_micros) == (1_480, 415)
    assert used(cell) == tuple(TAKEN.values())
    assert s.same_as_followed(cell)


CORRECTED = [
    # amount, prompt and output told after 5 and 20 were settled, then what counts
    ("actual", 5, 30, (5, 30, 15 + 450 + 100)),
    ("actual", 1, 10, (5, 20, 415)),
    ("actual", 9, 10, (9, 20, 415)),
    ("actual", 20, 5, (20, 20, 415)),  # as many tokens, but others
    ("reserved", 5, 30, (10, 90, 1_480)),
    ("reserved", 50, 100, (50, 100, 150 + 1_500 + 100)),
]


@pytest.mark.parametrize(("amount", "prompt", "output", "counts"), CORRECTED)
def test_later_usage_counts_what_is_beyond_in_each_unit_and_frees_nothing(
    amount, prompt, output, counts
):
    cell = cell_of(amount=amount)
    grant = s.started(cell, ONE)
    cell.run(c.result(grant, prompt_tokens=5, output_tokens=20))
    (corrected,) = cell.run(c.usage(grant, output, prompt_tokens=prompt))
    assert (corrected.input_tokens_before, corrected.input_tokens_actual) == (5, prompt)
    assert used(cell) == counts
    assert s.same_as_followed(cell)


def test_a_correction_there_and_back_leaves_the_turn_where_it_was():
    cell = cell_of()
    grant = s.started(cell, ONE)
    cell.run(c.result(grant, prompt_tokens=5, output_tokens=20))
    (lane,) = cell.state.config.domains["d"].lanes.values()
    served = lane.counters["a"].row.served
    for n, (prompt, output) in enumerate(((50, 2_000), (5, 20))):
        cell.run(c.usage(grant, output, prompt_tokens=prompt, evidence=f"u{n}"))
    assert lane.counters["a"].row.served == served


# -- at the edge --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sliding", "fixed", "bucket"])
def test_the_dearest_call_there_can_be_fits_every_row_and_event(kind):
    prices = Prices(currency="EUR", **dict.fromkeys(("input_micros", "output_micros"), PRICE_MAX))
    dimensions = [c.dimension(unit, LIMIT_MAX, kind=kind, amount="actual") for unit in UNITS]
    cell = s.cell(*dimensions, prices=prices)
    most = {"prompt_tokens": TOKENS_MAX, "output_tokens_max": TOKENS_MAX}
    grant = s.started(cell, c.submitted("a", "1", **most))
    assert grant.money_micros == 2 * TOKENS_MAX * PRICE_MAX // 10**6 < LIMIT_MAX
    events = cell.run(c.result(grant, prompt_tokens=0, output_tokens=0))
    events += cell.run(c.usage(grant, TOKENS_MAX, prompt_tokens=TOKENS_MAX))
    assert all(encode(one) for one in events)
    assert s.used(cell, "money") <= LIMIT_MAX
    assert s.same_as_followed(cell)


def test_a_limit_of_one_micro_takes_the_dearest_overdraft_and_comes_back():
    prices = Prices(currency="EUR", output_micros=PRICE_MAX)
    cell = s.cell(c.dimension("money", 1, window_ms=1_000), prices=prices, send_within_ms=1)
    free = {"prompt_tokens": 1, "output_tokens_max": 0}
    grant = s.started(cell, c.submitted("a", "1", **free))
    settled = s.one(
        e.ReservationSettled, cell.run(c.result(grant, prompt_tokens=0, output_tokens=TOKENS_MAX))
    )
    assert settled.money_micros == s.used(cell, "money") == TOKENS_MAX * PRICE_MAX // 10**6
    assert encode(settled)
    cell.run(after_ms=2_100)
    assert s.used(cell, "money") == 0
    assert s.same_as_followed(cell)
