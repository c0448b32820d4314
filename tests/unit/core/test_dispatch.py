"""From a free place to a grant: who is eligible, what fits, and what a pass leaves behind."""

import pytest

from schemas import events as e
from schemas.inputs import TenantBudget
from streams.core import invariants
from tests.support import cells as s
from tests.support import core as c


def keys(events, asked):
    names = {c.id_of(one): one.idempotency_key for one in asked}
    return [names[grant.operation] for grant in s.grants(events)]


def test_a_grant_names_everything_that_its_reservation_took():
    cell = s.cell(c.dimension("tokens", 1_000), c.dimension("slots", 5), hold_initial_ms=500)
    cell.run(c.tenant("a", weight=3))
    grant = s.granted(cell, c.submitted("a", "1", start_within_ms=40_000))
    assert (grant.requests, grant.tokens, grant.slots) == (1, 100, 1)
    assert grant.cost_ns == 100 * 60_000 * 10**6 // 1_000
    assert (grant.weight, grant.lift, grant.config_version, grant.authority_epoch) == (3, 0, 1, 1)
    assert (grant.member, grant.member_epoch, grant.attempt, grant.epoch) == ("m", "e1", 1, 1)
    assert grant.claim_by_ms == cell.now_ms + 30_000


def test_a_claim_by_never_lies_beyond_the_deadline():
    cell = s.cell(claim_by_ms=5_000)
    early, late = c.submitted("a", "1", start_within_ms=4_999), c.submitted("a", "2")
    found = s.grants(cell.run(early, late))
    assert [grant.claim_by_ms - cell.now_ms for grant in found] == [4_999, 5_000]


def test_a_reservation_cites_the_configuration_in_force_when_it_is_made():
    cell = s.cell(places=1)
    first = s.granted(cell, c.submitted("a", "1"))
    cell.run(c.submitted("a", "2"))
    cell.run(c.domain(c.dimension("slots", 100), claim_by_ms=7_000))
    cell.run(c.start(first))
    second = s.granted(cell, c.result(first))
    assert (first.config_version, second.config_version) == (1, 2)


@pytest.mark.parametrize(
    ("windows", "wanted"),
    [
        ((), False),
        ((9_999,), True),
        ((10_000,), False),
        ((60_000, 9_999), True),
    ],
)
def test_a_send_report_is_wanted_when_a_window_is_below_ten_times_send_within(windows, wanted):
    dimensions = [c.dimension(f"requests-{ms}", 9, window_ms=ms) for ms in windows]
    cell = s.cell(c.dimension("slots", 1), *dimensions, send_within_ms=1_000)
    assert s.granted(cell, c.submitted("a", "1")).report_send is wanted


def test_a_domain_may_want_every_send_report_right_after_sending():
    cell = s.cell(c.dimension("tokens", 1_000, window_ms=6_000), send_within_ms=200, transit_ms=50)
    cell.run(
        c.domain(
            c.dimension("tokens", 1_000, window_ms=6_000),
            send_within_ms=200,
            transit_ms=50,
            report_send=True,
        )
    )
    grant = s.started(cell, c.submitted("a", "1"))
    assert grant.report_send
    before = cell.state.config.windows["domain", "d", "tokens"].next_exit_ms
    observed = s.one(e.SendObserved, cell.run(c.sent(grant, 2)))
    assert observed.latest_arrival_ms == cell.now_ms + 2 + 50
    after = cell.state.config.windows["domain", "d", "tokens"].next_exit_ms
    assert before - after in range(198 - 24, 198 + 24)  # to the bucket


# -- what fits, and what binds ------------------------------------------------------------------

BINDING = [
    ("requests", 1, 100, 100),
    ("tokens", 100, 199, 100),
    ("slots", 100, 10**6, 1),
]


@pytest.mark.parametrize(("binding", "requests", "tokens", "slots"), BINDING)
def test_each_dimension_binds_alone_and_the_deferral_names_it(binding, requests, tokens, slots):
    cell = s.cell(
        c.dimension("requests", requests),
        c.dimension("tokens", tokens),
        c.dimension("slots", slots),
    )
    events = cell.run(c.submitted("a", "1"), c.submitted("a", "2"))
    deferred = s.one(e.OperationDeferred, events)
    assert len(s.grants(events)) == 1
    assert (deferred.level, deferred.dimension) == ("domain", binding)


