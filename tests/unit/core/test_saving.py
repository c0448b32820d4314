"""Saving mode: who becomes the saver, what the others leave it, and when it ends."""

import pytest

from schemas import events as e
from schemas.inputs import TenantBudget
from schemas.lanes import BULK, DECISION, INTERACTIVE, LANES
from tests.support import cells as s
from tests.support import core as c
from tests.support.stream import UNPACED, WINDOW_MS, Stream, tokens


def test_without_saving_a_stream_of_small_calls_starves_a_large_head():
    stream = Stream(skips_max=10**6, age_max_ms=10**9)
    stream.warm()
    large = stream.submit("c", 900)
    stream.flow(6 * WINDOW_MS, "a", "b")
    assert stream.granted_ms(large) is None


@pytest.mark.parametrize("bound", [{"skips_max": 8}, {"skips_max": 10**6, "age_max_ms": 3_000}])
def test_a_large_head_that_is_passed_over_saves_and_waits_no_longer_than_a_window(bound):
    stream = Stream(**bound)
    stream.warm()
    large = stream.submit("c", 900)
    stream.until_somebody_saves()
    assert stream.saver == large
    begun_ms = stream.cell.now_ms
    stream.flow(2 * WINDOW_MS, "a", "b")
    (began,) = stream.started()
    assert began.skips >= 8 or began.since_ms <= begun_ms - 3_000
    granted_ms = stream.granted_ms(large)
    assert granted_ms is not None
    bucket_ms = 40
    assert granted_ms - begun_ms <= WINDOW_MS + 1_000 + 100 + bucket_ms + 100
    assert stream.saver is None
    assert s.same_as_followed(stream.cell)


def test_others_use_what_is_above_the_savers_cost_and_what_it_does_not_use():
    stream = Stream(tokens(), c.dimension("requests", 100, window_ms=1_000, **UNPACED), skips_max=4)
    stream.warm().submit("c", 900)
    stream.until_somebody_saves()
    free = stream.submit("d", 0)
    stream.run(after_ms=100)
    assert stream.granted_ms(free) is not None
    told = c.only(e.OperationDeferred, stream.events)
    stream.flow(3_000, "a", "b")
    assert stream.saver is not None
    assert "saver" in {
        one.held_by for one in c.only(e.OperationDeferred, stream.events)[len(told) :]
    }
    assert s.same_as_followed(stream.cell)


def saving(**domain) -> Stream:
    """Tenant c has a head of 900 that saves."""
    stream = Stream(skips_max=4, **domain)
    stream.warm()
    stream.submit("c", 900)
    stream.until_somebody_saves()
    return stream


def test_saving_ends_with_a_cancellation():
    stream = saving()
    stream.run(s.i.CancellationRequested(tenant="c", operation=stream.saver, reason="no"))
    assert stream.saver is None
    assert not stream.cell.state.config.domains["d"].row.skipped


def test_saving_ends_with_the_deadline():
    stream = Stream(skips_max=4)
    stream.warm()
    stream.submit("c", 900, start_within_ms=WINDOW_MS + 2_000)
    stream.flow(WINDOW_MS + 3_000, "a", "b")
    assert stream.started()
    assert stream.saver is None


@pytest.mark.parametrize("scope", ["domain", "tenant", "other tenant", "cell"])
def test_saving_ends_with_a_configuration_of_its_domain_or_tenant(scope):
    stream = saving()
    saver = stream.saver
    asked = {
        "domain": c.domain(tokens(), send_within_ms=100),
        "tenant": c.tenant("c", lanes=LANES),
        "other tenant": c.tenant("a", lanes=LANES, weight=2),
        "cell": s.bounds(),
    }[scope]
    stream.cell.run(asked)
    kept = scope in ("other tenant", "cell")
    assert stream.saver == (saver if kept else None)


def test_a_saver_that_does_not_fit_any_more_is_parked_and_saves_no_longer():
    stream = saving()
    stream.run(c.domain(tokens(), skips_max=4, send_within_ms=100))
    stream.run(c.domain(c.dimension("tokens", 800, window_ms=WINDOW_MS, **UNPACED)))
    assert stream.saver is None
    assert c.only(e.OperationParked, stream.events)


