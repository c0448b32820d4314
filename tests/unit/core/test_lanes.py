"""Lanes: who may use them, how they take turns, and what bulk leaves to the others."""

from collections import Counter

import pytest

from schemas import events as e
from schemas.codes import Code
from schemas.inputs import TenantBudget
from schemas.lanes import BULK, DECISION, INTERACTIVE, LANES
from streams.core import lanes
from streams.core.opening import open_state
from tests.support import cells as s
from tests.support import core as c

ANYWHERE = {"lanes": LANES}
CALL_MS = 100
FLOOR = {"interactive_weight": 95, "bulk_weight": 5}


def ready(*dimensions, tenants="ab", **domain) -> c.Core:
    """Every tenant may use every lane."""
    entitled = [c.tenant(name, **ANYWHERE) for name in tenants]
    return s.cell(*dimensions, tenants=entitled, hold_initial_ms=CALL_MS, **domain)


def work(cell: c.Core, count: int, lane: str, tenant: str = "a", **over) -> list[e.Event]:
    """So many submissions of one lane, in one entry."""
    made = cell.height
    asked = [c.submitted(tenant, f"{lane}{made}.{n}", lane=lane, **over) for n in range(count)]
    return cell.settle_down(*asked)


def answer(cell: c.Core, **over) -> e.Event:
    return cell.run(c.submitted("a", "1", **over))[0]


def turns(cell: c.Core, count: int, *refill: tuple[str, str]) -> list[e.GrantIssued]:
    """One call at a time in a cell with one slot; each lane of `refill` always has work."""
    running = [one for one in all_grants(cell) if one.operation in cell.state.attempts]
    grants: list[e.GrantIssued] = []
    while len(grants) < count:
        asked = [
            c.submitted(tenant, f"t{cell.height}.{n}", lane=lane)
            for n, (lane, tenant) in enumerate(refill)
        ]
        results = [c.result(grant) for grant in running]
        running = s.grants(cell.run(*results, *asked, after_ms=CALL_MS))
        assert running
        grants += running
        cell.run(*[c.start(grant) for grant in running])
    return grants


def all_grants(cell: c.Core) -> list[e.GrantIssued]:
    return s.grants([one.event for _, decided in cell.entries for one in decided])


# -- who may use them ---------------------------------------------------------------------------


def test_a_lane_that_the_tenant_is_not_entitled_to_is_refused_and_the_key_stays_free():
    cell = s.cell()
    refused = answer(cell, lane=BULK)
    assert (refused.code, refused.binds_key) == (Code.LANE_NOT_ENTITLED, False)
    cell.run(c.tenant("a", lanes=(INTERACTIVE, BULK)))
    assert isinstance(answer(cell, lane=BULK), e.OperationAdmitted)
    refused = cell.run(c.submitted("a", "2", lane=DECISION))[0]
    assert refused.code == Code.LANE_NOT_ENTITLED


def test_a_tenant_without_lanes_may_submit_nothing():
    cell = s.cell(tenants=[c.tenant("a", lanes=())])
    assert answer(cell).code == Code.LANE_NOT_ENTITLED


def test_lanes_are_configured_by_names_that_exist_and_weights_in_range():
    cell = s.cell()
    wrong = [
        c.tenant("a", lanes=("urgent",)),
        *(c.domain(c.dimension("slots", 1), **{f"{lane}_weight": 0}) for lane in LANES),
        c.domain(c.dimension("slots", 1), bulk_weight=1_000_001),
        c.domain(c.dimension("slots", 1), bulk_reserve_percent=101),
        c.domain(c.dimension("slots", 1), bulk_reserve_percent=-1),
    ]
    assert s.kinds(cell.run(*wrong)) == ["ConfigRefused"] * len(wrong)


# -- the reserve --------------------------------------------------------------------------------

# dimension, what one call takes of it, grants of lane bulk alone, grants of the others after that
RESERVES = [
    (c.dimension("requests", 20), {}, 17, 3),
    (c.dimension("requests", 100), {}, 85, 15),
    (c.dimension("requests", 7), {}, 5, 2),
    (c.dimension("tokens", 1_000), {}, 8, 2),
    (c.dimension("slots", 8), {}, 6, 2),
    (c.dimension("slots", 7), {}, 5, 2),
    (c.dimension("slots", 2), {}, 1, 1),
    (c.dimension("slots", 1), {}, 1, 0),
    (c.dimension("requests", 20, pace_percent=100), {"bulk_reserve_percent": 0}, 20, 0),
    (c.dimension("slots", 8), {"bulk_reserve_percent": 100}, 1, 7),
]


