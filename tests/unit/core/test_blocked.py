"""What a tenant keeps that was passed over: its place in the ring, and a bounded credit."""

import pytest

from schemas import events as e
from schemas.inputs import TenantBudget
from tests.support import cells as s
from tests.support import core as c
from tests.support.turns import Turns

# -- weighted round robin -----------------------------------------------------------------------


@pytest.mark.parametrize("blocked_turns", [1, 2, 3, 50])
def test_a_head_that_does_not_fit_keeps_its_place_and_gains_no_turns(blocked_turns):
    turns = Turns("weighted_round_robin", "211")
    found = turns.take(blocked_turns, blocked="A") + turns.take(40)
    assert found.startswith(("BC" * 25)[:blocked_turns] + "AA")
    for name, others in (("B", 3), ("C", 3)):
        assert all(len(wait) <= others for wait in found.split(name)[:-1])


def test_a_visit_that_is_cut_short_is_over():
    turns = Turns("weighted_round_robin", "311")
    assert turns.take(1) == "A"
    assert turns.take(1, blocked="A") == "B"
    assert turns.take(8) == "CAAABCAA"


def test_when_only_one_can_go_it_gets_every_turn():
    turns = Turns("weighted_round_robin", "211")
    assert turns.take(5, blocked="AC") == "BBBBB"


# -- the virtual counter ------------------------------------------------------------------------


def test_whoever_was_passed_over_keeps_at_most_one_largest_cost():
    turns = Turns("virtual_counter", "12")
    turns.take(50, blocked="B")
    v = turns.lane.row.v
    turns.take(1, blocked="A")
    assert turns.key("B") == v - turns.cost // 2 + turns.cost // 2  # lifted, then charged
    assert turns.lane.counter("B").row.lift == 1


def test_a_larger_cost_leaves_every_waiting_tenant_in_the_order():
    turns = Turns("virtual_counter", "11")
    turns.take(50, blocked="B")
    turns.lane.admitted(10 * turns.cost)
    assert set(turns.order()) == {"A", "B"}
    assert turns.take(1) == "B"


# -- in a cell ----------------------------------------------------------------------------------


def held_by_its_own_cap() -> tuple[c.Core, dict]:
    cap = TenantBudget(domain="d", dimensions=(c.dimension("slots", 1),))
    tenants = [c.tenant("a", budgets=(cap,))]
    return s.cell(c.dimension("slots", 2), c.dimension("requests", 1_000), tenants=tenants), {}


def held_by_its_full_pool() -> tuple[c.Core, dict]:
    made = s.cell(c.dimension("slots", 2), c.dimension("requests", 1_000))
    made.run(c.pool("q"), c.join("n", pool="q"), c.heartbeat("n"))
    return made, {"pool": "q"}


@pytest.mark.parametrize("held", [held_by_its_own_cap, held_by_its_full_pool])
def test_whoever_its_own_cap_or_pool_held_back_comes_back_without_a_burst(held):
    cell, own = held()
    first = s.granted(cell, c.submitted("a", "1", **own))
    cell.run(c.start(first), c.submitted("a", "2", **own))
    last = s.granted(cell, c.submitted("b", "1"), c.submitted("b", "2"))
    for n in range(100):
        cell.run(c.start(last))
        last = s.one(e.GrantIssued, cell.run(c.result(last), c.submitted("b", f"more {n}")))
    assert last.tenant == "b"
    again = s.one(e.GrantIssued, cell.run(c.result(first)))
    lane = cell.state.config.domains["d"].lanes["interactive"]
    assert (again.tenant, again.lift) == ("a", first.lift + 1)
    assert lane.counters["a"].key >= lane.row.v - lane.row.cost_max_ns


def test_what_its_own_caps_let_through_only_after_its_deadline_expires_early():
    own = c.dimension("requests", 1, window_ms=2_000)
    cap = TenantBudget(domain="d", dimensions=(own,))
    cell = s.cell(c.dimension("slots", 2), tenants=[c.tenant("a", budgets=(cap,))])
    cell.run(c.start(s.granted(cell, c.submitted("a", "1"))))
    expired = s.one(e.OperationExpired, cell.run(c.submitted("a", "2", start_within_ms=1_000)))
    assert expired.reason == "not_before"
    later = cell.run(c.submitted("a", "3", start_within_ms=5_000))
    assert s.one(e.OperationDeferred, later).level == "tenant"
    assert s.grants(cell.run(after_ms=3_400))
