"""Whose turn it is: joining, idling, refunds and weights, policy by policy."""

import pytest

from schemas import events as e
from streams.core.index import OUTDATED_MAX
from tests.support import cells as s
from tests.support import core as c
from tests.support.turns import Turns

ROUNDS = [
    ("round_robin", "111", "ABCABCABC"),
    ("round_robin", "911", "ABCABCABC"),
    ("weighted_round_robin", "211", "AABCAABC"),
    ("weighted_round_robin", "132", "ABBBCCABBBCC"),
    ("deficit_round_robin", "211", "AABCAABC"),
    ("deficit_round_robin", "132", "ABBBCCABBBCC"),
    ("virtual_counter", "211", "ABCAABCAABCA"),
    ("virtual_counter", "111", "ABCABC"),
]


@pytest.mark.parametrize(("policy", "weights", "order"), ROUNDS)
def test_turns_are_taken_by_weight(policy, weights, order):
    turns = Turns(policy, weights)
    counts = {name: order.count(name) for name in "ABC"}
    found = turns.take(len(order))
    assert {name: found.count(name) for name in "ABC"} == counts
    if policy != "virtual_counter":
        assert found == order


@pytest.mark.parametrize(
    "policy", ["weighted_round_robin", "deficit_round_robin", "virtual_counter"]
)
def test_four_thousand_grants_follow_the_weights_within_one_round(policy):
    found = Turns(policy, "211").take(4_000)
    for name, due in (("A", 2_000), ("B", 1_000), ("C", 1_000)):
        assert abs(found.count(name) - due) <= 1


@pytest.mark.parametrize(("rank", "order"), [((0, 1), "AA"), ((1, 0), "BB"), ((3, 3), "AA")])
def test_strict_priority_goes_by_rank_and_ties_by_ring(rank, order):
    turns = Turns("strict_priority", "11")
    turns.lane.counter("A").rank, turns.lane.counter("B").rank = rank
    assert turns.take(2) == order


# -- weighted round robin -----------------------------------------------------------------------


def test_a_joiner_enters_behind_the_current_position():
    turns = Turns("weighted_round_robin", "211")
    assert turns.take(1) == "A"
    turns.join("D")
    assert turns.take(9) == "ABCDAABCD"


def test_whoever_empties_its_queue_after_every_turn_gets_no_second_turn_in_the_round():
    turns = Turns("weighted_round_robin", "111")
    found = ""
    for _ in range(9):
        found += turns.take(1)
        if found[-1] == "A":
            turns.leave("A")
            turns.join("A")
    assert [found.count(name) for name in "ABC"] == [3, 3, 3]


# -- deficit round robin ------------------------------------------------------------------------


def test_a_visit_lasts_as_long_as_its_cost_and_what_it_takes_beyond_is_owed():
    turns = Turns("deficit_round_robin", "11", 100)
    assert turns.take(1, blocked="B", cost=60) == "A"
    assert turns.take(1, blocked="B", cost=100) == "A"  # 40 were left: it owes 60
    assert turns.take(2, cost=50) == "BB"
    assert turns.take(2, cost=40) == "AB"  # all of the 40 that are left to it


def test_whoever_owes_more_than_a_visit_misses_one_unless_nobody_else_can_go():
    turns = Turns("deficit_round_robin", "11", 100)
    turns.take(1, cost=100)
    counter = turns.lane.counter("A")
    turns.lane.correct(counter, 150, weight=1, lift=0)
    assert turns.take(3) == "BBA"
    turns.lane.correct(counter, 500, weight=1, lift=0)
    assert turns.take(2, blocked="B") == "AA"


def test_refunds_and_idleness_save_nothing_up_in_deficit_round_robin():
    turns = Turns("deficit_round_robin", "11", 100)
    turns.take(1, cost=10)
    counter = turns.lane.counter("A")
    turns.lane.correct(counter, -10, weight=1, lift=0)
    assert counter.row.deficit == 100
    turns.take(1, blocked="A")
    turns.lane.correct(counter, -10, weight=1, lift=0)
    assert counter.row.deficit == 0
    turns.take(1, blocked="B", cost=10)
    turns.leave("A")
    turns.join("A")
    assert counter.row.deficit == 0


# -- the virtual counter ------------------------------------------------------------------------


def test_idleness_earns_nothing():
    turns = Turns("virtual_counter", "11")
    turns.leave("B")
    turns.take(100)
    turns.join("B")
    found = turns.take(20)
    assert abs(found.count("A") - 10) <= 1
    assert "BBB" not in found


def test_a_returning_tenant_keeps_its_debt():
    turns = Turns("virtual_counter", "11")
    turns.lane.admitted(1_000)
    turns.take(2, blocked="B", cost=1_000)
    debt = turns.key("A")
    turns.leave("A")
    turns.join("A")
    assert turns.key("A") == debt
    assert turns.take(100) == "B" * 100


