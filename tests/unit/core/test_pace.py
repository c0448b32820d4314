"""The pace of a window: a burst at once, the rest at the window's own rate, and when it opens."""

from functools import partial

import pytest

from schemas import events as e
from schemas.inputs import TenantBudget
from streams.core.budgets import check
from streams.core.costs import Cost
from streams.core.due import Due
from streams.core.exits import Aging
from streams.core.outcomes import Binds, Fits, Paced
from streams.core.pace import Rate, opens_ms
from streams.core.rows import KINDS
from streams.core.tables import Overlay
from streams.core.windows import Window
from tests.support import cells as s
from tests.support import core as c

SECOND_NS = 10**9
ONE = Cost(1, 100, 1)
TEN_A_SECOND = partial(c.dimension, "requests", 10, window_ms=1_000)


def window(name="tokens", limit=100, scope="domain", **over):
    rows, config = Overlay(c.MemoryRows(), KINDS), c.dimension(name, limit, **over)
    return Window(rows, scope, "d", config, Due(), Aging())


# -- arithmetic ---------------------------------------------------------------------------------

DRAINED = [
    # before, change, after; in milliseconds from now, for 100 a second
    (0, 10, 100),
    (-5_000, 10, 100),  # idleness saves nothing up
    (300, 10, 400),
    (300, -10, 200),
    (50, -10, 0),  # what time has forgiven already is not given back
    (950, 10, 1_000),  # after a whole span all that counts now has left
    (0, 10**9, 1_000),
]


@pytest.mark.parametrize(("before", "change", "after"), DRAINED)
def test_what_is_taken_drains_at_the_rate_of_its_window(before, change, after):
    now_ms, rate = 10_000, Rate(100, SECOND_NS)
    drained = rate.drained_ns((now_ms + before) * 10**6, change, now_ms=now_ms)
    assert drained == (now_ms + after) * 10**6


def test_a_part_of_a_nanosecond_counts_as_one_and_comes_back_as_one():
    rate = Rate(3, SECOND_NS)
    taken = rate.drained_ns(0, 1, now_ms=0)
    assert taken == 333_333_334
    assert rate.drained_ns(taken, -1, now_ms=0) == 0


@pytest.mark.parametrize(("burst_ms", "opens"), [(50, 51), (100, 1), (101, 0)])
def test_a_pace_opens_as_soon_as_less_than_the_burst_is_left(burst_ms, opens):
    assert opens_ms(100 * 10**6, burst_ms * 10**6) == opens


# -- what fits ----------------------------------------------------------------------------------


def test_what_has_room_and_no_pace_fits():
    assert check([window(), window("slots", 1)], ONE, now_ms=0) == Fits()


def test_the_first_dimension_without_room_binds_before_any_pace():
    paced = window("requests", 10, pace_percent=1)
    paced.charge(1, 0)
    assert check([paced, window(limit=99)], ONE, now_ms=0) == Binds("domain", "tokens")


def test_of_two_paces_the_one_that_opens_last_is_named():
    soon, late = window("requests", 10, pace_percent=1), window(limit=200, pace_percent=1)
    own = window("requests", 20, scope="tenant:a", pace_percent=1)
    for one, amount in ((soon, 1), (late, 100), (own, 1)):
        one.charge(amount, 0)
    held = check([soon, late, own], ONE, now_ms=0)
    assert held == Paced(late.opens_ms, "domain", "tokens")
    assert check([soon, own], ONE, now_ms=soon.opens_ms - 1) == Paced(
        soon.opens_ms, "domain", "requests"
    )
    assert check([soon, own], ONE, now_ms=soon.opens_ms) == Fits()


@pytest.mark.parametrize(("kept", "fits"), [(0, True), (60, True), (61, False)])
def test_what_must_stay_free_beside_the_cost_is_kept(kept, fits):
    one = window()
    one.add(20)
    found = check([one], Cost(1, 20, 1), now_ms=0, keep=lambda _: kept)
    assert found == (Fits() if fits else Binds("domain", "tokens"))


def test_a_dimension_of_which_a_call_takes_nothing_never_binds():
    overdrawn, late = window(limit=10), window(pace_percent=1)
    overdrawn.add(50)
    late.charge(100, 0)
    nothing = Cost(1, 0, 1)
    assert check([overdrawn, late], nothing, now_ms=0, keep=lambda _: 9) == Fits()
    assert check([overdrawn], ONE, now_ms=0) == Binds("domain", "tokens")