def test_the_tenant_level_binds_alone_and_the_deferral_names_it():
    budget = TenantBudget(domain="d", dimensions=(c.dimension("requests", 1),))
    cell = s.cell(tenants=[c.tenant("a", budgets=(budget,))])
    events = cell.run(c.submitted("a", "1"), c.submitted("a", "2"), c.submitted("b", "1"))
    assert [grant.tenant for grant in s.grants(events)] == ["a", "b"]
    deferred = s.one(e.OperationDeferred, events)
    assert (deferred.tenant, deferred.level, deferred.dimension) == ("a", "tenant", "requests")


def test_a_deferral_tells_the_earliest_instant_if_exits_alone_bring_it():
    cell = s.cell(c.dimension("requests", 1, window_ms=1_000))
    grant = s.granted(cell, c.submitted("a", "1"))
    unstarted = s.one(e.OperationDeferred, cell.run(c.submitted("a", "2")))
    assert unstarted.not_before_ms is None
    cell.run(c.start(grant), after_ms=1_000)
    deferred = s.one(e.OperationDeferred, cell.run(c.submitted("a", "3"), after_ms=1_000))
    assert deferred.not_before_ms == cell.state.config.domains["d"].windows[0].next_exit_ms


@pytest.mark.parametrize(("after_ms", "recorded"), [(1_999, 0), (2_000, 1), (2_001, 1)])
def test_at_most_one_deferral_a_domain_is_recorded_in_its_span(after_ms, recorded):
    cell = s.cell(c.dimension("slots", 1), cell_bounds={"deferral_sample_ms": 2_000})
    cell.run(c.submitted("a", "1"), c.submitted("a", "2"))
    events = cell.run(c.submitted("a", "3"), after_ms=after_ms)
    assert len(c.only(e.OperationDeferred, events)) == recorded


def test_a_head_that_does_not_fit_lets_another_tenants_pass():
    cell = s.cell(c.dimension("tokens", 150))
    asked = [c.submitted("a", "big"), c.submitted("a", "huge", output_tokens_max=120)]
    asked += [c.submitted("b", "small", output_tokens_max=10)]
    assert keys(cell.run(*asked), asked) == ["big", "small"]


def test_a_head_in_one_pool_does_not_hold_up_the_tenants_head_in_another():
    cell = s.cell(c.dimension("tokens", 150))
    cell.run(c.pool("q"), c.join("mq", pool="q", places=9), c.heartbeat("mq"))
    asked = [c.submitted("a", "first"), c.submitted("a", "too big now")]
    asked += [c.submitted("a", "small", pool="q", output_tokens_max=10)]
    assert keys(cell.run(*asked), asked) == ["first", "small"]
    assert list(invariants.broken(cell.state)) == []


def test_of_a_tenants_heads_in_two_pools_the_older_goes_first():
    cell = s.cell(c.dimension("slots", 1))
    cell.run(c.pool("q"), c.join("mq", pool="q"), c.heartbeat("mq"))
    asked = [
        c.submitted("a", "1", pool="q"),
        c.submitted("a", "2"),
        c.submitted("a", "3", pool="q"),
    ]
    assert keys(cell.run(*asked), asked) == ["1"]


def test_fifo_passes_over_a_head_whose_pool_is_full_and_takes_the_oldest_other_one():
    cell = s.cell(c.dimension("slots", 2), policy="fifo")
    cell.run(c.pool("q"))
    asked = [c.submitted("a", "1", pool="q"), c.submitted("b", "2"), c.submitted("a", "3")]
    assert keys(cell.run(*asked), asked) == ["2", "3"]


def test_no_other_head_is_asked_when_requests_or_slots_are_gone():
    cell = s.cell(c.dimension("slots", 1))
    cell.run(c.submitted("a", "0"))
    cell.run(*[c.submitted(f"t{n:02}", "1") for n in range(50)])
    assert list(invariants.broken(cell.state)) == []


def test_inside_a_queue_grants_follow_admission_also_after_a_return():
    cell = s.cell(places=1, claim_by_ms=1_000)
    asked = [c.submitted("a", str(n)) for n in range(3)]
    assert keys(cell.run(*asked), asked) == ["0"]
    again = cell.run(after_ms=1_000)
    assert keys(again, asked) == ["0"]
    assert s.grants(again)[0].epoch == 2


