"""Whose turn it is: joining, idling, waiting blocked, refunds and weights, policy by policy."""

import pytest

from schemas import events as e
from schemas.inputs import TenantBudget
from streams.core.fairness import Lane
from streams.core.rows import KINDS
from streams.core.tables import Overlay
from tests.support import cells as s
from tests.support import core as c


class Turns:
    """One lane whose tenants always have something waiting, unless they are said not to."""

    def __init__(self, policy: str, weights: str, cost: int = 12, *windows_ms: int) -> None:
        dimensions = [c.dimension(f"tokens-{ms}", 1, window_ms=ms) for ms in windows_ms]
        config = c.domain(c.dimension("slots", 1), *dimensions, policy=policy).domain
        self.lane = Lane(Overlay(c.MemoryRows(), KINDS), "d", "interactive", config)
        self.cost = cost
        self.lane.admitted(cost)
        for name, weight in zip("ABCDEF", weights, strict=False):
            self.join(name, int(weight))

    def join(self, name: str, weight: int = 1) -> None:
        counter = self.lane.counter(name)
        self.lane.reweigh(counter, weight)
        counter.queues["p"] = "something waits"
        self.lane.activate(counter)

    def leave(self, name: str) -> None:
        self.lane.counter(name).queues.clear()
        self.lane.deactivate(self.lane.counter(name))

    def take(
        self, count: int, *, blocked: str = "", held: str = "", cost: int | None = None
    ) -> str:
        """Who goes; `blocked` by the budget of the domain, `held` back by places or own caps."""
        found = ""
        for _ in range(count):
            counter = next(one for one in self.lane.in_order() if one.tenant not in blocked + held)
            self.lane.charge(counter, cost or self.cost, lambda other: other.tenant in held)
            found += counter.tenant
        return found

    def key(self, name: str) -> int:
        return self.lane.counter(name).key


ROUNDS = [
    ("round_robin", "111", "ABCABCABC"),
    ("round_robin", "911", "ABCABCABC"),
    ("weighted_round_robin", "211", "AABCAABC"),
    ("weighted_round_robin", "132", "ABBBCCABBBCC"),
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


@pytest.mark.parametrize("policy", ["weighted_round_robin", "virtual_counter"])
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


def test_whoever_held_itself_back_keeps_at_most_one_largest_cost():
    turns = Turns("virtual_counter", "12", 12, 60_000)
    turns.take(50, held="B")
    v = turns.lane.row.v
    turns.take(1, blocked="A")
    assert turns.key("B") == v - turns.cost // 2 + turns.cost // 2  # lifted, then charged
    assert turns.lane.counter("B").row.lift == 1


def test_whoever_the_shared_budget_held_back_is_owed_what_it_missed():
    turns = Turns("virtual_counter", "21", 12, 60_000)
    assert turns.take(50, blocked="A") == "B" * 50
    found = turns.take(250)
    assert found.startswith("A" * 97)  # where the share of both is as weighted again
    assert abs(found.count("A") - 150 - 50) <= 1
    assert turns.lane.counter("A").row.lift == 0


def test_nobody_is_owed_more_than_the_shortest_window():
    turns = Turns("virtual_counter", "21", 100_000, 1, 60_000)
    turns.take(500, blocked="A")
    assert turns.take(100).startswith("A" * (10 + 3) + "BAAB")  # 3 up to the next key of B


def test_what_was_missed_is_written_off_when_a_tenant_holds_itself_back():
    turns = Turns("virtual_counter", "11", 12, 60_000)
    turns.take(50, blocked="A")
    turns.take(2, held="A")
    assert turns.take(8) == "AAABABAB"


def test_what_was_missed_after_holding_itself_back_is_owed():
    turns = Turns("virtual_counter", "11", 12, 60_000)
    turns.take(50, held="A")
    turns.take(20, blocked="A")
    assert turns.take(24) == "A" * 23 + "B"


def test_a_larger_cost_leaves_every_waiting_tenant_in_the_order():
    turns = Turns("virtual_counter", "11")
    turns.take(50, held="B")
    turns.lane.admitted(10 * turns.cost)
    assert {one.tenant for one in turns.lane.in_order()} == {"A", "B"}
    assert turns.take(1) == "B"


def test_v_never_falls():
    turns = Turns("virtual_counter", "111")
    seen = 0
    for n in range(60):
        turns.take(1, held="ABC".replace("ABC"[n % 3], "") if n % 4 == 0 else "")
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


def test_the_heap_of_keys_stays_small_whatever_moves():
    turns = Turns("virtual_counter", "11")
    counter = turns.lane.counter("A")
    for n in range(5_000):
        turns.lane.correct(counter, -1 if n % 2 else 1, weight=1, lift=0)
    assert len(turns.lane._heap) <= 4 * 2 + 65


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
