"""Leases and time: steps, silences and takeovers end none; a runtime limit asks for an end."""

import pytest

from schemas import events as e
from streams.core.limits import LEASES_ENDED_MAX
from streams.core.opening import open_state
from tests.support import cells as s
from tests.support import core as c

LEASE_MS = 10_000
ONE = c.submitted("a", "1")


def cell_of(**over):
    return s.cell(**{"lease_ms": LEASE_MS, **over})


def ended(events):
    return [one.operation for one in c.only(e.LeaseExpired, events)]


# -- time that no lease pays for ----------------------------------------------------------------


@pytest.mark.parametrize("renewed", [False, True])
@pytest.mark.parametrize(("short_ms", "over"), [(1, 0), (0, 1), (-1, 1)])
def test_a_silence_of_the_scheduler_counts_for_no_lease(renewed, short_ms, over):
    cell = cell_of()
    grant = s.started(cell, ONE)
    if renewed:
        cell.run(c.renewal(grant))
    cell.silence_ms = 50_000
    extended = s.one(e.LeasesExtended, cell.run(after_ms=50_000))
    assert (extended.cell, extended.by_ms) == ("cell", 50_000)
    assert len(ended(cell.run(after_ms=LEASE_MS - short_ms))) == over
    assert s.same_as_followed(cell)


def test_a_silence_extends_nothing_where_nobody_holds_a_lease():
    cell = cell_of()
    s.granted(cell, ONE)
    cell.silence_ms = 50_000
    assert c.only(e.LeasesExtended, cell.run()) == []


def test_a_lease_claimed_after_a_silence_has_its_full_length_and_no_more():
    cell = cell_of()
    s.started(cell, ONE)
    cell.silence_ms = 5_000
    cell.run(after_ms=5_000)
    late = s.started(cell, c.submitted("a", "2"), after_ms=1_000)
    cell.run(after_ms=LEASE_MS - 1)
    assert s.phase(cell, late) == "started"
    assert ended(cell.run(after_ms=1)) == [late.operation]


@pytest.mark.parametrize("reopen", [False, True])
@pytest.mark.parametrize(("short_ms", "over"), [(1, 0), (0, 1)])
def test_a_step_of_time_moves_every_lease_with_it(reopen, short_ms, over):
    cell = cell_of()
    s.started(cell, ONE)
    cell.now_ms += 3_600_000
    cell.take_over(step_ms=3_600_000, reopen=reopen)
    assert len(ended(cell.run(after_ms=LEASE_MS - short_ms))) == over
    assert s.same_as_followed(cell)


def test_a_takeover_turns_no_running_work_unknown():
    cell = cell_of()
    grants = [s.started(cell, c.submitted("a", str(n))) for n in range(3)]
    cell.run(c.renewal(*grants[:2]), after_ms=4_000)
    cell.take_over()
    assert c.only(e.LeaseExpired, cell.run(after_ms=LEASE_MS - 4_001)) == []
    assert ended(cell.run(after_ms=1)) == [grants[2].operation]
    cell.run(c.renewal(*grants[:2]))
    assert {s.phase(cell, one) for one in grants[:2]} == {"started"}
    assert s.same_as_followed(cell)


def test_time_that_stands_still_ends_nothing_twice():
    cell = cell_of()
    s.started(cell, ONE)
    assert len(ended(cell.run(after_ms=LEASE_MS))) == 1
    assert cell.run() == []
    cell.take_over()
    assert cell.run() == []


def test_inputs_come_before_timers_when_timers_must_wait():
    cell = cell_of()
    grant = s.started(cell, ONE)
    assert cell.run(after_ms=LEASE_MS, timers=False) == []
    assert s.kinds(cell.run(c.result(grant), timers=False)) == [
        "ResultRecorded",
        "ReservationSettled",
    ]
    assert ended(cell.run()) == []


# -- runtime limit, deadline and lease are three things -----------------------------------------


@pytest.mark.parametrize(("after_ms", "asked"), [(2_999, 0), (3_000, 1), (3_001, 1)])
def test_an_attempt_is_asked_to_end_at_its_runtime_limit_and_goes_on(after_ms, asked):
    cell = cell_of()
    grant = s.started(cell, c.submitted("a", "1", runtime_ms=3_000))
    signals = c.only(e.CancelSignalled, cell.run(after_ms=after_ms))
    assert [(one.cause, one.epoch) for one in signals] == [("runtime-limit", 1)] * asked
    assert (s.phase(cell, grant), s.used(cell, "slots")) == ("started", 1)
    assert s.same_as_followed(cell)