@pytest.mark.parametrize(("dimension", "domain", "bulk", "others"), RESERVES)
def test_bulk_leaves_its_reserve_in_each_dimension_and_the_others_use_it(
    dimension, domain, bulk, others
):
    cell = ready(c.dimension(dimension.name, dimension.limit, **unpaced(dimension)), **domain)
    assert len(s.grants(work(cell, 200, BULK))) == bulk
    assert len(s.grants(work(cell, 200, INTERACTIVE))) == others
    assert s.same_as_followed(cell)


def unpaced(dimension) -> dict:
    return {} if dimension.window_ms is None else {"pace_percent": 100}


def test_the_reserve_holds_in_a_tenants_own_caps_too_and_its_lanes_share_them():
    cap = TenantBudget(domain="d", dimensions=(c.dimension("slots", 4),))
    cell = s.cell(tenants=[c.tenant("a", budgets=(cap,), **ANYWHERE), c.tenant("b", **ANYWHERE)])
    assert len(s.grants(work(cell, 10, BULK))) == 3
    assert len(s.grants(work(cell, 10, DECISION))) == 1
    assert not s.grants(work(cell, 10, INTERACTIVE))
    assert len(s.grants(work(cell, 10, BULK, "b"))) == 10


def test_what_the_reserve_holds_back_is_told_and_counted():
    cell = ready(c.dimension("slots", 8), cell_bounds={"deferral_sample_ms": 50})
    told = c.only(e.OperationDeferred, work(cell, 9, BULK, "b"))
    assert [(one.held_by, one.dimension, one.not_before_ms) for one in told] == [
        ("reserve", "slots", None)
    ]
    cell.state.touch("d")
    assert not c.only(e.OperationDeferred, cell.run(after_ms=49))
    cell.state.touch("d")
    assert c.only(e.OperationDeferred, cell.run(after_ms=1))
    lane = cell.state.config.domains["d"].lanes[BULK]
    assert (lane.counters["b"].row.held_back, lane.counters["b"].row.by_floor) == (2, 0)


# -- the floor ----------------------------------------------------------------------------------


def test_beside_saturated_interactive_work_bulk_gets_exactly_its_floor():
    cell = ready(c.dimension("slots", 1), **FLOOR)
    grants = turns(cell, 1_000, (INTERACTIVE, "a"), (BULK, "b"))
    assert Counter(grant.lane for grant in grants) == {INTERACTIVE: 950, BULK: 50}
    assert s.same_as_followed(cell)


def test_a_floor_grant_says_that_it_took_of_the_reserve_and_is_counted():
    cell = ready(c.dimension("slots", 8), **FLOOR)
    work(cell, 8, INTERACTIVE)
    work(cell, 4, BULK, "b")
    held = list(cell.state.attempts)
    more = work(cell, 4, INTERACTIVE)
    assert not s.grants(more)
    started = all_grants(cell)
    cell.run(*[c.start(grant) for grant in started])
    (grant,) = s.grants(cell.run(c.result(started[0]), after_ms=CALL_MS))
    assert (grant.lane, grant.by_floor) == (BULK, True)
    counter = cell.state.config.domains["d"].lanes[BULK].counters["b"]
    assert (counter.row.by_floor, len(held)) == (1, 8)
    assert open_state(cell.rows).lane("d", BULK).counter("b").row.by_floor == 1


@pytest.mark.parametrize("beside", [0, 200])
def test_a_vector_above_limit_minus_reserve_is_served_by_the_floor(beside):
    cell = ready(c.dimension("tokens", 1_000, pace_percent=100), **FLOOR)
    work(cell, beside, INTERACTIVE)
    asked = c.submitted("b", "large", lane=BULK, prompt_tokens=900, output_tokens_max=0)
    events = cell.settle_down(asked)
    for _ in range(400):
        events += cell.settle_down(
            *[c.start(grant) for grant in s.grants(events) if grant.operation in unstarted(cell)],
            after_ms=5_000,
        )
    (large,) = [grant for grant in s.grants(events) if grant.lane == BULK]
    assert large.by_floor