def test_v_never_falls():
    turns = Turns("virtual_counter", "111")
    seen = 0
    for n in range(60):
        turns.take(1, blocked="ABC".replace("ABC"[n % 3], "") if n % 4 == 0 else "")
        assert turns.lane.row.v >= seen
        seen = turns.lane.row.v


def test_a_weight_change_pays_nothing_back():
    turns = Turns("virtual_counter", "11")
    turns.take(50)
    before = turns.key("A")
    turns.lane.reweigh(turns.lane.counter("A"), 3)
    assert turns.key("A") == before
    found = turns.take(40)
    assert abs(found.count("A") - 30) <= 1


def test_a_cumulative_counter_does_not_drift():
    turns = Turns("virtual_counter", "37", cost=1)
    found = turns.take(100_000)
    assert found.count("A") == 30_000


CORRECTIONS = [
    # served after the grant, correction, lifted since?, key afterwards (V is 50, weight 2)
    (200, -60, False, 70),
    (200, -180, False, 10),  # its own refund: back to where it was
    (200, -180, True, 50),  # from before a lift: no lower than V
    (60, -40, True, 30),  # already below V: it stays
    (200, +60, False, 130),
    (200, +60, True, 130),  # a surcharge always counts in full
]


@pytest.mark.parametrize(("served", "delta", "lifted", "key"), CORRECTIONS)
def test_a_correction_counts_at_its_weight_and_refunds_bank_no_credit(served, delta, lifted, key):
    turns = Turns("virtual_counter", "2")
    counter = turns.lane.counter("A")
    counter.row.served, turns.lane.row.v = served, 50
    turns.lane.correct(counter, delta, weight=2, lift=counter.row.lift - lifted)
    assert counter.key == key


@pytest.mark.parametrize(("delta", "key"), [(10, 104), (-10, 97), (9, 103), (-9, 97)])
def test_a_reservation_is_corrected_at_the_weight_it_was_made_with(delta, key):
    turns = Turns("virtual_counter", "5")
    counter = turns.lane.counter("A")
    counter.row.base, turns.lane.row.v = 100, 0
    turns.lane.correct(counter, delta, weight=3, lift=counter.row.lift)
    assert counter.key == key


def test_the_index_stays_small_whatever_moves():
    turns = Turns("virtual_counter", "11")
    turns.take(1)
    sizes = set()
    for _ in range(5_000):
        turns.lane.correct(turns.lane.counter("A"), 1, weight=1, lift=0)
        assert [*turns.order()] == ["B", "A"]
        sizes.add(len(turns.lane._index))
    assert max(sizes) <= 4 * 2 + OUTDATED_MAX + 1


@pytest.mark.parametrize(("held_ms", "learned"), [(9_000, 2_000), (1_000, 1_000), (0, 875)])
def test_the_hold_is_learned_by_an_eighth_of_its_error(held_ms, learned):
    turns = Turns("virtual_counter", "1")
    counter = turns.lane.counter("A")
    turns.lane.settled_hold(counter, held_ms, 1_000)
    assert counter.row.hold_ms == learned


def test_a_hold_is_at_least_a_millisecond():
    turns = Turns("virtual_counter", "1")
    counter = turns.lane.counter("A")
    for _ in range(100):
        turns.lane.settled_hold(counter, 0, 5)
    assert counter.row.hold_ms == 1


# -- in a cell ----------------------------------------------------------------------------------


def test_the_hold_a_tenant_has_shown_is_in_the_cost_of_its_next_call():
    cell = s.cell(c.dimension("slots", 1), hold_initial_ms=1_000)
    first = s.started(cell, c.submitted("a", "1"))
    settled = s.one(e.ReservationSettled, cell.run(c.result(first), after_ms=9_000))
    assert (first.cost_ns, settled.cost_ns) == (1_000 * 10**6, 9_000 * 10**6)
    assert s.granted(cell, c.submitted("a", "2")).cost_ns == 2_000 * 10**6


def test_a_settlement_moves_the_counter_to_the_actual_cost():
    cell = s.cell(c.dimension("tokens", 1_000, amount="actual"))
    first = s.started(cell, c.submitted("a", "1"))
    counter = cell.state.config.domains["d"].lanes["interactive"].counters["a"]
    assert counter.key == first.cost_ns
    cell.run(c.result(first, prompt_tokens=0, output_tokens=25))
    assert counter.key == first.cost_ns // 4


def test_a_reservation_returned_unused_costs_nothing():
    cell = s.cell(c.dimension("tokens", 1_000))
    s.granted(cell, c.submitted("a", "1"))
    cell.run(s.cancel(c.submitted("a", "1")))
    assert cell.state.config.domains["d"].lanes["interactive"].counters["a"].key == 0
