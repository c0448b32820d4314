"""Charges of a cell: from the grant until the provider can no longer count the call."""

import pytest

from schemas import events as e
from schemas.inputs import TenantBudget
from streams.core.tables import Table
from tests.support import cells as s
from tests.support import core as c

TERM_MS = 121
"""100 ms of clock bound and 21 ms of spread."""


def test_a_grant_counts_without_an_exit_until_its_start():
    cell = s.cell(c.dimension("requests", 1, window_ms=1_000))
    s.granted(cell, c.submitted("a", "1", start_within_ms=10**6))
    cell.run(after_ms=29_999)  # 1 ms before its claim-by
    assert s.used(cell, "requests") == 1


def exit_after_start(cell) -> int:
    """Milliseconds from now until the next charge leaves."""
    (one, *_) = cell.state.config.domains["d"].windows
    return one.next_exit_ms - cell.now_ms


@pytest.mark.parametrize(("before_ms", "used"), [(1, 1), (0, 0), (-1, 0)])
def test_a_started_call_leaves_at_its_exit(before_ms, used):
    cell = s.cell(
        c.dimension("requests", 1, window_ms=100),
        send_within_ms=50,
        transit_ms=7,
        claim_by_ms=10**6,
    )
    grant = s.granted(cell, c.submitted("a", "1"))
    accepted = s.one(e.StartAccepted, cell.run(c.start(grant), after_ms=1_000))
    assert accepted.latest_arrival_ms == cell.now_ms + 57
    assert exit_after_start(cell) == 57 + 100 + 1 + 1
    cell.run(after_ms=exit_after_start(cell) - before_ms)
    assert s.used(cell, "requests") == used


@pytest.mark.parametrize(("before_ms", "used"), [(1, 100), (0, 0), (-1, 0)])
def test_what_counts_at_completion_stays_until_settlement_and_a_window(before_ms, used):
    cell = s.cell(c.dimension("tokens", 100, window_ms=100, instant="completion"))
    grant = s.started(cell, c.submitted("a", "1"))
    cell.run(after_ms=500_000)
    assert s.used(cell, "tokens") == 100
    cell.run(c.result(grant))
    assert exit_after_start(cell) == 100 + 1 + 1
    cell.run(after_ms=exit_after_start(cell) - before_ms)
    assert s.used(cell, "tokens") == used


def test_a_send_report_moves_the_exit_to_when_the_call_was_sent():
    cell = s.cell(c.dimension("requests", 1, window_ms=100), send_within_ms=50, transit_ms=7)
    grant = s.started(cell, c.submitted("a", "1"))
    cell.run(c.sent(grant, 3))
    assert exit_after_start(cell) == 3 + 7 + 100 + 1 + 1


def test_a_takeover_moves_the_exits_of_live_charges_once_and_of_new_ones_not():
    cell = s.cell(c.dimension("requests", 2, window_ms=100), send_within_ms=50)
    s.started(cell, c.submitted("a", "1"))
    before = exit_after_start(cell)
    cell.take_over()
    assert exit_after_start(cell) == before + TERM_MS
    cell.take_over()
    assert exit_after_start(cell) == before + TERM_MS
    s.started(cell, c.submitted("a", "2"))
    assert exit_after_start(cell) == before


def test_a_send_report_after_a_takeover_keeps_the_term():
    cell = s.cell(c.dimension("requests", 2, window_ms=100), send_within_ms=50)
    grant = s.started(cell, c.submitted("a", "1"))
    cell.take_over()
    cell.run(c.sent(grant, 3))
    assert exit_after_start(cell) == 3 + 100 + 1 + 1 + TERM_MS


@pytest.mark.parametrize("clock_bound_ms", [0, 50, 400])
def test_a_settlement_finds_its_charge_when_the_clock_bound_has_changed(clock_bound_ms):
    cell = s.cell(c.dimension("tokens", 500, window_ms=1_000, amount="actual"))
    first = s.started(cell, c.submitted("a", "1"))
    s.started(cell, c.submitted("b", "1"), after_ms=7)
    cell.take_over()
    before = exit_after_start(cell)
    cell.run(s.bounds(clock_bound_ms=clock_bound_ms))
    assert exit_after_start(cell) == before - 100 + clock_bound_ms
    cell.run(c.result(first, prompt_tokens=0, output_tokens=30))
    assert s.used(cell, "tokens") == 130
    cell.run(after_ms=exit_after_start(cell))
    assert s.used(cell, "tokens") == 100


def test_a_time_step_moves_every_live_exit_by_itself():
    cell = s.cell(c.dimension("requests", 2, window_ms=1_000))
    s.started(cell, c.submitted("a", "1"))
    left_ms = exit_after_start(cell)
    cell.now_ms += 5_000
    cell.take_over(step_ms=5_000, reopen=False)
    cell.run(after_ms=left_ms + TERM_MS - 1)
    assert s.used(cell, "requests") == 1
    cell.run(after_ms=1)
    assert s.used(cell, "requests") == 0


@pytest.mark.parametrize("outcome", ["success", "not_sent", "unknown"])
def test_what_has_left_a_window_returns_to_it_by_no_end_of_its_call(outcome):
    cell = s.cell(c.dimension("requests", 1, window_ms=100), send_within_ms=50)
    grant = s.started(cell, c.submitted("a", "1", start_within_ms=1_000))
    cell.run(after_ms=1_000)
    assert s.used(cell, "requests") == 0
    cell.run(c.result(grant, outcome))
    assert s.used(cell, "requests") == 0
    assert s.same_as_followed(cell)


def test_a_cell_is_woken_at_the_next_exit_while_work_waits_and_not_otherwise():
    cell = s.cell(c.dimension("requests", 1, window_ms=1_000))
    grant = s.started(cell, c.submitted("a", "1"))
    exit_at = cell.now_ms + exit_after_start(cell)
    assert cell.state.next_due_ms == cell.now_ms + 60_000  # the end of its lease
    cell.run(c.submitted("a", "2"))
    assert cell.state.next_due_ms == exit_at
    assert s.granted(cell, after_ms=exit_at - cell.now_ms)
    assert grant


def test_the_state_of_a_window_is_bounded_whatever_passes_through_it():
    cell = s.cell(c.dimension("requests", 10**6, window_ms=1_000), send_within_ms=100)
    most = 0
    for n in range(600):
        grant = s.granted(cell, c.submitted("a", str(n)), after_ms=3)
        cell.run(c.start(grant), after_ms=1)
        cell.run(c.result(grant), after_ms=1)
        most = max(most, sum(table is Table.BUCKET for table, _ in cell.rows.values))
    assert most <= 256 + 100 // 4 + 2


def test_a_cell_is_woken_at_an_exit_of_a_tenants_own_window_too():
    budget = TenantBudget(domain="d", dimensions=(c.dimension("requests", 1, window_ms=1_000),))
    cell = s.cell(tenants=[c.tenant("a", budgets=(budget,))])
    s.started(cell, c.submitted("a", "1"))
    cell.run(c.submitted("a", "2"))
    window = cell.state.config.windows["tenant:a", "d", "requests"]
    assert cell.state.next_due_ms == window.next_exit_ms
    assert s.granted(cell, after_ms=window.next_exit_ms - cell.now_ms)