def test_a_run_and_a_call_of_no_tokens_go_while_tokens_are_overdrawn():
    cell = s.cell(c.dimension("tokens", 100), c.dimension("slots", 9))
    grant = s.started(cell, c.submitted("a", "1"))
    cell.run(c.result(grant, prompt_tokens=500, output_tokens=0))
    assert s.used(cell, "tokens") > 100
    nothing = {"prompt_tokens": 0, "output_tokens_max": 0}
    assert s.granted(cell, c.submitted("a", "none", **nothing))
    run = c.submitted("a", "run", prompt_tokens=0, output_tokens_max=None, turns_max=2)
    assert s.granted(cell, run)
    assert not s.grants(cell.run(c.submitted("a", "some", prompt_tokens=1, output_tokens_max=0)))


# -- in a cell ----------------------------------------------------------------------------------


def jobs(count, tenant="a", **over):
    return [c.submitted(tenant, f"{tenant}{n}", **over) for n in range(count)]


def test_a_burst_goes_at_once_and_the_rest_at_the_rate_of_the_window():
    cell = s.cell(TEN_A_SECOND(pace_percent=30), send_within_ms=1)
    times = [cell.now_ms] * len(s.grants(cell.run(*jobs(9))))
    first_ms = cell.now_ms
    while len(times) < 9:
        events = cell.run(after_ms=cell.state.next_due_ms - cell.now_ms)
        times += [cell.now_ms] * len(s.grants(events))
    assert [at - first_ms for at in times] == [0, 0, 0, 1, 101, 201, 301, 401, 501]
    assert s.same_as_followed(cell)


def test_a_domain_whose_head_only_a_pace_holds_back_wakes_exactly_when_it_opens():
    cell = s.cell(TEN_A_SECOND(pace_percent=1), send_within_ms=1)
    deferral = s.one(e.OperationDeferred, cell.run(*jobs(2)))
    opens = cell.now_ms + 100 - 10 + 1
    assert (deferral.level, deferral.dimension) == ("domain", "requests")
    assert deferral.held_by == "pace"
    assert deferral.not_before_ms == cell.state.next_due_ms == opens
    assert not s.grants(cell.run(after_ms=opens - cell.now_ms - 1))
    assert s.granted(cell, after_ms=1)


def test_nobody_wakes_for_a_pace_that_nothing_waits_for():
    cell = s.cell(TEN_A_SECOND(pace_percent=1), send_within_ms=1)
    grant = s.granted(cell, *jobs(1))
    assert cell.state.next_due_ms == grant.claim_by_ms


def test_a_head_larger_than_the_burst_passes_and_then_the_window_owes():
    cell = s.cell(c.dimension("tokens", 1_000, window_ms=1_000, pace_percent=10))
    assert s.granted(cell, c.submitted("a", "large", prompt_tokens=510))
    assert not s.grants(cell.run(*jobs(1, prompt_tokens=0)))
    assert cell.state.next_due_ms == cell.now_ms + 600 - 100 + 1


def test_the_pace_of_a_tenants_own_window_holds_back_that_tenant_alone():
    budget = TenantBudget(domain="d", dimensions=(TEN_A_SECOND(pace_percent=1),))
    cell = s.cell(tenants=[c.tenant("a", budgets=(budget,))])
    events = cell.run(*jobs(3), *jobs(3, "b"))
    assert [grant.tenant for grant in s.grants(events)] == ["a", "b", "b", "b"]
    assert cell.state.next_due_ms == cell.now_ms + 91


def test_work_that_the_pace_lets_through_only_after_its_deadline_expires_early():
    cell = s.cell(TEN_A_SECOND(pace_percent=1), send_within_ms=1)
    s.granted(cell, *jobs(1))
    expired = s.one(e.OperationExpired, cell.run(c.submitted("b", "late", start_within_ms=91)))
    assert expired.reason == "not_before"
    assert not c.only(e.OperationExpired, cell.run(c.submitted("b", "just", start_within_ms=92)))