def unstarted(cell: c.Core) -> set:
    return {op for op, attempt in cell.state.attempts.items() if attempt.accepted_ms is None}


def test_a_head_of_usual_size_waits_for_no_company_and_leaves_the_reserve_alone():
    cell = ready(c.dimension("slots", 8), **FLOOR)
    grants = s.grants(work(cell, 20, BULK))
    assert len(grants) == 6
    assert not any(grant.by_floor for grant in grants)


# -- turns between lanes ------------------------------------------------------------------------


def test_a_flood_of_decision_work_leaves_interactive_its_share():
    cell = ready(c.dimension("slots", 1))
    grants = turns(cell, 950, (DECISION, "a"), (DECISION, "a"), (DECISION, "b"), (INTERACTIVE, "b"))
    lane = Counter(grant.lane for grant in grants)
    assert abs(lane[DECISION] - 250) <= 1
    assert abs(lane[INTERACTIVE] - 700) <= 1
    tenant = Counter(grant.tenant for grant in grants if grant.lane == DECISION)
    assert abs(tenant["a"] - tenant["b"]) <= 1


def test_an_idle_lane_earns_nothing():
    cell = ready(c.dimension("slots", 1))
    turns(cell, 300, (DECISION, "a"))
    grants = turns(cell, 95, (DECISION, "a"), (INTERACTIVE, "b"))
    assert abs(sum(grant.lane == INTERACTIVE for grant in grants) - 70) <= 2


def test_a_lanes_new_weight_pays_nothing_back_and_holds_from_then_on():
    cell = ready(c.dimension("slots", 1), decision_weight=70)
    refill = ((DECISION, "a"), (INTERACTIVE, "b"))
    assert abs(sum(one.lane == DECISION for one in turns(cell, 100, *refill)) - 50) <= 1
    cell.run(c.domain(c.dimension("slots", 1), interactive_weight=30, decision_weight=10))
    assert abs(sum(one.lane == DECISION for one in turns(cell, 100, *refill)) - 25) <= 1
    work(cell, 1, BULK)
    cell.run(*[s.cancel(c.submitted("a", f"{BULK}{cell.height - 1}.0"))])
    cell.run(c.domain(c.dimension("slots", 1), bulk_weight=9))
    assert s.same_as_followed(cell)


def test_a_grant_given_back_is_given_back_to_its_lane():
    cell = ready(c.dimension("slots", 1))
    grant = s.granted(cell, c.submitted("a", "1", lane=DECISION))
    lane = cell.state.config.domains["d"].lanes[DECISION]
    assert (grant.lane_key, grant.lane_weight, grant.lane_lift) == (0, 25, 0)
    assert lanes.key_of(lane.row) == grant.cost_ns // 25
    cell.run(c.submitted("a", "2", lane=DECISION), s.cancel(c.submitted("a", "1", lane=DECISION)))
    assert lanes.key_of(lane.row) == cell.state.config.domains["d"].row.v + grant.cost_ns // 25


def test_each_lane_of_a_tenant_is_first_in_first_out():
    cell = ready(c.dimension("slots", 1))
    for n in range(30):
        cell.run(c.submitted("a", str(n), lane=LANES[n % 3]))
    first = all_grants(cell)
    grants = first + turns_of(cell, first[0], 29)
    for lane in LANES:
        keys = [one.operation for one in grants if one.lane == lane]
        asked = [c.id_of(c.submitted("a", str(n))) for n in range(30) if LANES[n % 3] == lane]
        assert keys == asked


def turns_of(cell: c.Core, grant: e.GrantIssued, count: int) -> list[e.GrantIssued]:
    found = []
    for _ in range(count):
        cell.run(c.start(grant))
        grant = s.one(e.GrantIssued, cell.run(c.result(grant)))
        found.append(grant)
    return found


def test_an_owner_that_opened_its_tables_knows_what_each_lane_was_served():
    cell = ready(c.dimension("slots", 1), **FLOOR)
    refill = ((INTERACTIVE, "a"), (BULK, "b"))
    turns(cell, 250, *refill)
    cell.take_over()
    grants = turns(cell, 400, *refill)
    assert abs(sum(grant.lane == BULK for grant in grants) - 20) <= 1
    assert s.same_as_followed(cell)
