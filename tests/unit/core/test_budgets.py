"""What a call costs, what fits, and what a settlement leaves in each kind of dimension."""

import pytest

from schemas import events as e
from schemas.codec import encode
from schemas.inputs import TenantBudget
from streams.core.costs import Cost, cost_ns, settled_amount, settled_cost_ns
from streams.core.limits import COST_NS_MAX, TOKENS_MAX, WINDOW_MS_MAX
from tests.support import cells as s
from tests.support import core as c

MINUTE_NS = 60_000 * 10**6
ONE = Cost(1, 100, 1)

COSTS = [
    # dimensions, hold_ms, cost_ns
    ([("requests", 60)], 0, MINUTE_NS // 60),
    ([("requests", 7)], 0, -(-MINUTE_NS // 7)),  # rounded up
    ([("tokens", 1_000)], 0, MINUTE_NS // 10),
    ([("slots", 8)], 4_000, 500 * 10**6),
    ([("slots", 3)], 1, 333_334),
    ([("requests", 60), ("tokens", 1_000), ("slots", 8)], 4_000, MINUTE_NS // 10),
    ([("requests", 60), ("tokens", 1_000), ("slots", 8)], 60_000, 60_000 * 10**6 // 8),
    ([("requests", 0)], 0, 1),  # a pause says nothing about cost
    ([("tokens", 10**12)], 0, 6),
]


@pytest.mark.parametrize(("dimensions", "hold_ms", "expected"), COSTS)
def test_cost_is_how_long_the_call_alone_occupies_its_scarcest_dimension(
    dimensions, hold_ms, expected
):
    configs = [c.dimension(name, limit) for name, limit in dimensions]
    assert cost_ns(configs, ONE, hold_ms=hold_ms) == expected


def test_a_window_counts_in_the_cost_and_not_only_the_share_of_its_limit():
    second, minute = (c.dimension("tokens", 1_000, window_ms=ms) for ms in (1_000, 60_000))
    assert cost_ns([minute], ONE, hold_ms=0) == 60 * cost_ns([second], ONE, hold_ms=0)


def test_a_call_of_no_tokens_still_costs_something():
    assert cost_ns([c.dimension("tokens", 100)], Cost(1, 0, 1), hold_ms=0) == 1


SETTLED = [
    # amount, reserved, actual, charged
    ("reserved", 100, 50, 100),
    ("reserved", 100, 100, 100),
    ("reserved", 100, 101, 101),
    ("actual", 100, 50, 50),
    ("actual", 100, 0, 0),
    ("actual", 100, 200, 200),
]


@pytest.mark.parametrize(("amount", "reserved", "actual", "charged"), SETTLED)
def test_only_an_actual_dimension_refunds_and_every_one_charges_an_overdraft(
    amount, reserved, actual, charged
):
    one = c.dimension("tokens", 1_000, amount=amount)
    assert settled_amount(one, reserved, actual) == charged
    expected = max(1, charged * MINUTE_NS // 1_000)
    costs = Cost(1, reserved, 1), Cost(1, actual, 1)
    assert settled_cost_ns([one], *costs, hold_ms=0) == expected


def test_a_broken_usage_figure_cannot_make_a_cost_that_no_event_can_hold():
    cell = s.cell(c.dimension("tokens", 10, window_ms=WINDOW_MS_MAX))
    small = c.submitted("a", "1", prompt_tokens=1, output_tokens_max=1)
    grant = s.started(cell, small)
    events = cell.run(c.result(grant, prompt_tokens=TOKENS_MAX, output_tokens=TOKENS_MAX))
    settled = s.one(e.ReservationSettled, events)
    assert settled.cost_ns == COST_NS_MAX
    assert s.used(cell, "tokens") == settled.tokens_actual == 2 * TOKENS_MAX
    assert encode(settled)


# -- all or none --------------------------------------------------------------------------------


def test_what_does_not_fit_in_one_dimension_takes_nothing_from_the_others():
    cell = s.cell(c.dimension("requests", 9), c.dimension("tokens", 150), c.dimension("slots", 9))
    cell.run(c.submitted("a", "1"), c.submitted("a", "2"))
    assert [s.used(cell, name) for name in ("requests", "tokens", "slots")] == [1, 100, 1]


def test_what_does_not_fit_at_the_tenant_level_takes_nothing_from_the_domain():
    budget = TenantBudget(domain="d", dimensions=(c.dimension("tokens", 150),))
    cell = s.cell(c.dimension("tokens", 900), tenants=[c.tenant("a", budgets=(budget,))])
    cell.run(c.submitted("a", "1"), c.submitted("a", "2"))
    assert (s.used(cell, "tokens"), s.used(cell, "tokens", "tenant:a")) == (100, 100)


@pytest.mark.parametrize(("limit", "granted"), [(99, 0), (100, 1), (199, 1), (200, 2)])
def test_a_budget_grants_up_to_its_limit_and_not_one_unit_more(limit, granted):
    cell = s.cell(c.dimension("tokens", limit))
    assert len(s.grants(cell.run(*[c.submitted("a", str(n)) for n in range(3)]))) == granted


def test_a_limit_of_zero_is_a_pause_in_which_work_waits():
    cell = s.cell(c.dimension("requests", 0))
    deferred = s.one(e.OperationDeferred, cell.run(c.submitted("a", "1")))
    assert (deferred.dimension, deferred.not_before_ms) == ("requests", None)
    assert s.granted(cell, c.domain(c.dimension("requests", 1)))


def test_a_limit_lowered_below_use_revokes_nothing_and_blocks_until_use_fits():
    cell = s.cell(c.dimension("slots", 3))
    running = [s.started(cell, c.submitted("a", str(n))) for n in range(3)]
    cell.run(c.submitted("a", "next"))
    assert s.grants(cell.run(c.domain(c.dimension("slots", 1)))) == []
    found = [len(s.grants(cell.run(c.result(one)))) for one in running]
    assert found == [0, 0, 1]


# -- what comes back ----------------------------------------------------------------------------

TWICE = {"prompt_tokens": 100, "output_tokens": 100}
HALF = {"prompt_tokens": 25, "output_tokens": 25}
NOTHING = {"prompt_tokens": None, "output_tokens": None}
BROKEN = {"prompt_tokens": -1, "output_tokens": 10}
AFTER_RESULT = [
    # dimension, usage, counts afterwards
    ({"amount": "reserved"}, HALF, 100),
    ({"amount": "actual"}, HALF, 50),
    ({"amount": "reserved"}, TWICE, 200),
    ({"amount": "actual"}, TWICE, 200),
    ({"amount": "actual"}, NOTHING, 100),
    ({"amount": "actual"}, BROKEN, 100),
    ({"amount": "actual", "instant": "completion"}, HALF, 50),
    ({"amount": "reserved", "instant": "completion"}, HALF, 100),
    ({"amount": "reserved", "instant": "completion"}, TWICE, 200),
]


@pytest.mark.parametrize(("over", "usage", "counts"), AFTER_RESULT)
def test_a_settlement_leaves_in_a_dimension_what_it_charges(over, usage, counts):
    cell = s.cell(c.dimension("tokens", 1_000, **over), c.dimension("slots", 3))
    grant = s.started(cell, c.submitted("a", "1"))
    cell.run(c.result(grant, **usage))
    assert (s.used(cell, "tokens"), s.used(cell, "slots")) == (counts, 0)
    cell.run(after_ms=70_000)
    assert s.used(cell, "tokens") == 0


def test_an_overdraft_is_reported_and_reduces_later_grants():
    cell = s.cell(c.dimension("tokens", 300))
    grant = s.started(cell, c.submitted("a", "1"))
    settled = s.one(e.ReservationSettled, cell.run(c.result(grant, **TWICE)))
    assert (settled.tokens_reserved, settled.tokens_actual, settled.overdraft_tokens) == (
        100,
        200,
        100,
    )
    assert len(s.grants(cell.run(c.submitted("a", "2"), c.submitted("a", "3")))) == 1


def test_an_overdraft_over_an_estimate_of_nothing_counts_too():
    cell = s.cell(c.dimension("tokens", 1_000))
    grant = s.started(cell, c.submitted("a", "1", prompt_tokens=0, output_tokens_max=0))
    cell.run(c.result(grant, prompt_tokens=40, output_tokens=0))
    assert s.used(cell, "tokens") == 40
    cell.run(after_ms=70_000)
    assert s.used(cell, "tokens") == 0


def test_use_that_becomes_known_after_its_charge_has_left_frees_and_charges_nothing():
    cell = s.cell(c.dimension("tokens", 1_000, window_ms=1_000, amount="actual"))
    grant = s.started(cell, c.submitted("a", "1"))
    cell.run(after_ms=10_000)
    cell.run(c.result(grant, **HALF))
    assert s.used(cell, "tokens") == 0


@pytest.mark.parametrize("outcome", ["terminal", "policy_denied", "cancelled", "success"])
def test_a_request_stays_spent_however_the_call_ended(outcome):
    cell = s.cell(c.dimension("requests", 3), c.dimension("slots", 3))
    grant = s.started(cell, c.submitted("a", "1"))
    cell.run(c.result(grant, outcome))
    assert (s.used(cell, "requests"), s.used(cell, "slots")) == (1, 0)


def test_a_reservation_that_led_to_no_call_returns_everything():
    dimensions = [
        c.dimension("requests", 3),
        c.dimension("tokens", 900),
        c.dimension("tokens-end", 900, instant="completion"),
        c.dimension("slots", 3),
    ]
    cell = s.cell(*dimensions, places=1)
    grant = s.started(cell, c.submitted("a", "1"))
    cell.run(s.cancel(c.submitted("a", "1")), c.result(grant, "not_sent"))
    assert [s.used(cell, one.name) for one in dimensions] == [0, 0, 0, 0]


def test_a_dimension_added_while_a_call_runs_is_not_charged_for_it():
    cell = s.cell(c.dimension("slots", 3))
    grant = s.started(cell, c.submitted("a", "1"))
    cell.run(c.domain(c.dimension("slots", 3), c.dimension("requests", 3)))
    cell.run(c.result(grant))
    assert (s.used(cell, "slots"), s.used(cell, "requests")) == (0, 0)


def test_a_charge_whose_empty_dimension_was_dropped_settles_without_it():
    cell = s.cell(c.dimension("slots", 3), c.dimension("tokens", 900, window_ms=1_000))
    grant = s.started(cell, c.submitted("a", "1"))
    cell.run(after_ms=9_000)
    s.one(e.ConfigActivated, cell.run(c.domain(c.dimension("slots", 3))))
    s.one(e.ReservationSettled, cell.run(c.result(grant)))
    assert s.used(cell, "slots") == 0
    assert cell.follower().digest() == cell.rows.digest()


def test_a_dropped_dimension_whose_name_returns_for_slots_gets_nothing_of_the_old_charge():
    cell = s.cell(c.dimension("slots", 3), c.dimension("x", 900, unit="tokens", window_ms=1_000))
    grant = s.started(cell, c.submitted("a", "1"))
    cell.run(c.domain(c.dimension("slots", 3)), after_ms=9_000)
    x = c.dimension("x", 1, unit="slots", kind="concurrency", window_ms=None)
    s.one(e.ConfigActivated, cell.run(c.domain(c.dimension("slots", 3), x)))
    cell.run(c.result(grant))
    assert s.used(cell, "x") == 0