@pytest.mark.parametrize("started", [False, True])
def test_a_reservation_that_ends_unused_gives_its_pace_back(started):
    cell = s.cell(TEN_A_SECOND(pace_percent=1), send_within_ms=500)
    grant = s.granted(cell, *jobs(2))
    if started:
        cell.run(c.start(grant))
        cell.run(c.result(grant, "not_sent"), s.cancel(jobs(1)[0]))
    events = cell.run(*([] if started else [s.cancel(jobs(1)[0])]))
    assert s.grants([one for _, made in cell.entries[-2:] for one in map(_event, made)] + events)


def _event(decided):
    return decided.event


def test_settlement_corrects_the_pace_by_what_was_really_used():
    cell = s.cell(c.dimension("tokens", 1_000, window_ms=1_000, amount="actual", pace_percent=1))
    window = cell.state.config.windows["domain", "d", "tokens"]
    grant = s.started(cell, c.submitted("a", "1"))
    opens = cell.now_ms + 100 - 10 + 1
    assert window.opens_ms == opens
    cell.run(c.result(grant, prompt_tokens=40, output_tokens=0))
    assert window.opens_ms == opens - 60


def test_an_overdraft_and_late_usage_owe_the_pace_too():
    cell = s.cell(c.dimension("tokens", 1_000, window_ms=1_000, pace_percent=1))
    window = cell.state.config.windows["domain", "d", "tokens"]
    grant = s.started(cell, c.submitted("a", "1"))
    cell.run(c.result(grant, prompt_tokens=300, output_tokens=0))
    assert window.opens_ms == cell.now_ms + 300 - 10 + 1
    cell.run(c.usage(grant, 500))
    assert window.opens_ms == cell.now_ms + 500 - 10 + 1


@pytest.mark.parametrize("step_ms", [None, 5_000])
def test_a_pace_lives_over_takeovers_and_moves_with_a_step_of_time(step_ms):
    cell = s.cell(TEN_A_SECOND(pace_percent=1), send_within_ms=1, claim_by_ms=10**6)
    s.granted(cell, *jobs(2))
    cell.now_ms += step_ms or 0
    cell.take_over(step_ms=step_ms)
    assert not s.grants(cell.run(after_ms=90))
    assert s.granted(cell, after_ms=1)
    assert s.same_as_followed(cell)


PERCENTS = [(0, False), (-1, False), (101, False), (1, True), (100, True), (None, True)]


@pytest.mark.parametrize(("percent", "active"), PERCENTS)
def test_a_pace_is_a_part_of_the_limit(percent, active):
    cell = s.cell()
    events = cell.run(c.domain(TEN_A_SECOND(pace_percent=percent), c.dimension("slots", 1)))
    assert len(c.only(e.ConfigActivated, events)) == active


DEFAULTS = [
    # kind, window_ms, whether the second of ten must wait
    ("sliding", 60_000, True),
    ("sliding", 600_000, True),
    ("sliding", 600_001, False),
    ("fixed", 1_000, True),
]


@pytest.mark.parametrize(("kind", "window_ms", "paced"), DEFAULTS)
def test_windows_of_up_to_ten_minutes_let_a_tenth_through_at_once_and_longer_ones_all(
    kind, window_ms, paced
):
    reset_ms = 0 if kind == "fixed" else None
    window = {"kind": kind, "window_ms": window_ms, "reset_ms": reset_ms, "pace_percent": None}
    cell = s.cell(c.dimension("requests", 10, **window))
    assert len(s.grants(cell.run(*jobs(10)))) == (1 if paced else 10)


def test_slots_have_no_pace():
    cell = s.cell()
    refused = s.one(e.ConfigRefused, cell.run(c.domain(c.dimension("slots", 9, pace_percent=10))))
    assert "no pace_percent" in refused.detail


@pytest.mark.parametrize(("over", "granted"), [({"limit": 9}, 1), ({"pace_percent": 2}, 0)])
def test_another_rate_begins_with_an_empty_pace(over, granted):
    cell = s.cell(TEN_A_SECOND(pace_percent=1), send_within_ms=1)
    s.granted(cell, *jobs(2))
    other = c.dimension("requests", **{"limit": 10, "window_ms": 1_000, "pace_percent": 1, **over})
    assert len(s.grants(cell.run(c.domain(other)))) == granted
    assert s.same_as_followed(cell)