def test_an_attempt_is_asked_to_end_once():
    cell = cell_of()
    grant = s.started(cell, c.submitted("a", "1", runtime_ms=3_000))
    cell.run(s.cancel(ONE), after_ms=1_000)
    events = cell.run(c.renewal(grant), after_ms=4_000)
    assert c.only(e.CancelSignalled, events) == []
    grant = s.started(cell, c.submitted("a", "2", runtime_ms=3_000))
    s.one(e.CancelSignalled, cell.run(after_ms=3_000))
    assert c.only(e.CancelSignalled, cell.run(s.cancel(c.submitted("a", "2")))) == []
    assert c.only(e.CancelSignalled, cell.run(c.renewal(grant), after_ms=9_000)) == []


def test_without_a_limit_of_its_own_the_tenants_holds():
    cell = cell_of(tenants=[c.tenant("a", runtime_ms_max=2_000)])
    s.started(cell, ONE)
    assert cell.run(after_ms=1_999) == []
    s.one(e.CancelSignalled, cell.run(after_ms=1))


def test_the_runtime_limit_counts_from_the_start_and_not_from_the_claim():
    cell = cell_of()
    grant = s.granted(cell, c.submitted("a", "1", runtime_ms=3_000))
    cell.run(c.claim(grant))
    cell.run(c.start(grant), after_ms=2_000)
    assert c.only(e.CancelSignalled, cell.run(after_ms=2_999)) == []
    s.one(e.CancelSignalled, cell.run(after_ms=1))


def test_a_renewed_lease_does_not_move_the_runtime_limit():
    cell = cell_of()
    grant = s.started(cell, c.submitted("a", "1", runtime_ms=12_000))
    cell.run(c.renewal(grant), after_ms=6_000)
    assert c.only(e.CancelSignalled, cell.run(after_ms=5_999)) == []
    assert s.kinds(cell.run(after_ms=1))[0] == "CancelSignalled"


def test_the_deadline_ends_neither_a_lease_nor_a_started_attempt():
    cell = cell_of()
    grant = s.started(cell, c.submitted("a", "1", start_within_ms=2_000))
    assert cell.run(after_ms=2_000) == []
    cell.run(c.renewal(grant), after_ms=7_000)
    assert s.phase(cell, grant) == "started"


def test_the_end_of_a_lease_asks_nobody_to_end():
    cell = cell_of()
    s.started(cell, c.submitted("a", "1", runtime_ms=LEASE_MS))
    events = cell.run(after_ms=LEASE_MS)
    assert c.only(e.CancelSignalled, events) == []
    s.one(e.OutcomeMarkedUnknown, events)


def test_the_runtime_limit_of_one_attempt_leaves_the_next_one_alone():
    cell = cell_of()
    grant = s.started(cell, c.submitted("a", "1", runtime_ms=3_000))
    again = s.granted(cell, c.result(grant, "not_sent"), after_ms=2_000)
    cell.run(c.start(again))
    assert c.only(e.CancelSignalled, cell.run(after_ms=2_999)) == []
    s.one(e.CancelSignalled, cell.run(after_ms=1))


def test_leases_of_one_life_end_in_parts_and_an_owner_killed_between_them_ends_each_once():
    count = LEASES_ENDED_MAX + 1
    cell = cell_of(cell_bounds={"timers_per_entry_max": 10, "grants_per_entry_max": 100})
    grants = s.grants(cell.run(*(c.submitted("a", str(n)) for n in range(count))))
    cell.run(*map(c.start, grants))
    parts = [ended(cell.run(after_ms=LEASE_MS))]
    cell.take_over()
    parts.append(ended(cell.run()))
    assert [len(part) for part in parts] == [LEASES_ENDED_MAX, 1]
    assert len({*parts[0], *parts[1]}) == count
    assert s.same_as_followed(cell)


def test_memory_made_from_the_rows_has_the_same_leases_and_holds():
    cell = cell_of(call_ms_max=40_000)
    grants = [s.started(cell, c.submitted("a", str(n), effect="keyed")) for n in range(4)]
    cell.run(c.renewal(*grants[:3]), after_ms=1_000)
    cell.run(c.result(grants[2], "unknown"))
    cell.run(c.checkpoint(grants[0], 1))
    opened = open_state(cell.rows)
    assert opened.lives == cell.state.lives
    assert opened.attempts == cell.state.attempts
    assert list(opened.holds.all()) == list(cell.state.holds.all()) != []
    assert opened.credit == cell.state.credit != {}
    assert opened.next_due_ms == cell.state.next_due_ms