# -- deadlines at dispatch ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("after_ms", "outcome"),
    [(29_999, "GrantIssued"), (30_000, "OperationExpired"), (30_001, "OperationExpired")],
)
def test_a_deadline_is_half_open(after_ms, outcome):
    cell = s.cell(places=1)
    first = s.started(cell, c.submitted("a", "1"))
    cell.run(c.submitted("a", "2", start_within_ms=30_000))
    assert outcome in s.kinds(cell.run(c.result(first), after_ms=after_ms))


def test_work_past_its_deadline_is_not_granted_even_before_its_timer_fires():
    cell = s.cell(places=1)
    first = s.started(cell, c.submitted("a", "1"))
    cell.run(c.submitted("a", "2", start_within_ms=30_000), c.submitted("a", "3"))
    events = cell.run(c.result(first), after_ms=30_000, timers=False)
    assert s.one(e.OperationExpired, events).reason == "deadline"
    assert s.grants(events)[0].deadline_ms > cell.now_ms


def test_many_deadlines_due_at_once_end_in_bounded_entries_and_none_is_granted():
    cell = s.cell(places=1, cell_bounds={"timers_per_entry_max": 7, "grants_per_entry_max": 3})
    first = s.started(cell, c.submitted("a", "0"))
    asked = [c.submitted("a", str(n), start_within_ms=1_000) for n in range(1, 101)]
    cell.run(*asked)
    expired = []
    events = cell.run(c.result(first), after_ms=1_000)
    while events:
        assert len(events) <= 2 + 7 + 3
        assert s.grants(events) == []
        expired += c.only(e.OperationExpired, events)
        events = cell.run()
    assert sorted(one.operation for one in expired) == sorted(c.id_of(one) for one in asked)


@pytest.mark.parametrize(("within_ms", "early"), [(2_000, True), (2_100, True), (2_200, False)])
def test_work_that_can_only_fit_at_or_after_its_deadline_expires_early(within_ms, early):
    cell = s.cell(c.dimension("requests", 1, window_ms=1_000), send_within_ms=1_100)
    s.started(cell, c.submitted("a", "1"))
    exit_ms = cell.state.config.domains["d"].windows[0].next_exit_ms - cell.now_ms
    assert 2_100 < exit_ms < 2_200
    events = cell.run(c.submitted("a", "2", start_within_ms=within_ms))
    assert [one.reason for one in c.only(e.OperationExpired, events)] == ["not_before"] * early


def test_work_that_fits_exactly_at_its_deadline_expires_early_and_a_millisecond_before_waits():
    for spare_ms, kind in ((0, e.OperationExpired), (1, e.OperationDeferred)):
        cell = s.cell(c.dimension("requests", 1, window_ms=1_000))
        s.started(cell, c.submitted("a", "1"))
        earliest = cell.state.config.domains["d"].windows[0].next_exit_ms
        events = cell.run(c.submitted("a", "2", deadline_ms=earliest + spare_ms))
        assert s.one(kind, events)


# -- the bound of a pass ------------------------------------------------------------------------


@pytest.mark.parametrize(("waiting", "first", "more"), [(3, 3, True), (2, 2, False), (4, 3, True)])
def test_a_pass_stops_at_its_bound_and_the_next_entry_goes_on_at_once(waiting, first, more):
    cell = s.cell(cell_bounds={"grants_per_entry_max": 3})
    events = cell.run(*[c.submitted("a", str(n)) for n in range(waiting)])
    assert (len(s.grants(events)), cell.state.more) == (first, more)
    assert len(s.grants(cell.run())) == waiting - first
    assert not cell.state.more


def test_an_idle_entry_decides_nothing():
    cell = s.cell(c.dimension("slots", 1))
    cell.run(c.submitted("a", "1"), c.submitted("a", "2"))
    assert cell.run() == []
    assert not cell.state.more


def test_one_hundred_reservers_contend_for_the_last_unit_and_exactly_one_gets_it():
    for last in (c.dimension("requests", 1), c.dimension("tokens", 199), c.dimension("slots", 1)):
        cell = s.cell(last)
        events = cell.run(*[c.submitted(f"t{n:03}", "1") for n in range(100)])
        assert [grant.tenant for grant in s.grants(events)] == ["t000"], last.name


def test_places_are_never_oversold_with_a_long_job_and_fifty_waiting():
    cell = s.cell(places=1)
    running = s.started(cell, c.submitted("a", "long"))
    for n in range(50):
        assert s.grants(cell.run(c.submitted("a", str(n)), after_ms=100)) == []
    assert len(s.grants(cell.run(c.result(running)))) == 1
    assert len(cell.state.attempts) == 1