def test_one_saves_at_a_time_and_the_next_is_whoever_waits_longest():
    stream = Stream(skips_max=4)
    stream.warm()
    first, second = stream.submit("c", 600), stream.submit("d", 600)
    stream.flow(6 * WINDOW_MS, "a", "b")
    assert [one.operation for one in stream.started()][:2] == [first, second]
    assert stream.granted_ms(first) < stream.granted_ms(second)
    assert s.same_as_followed(stream.cell)


def test_an_owner_that_opened_its_tables_goes_on_saving():
    stream = saving()
    saver = stream.saver
    stream.cell.take_over()
    assert stream.saver == saver
    stream.flow(2 * WINDOW_MS, "a", "b")
    assert stream.granted_ms(saver) is not None
    assert s.same_as_followed(stream.cell)


def test_a_head_whose_earliest_fit_is_too_far_is_deferred_and_first_in_line_at_the_reset():
    day = tokens(kind="fixed", reset_ms=0, window_ms=100_000)
    stream = Stream(day, skips_max=4, saving_max_ms=5_000)
    reset_ms = (stream.cell.now_ms // 100_000 + 1) * 100_000
    for _ in range(8):
        stream.submit("a", stream.small)
    large = stream.submit("c", 900)
    while stream.cell.now_ms < reset_ms + 3_000:
        stream.flow(1_000, "a", "b", step_ms=1_000)
    far = [one for one in c.only(e.OperationDeferred, stream.events) if one.held_by == "far"]
    assert [one.not_before_ms for one in far] == [reset_ms]
    assert not stream.started()
    assert stream.granted_ms(large) - reset_ms <= 100
    assert s.same_as_followed(stream.cell)


# -- lanes ----------------------------------------------------------------------------------------


def savers_lane(lane: str, streaming: str, **domain) -> Stream:
    stream = Stream(lane=streaming, skips_max=4, **domain)
    stream.warm()
    stream.submit("c", 900, lane=lane)
    stream.flow(4 * WINDOW_MS, "a", "b")
    return stream


@pytest.mark.parametrize(
    ("lane", "streaming"), [(INTERACTIVE, DECISION), (DECISION, DECISION), (INTERACTIVE, BULK)]
)
def test_a_saver_holds_back_its_own_lane_and_lower_ones(lane, streaming):
    stream = savers_lane(lane, streaming)
    assert [one for _, one in stream.grants if one.tenant == "c"]


def test_a_saver_of_bulk_holds_back_every_lane_while_bulk_is_owed_its_floor():
    stream = savers_lane(BULK, INTERACTIVE)
    (large,) = [one for _, one in stream.grants if one.tenant == "c"]
    assert (large.lane, large.by_floor) == (BULK, True)
    assert s.same_as_followed(stream.cell)


# -- own caps -------------------------------------------------------------------------------------


def test_whoever_its_own_cap_holds_back_is_passed_over_by_nobody_else():
    cap = TenantBudget(domain="d", dimensions=(c.dimension("tokens", 60, **UNPACED),))
    tenants = [c.tenant("c", budgets=(cap,)), *(c.tenant(name) for name in "ab")]
    stream = Stream(skips_max=4, tenants=tenants)
    for _ in range(3):
        stream.submit("c", 50)
    stream.flow(3 * WINDOW_MS, "a", "b")
    assert not stream.started()
    assert not any(grant.skipped for _, grant in stream.grants)


def test_in_a_tenants_own_cap_its_small_calls_leave_its_large_one_room():
    cap = TenantBudget(
        domain="d", dimensions=(c.dimension("tokens", 100, window_ms=WINDOW_MS, **UNPACED),)
    )
    tenants = [c.tenant("c", budgets=(cap,), lanes=LANES)]
    stream = Stream(skips_max=4, tenants=tenants, small=10)
    stream.cell.run(c.pool("q"), c.join("n", pool="q", places=100), c.heartbeat("n"))
    stream.flow(WINDOW_MS, "c")
    large = stream.submit("c", 90, pool="q")
    stream.flow(4 * WINDOW_MS, "c")
    assert stream.granted_ms(large) is not None
