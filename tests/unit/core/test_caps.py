"""How much may wait: by count and by bytes, for a tenant, a domain and the cell."""

import pytest

from schemas import events as e
from schemas import inputs as i
from schemas.codes import Code
from tests.support import cells as s
from tests.support import core as c

UNBOUNDED = 10**12
CAPS = [
    ("tenant", Code.TENANT_QUEUE_FULL),
    ("domain", Code.DOMAIN_QUEUE_FULL),
    ("cell", Code.CELL_QUEUE_FULL),
]


def capped(scope, **cap):
    """A cell in which nothing runs and only this scope has this cap."""
    return s.cell(
        c.dimension("slots", 0),
        tenants=[c.tenant("a", **cap)] if scope == "tenant" else [],
        cell_bounds=cap if scope == "cell" else {},
        **(cap if scope == "domain" else {}),
    )


def refusals(events):
    return [one.code for one in c.only(e.OperationRejected, events)]


@pytest.mark.parametrize(("scope", "code"), CAPS)
def test_a_count_is_filled_exactly_and_the_next_one_is_refused_for_now(scope, code):
    cell = capped(scope, waiting_count_max=3)
    asked = [c.submitted("a", str(n)) for n in range(4)]
    assert refusals(cell.run(*asked[:3])) == []
    (rejected,) = cell.run(asked[3])
    assert (rejected.code, rejected.binds_key) == (code, False)


@pytest.mark.parametrize(("scope", "code"), CAPS)
@pytest.mark.parametrize(("last", "fits"), [(39, True), (40, True), (41, False)])
def test_bytes_are_filled_exactly_and_one_more_is_refused_for_now(scope, code, last, fits):
    cell = capped(scope, waiting_bytes_max=100)
    cell.run(c.submitted("a", "1", payload_bytes=60))
    assert refusals(cell.run(c.submitted("a", "2", payload_bytes=last))) == [code] * (not fits)
    assert cell.state.cell.waiting_bytes == 60 + last * fits


@pytest.mark.parametrize(("scope", "code"), CAPS)
def test_a_cap_of_zero_admits_nothing(scope, code):
    assert refusals(capped(scope, waiting_count_max=0).run(c.submitted("a", "1"))) == [code]
    assert refusals(capped(scope, waiting_bytes_max=0).run(c.submitted("a", "1"))) == []


def test_the_smallest_scope_that_is_full_is_named():
    cap = {"waiting_count_max": 0}
    cell = s.cell(tenants=[c.tenant("a", **cap)], cell_bounds=cap, **cap)
    events = cell.run(c.submitted("a", "1"), c.submitted("b", "1"))
    assert refusals(events) == [Code.TENANT_QUEUE_FULL, Code.DOMAIN_QUEUE_FULL]


def test_a_tenant_at_its_cap_leaves_the_rest_of_the_cells_to_others():
    cell = s.cell(
        c.dimension("slots", 0),
        tenants=[c.tenant("a", waiting_count_max=3)],
        cell_bounds={"waiting_count_max": 5},
    )
    events = cell.run(*[c.submitted(t, str(n)) for t in "aabc" for n in range(3)])
    admitted = [one.tenant for one in c.only(e.OperationAdmitted, events)]
    assert admitted == ["a", "a", "a", "b", "b"]


@pytest.mark.parametrize("reopen", [True, False])
def test_one_hundred_producers_race_for_one_place_and_the_first_taken_wins(reopen):
    cell = s.cell(c.dimension("slots", 0), waiting_count_max=1)
    cell.take_over(reopen=reopen)
    events = cell.run(*[c.submitted(f"t{n:03}", "1") for n in range(100)])
    assert [one.tenant for one in c.only(e.OperationAdmitted, events)] == ["t000"]
    assert refusals(events) == [Code.DOMAIN_QUEUE_FULL] * 99


def leaves_by_grant(cell, asked):
    cell.run(c.domain(c.dimension("slots", 1), waiting_count_max=1))


def leaves_by_cancellation(cell, asked):
    cell.run(s.cancel(asked))


def leaves_by_deadline(cell, asked):
    cell.run(after_ms=asked.start_within_ms)


@pytest.mark.parametrize("leaves", [leaves_by_grant, leaves_by_cancellation, leaves_by_deadline])
def test_whoever_was_refused_is_admitted_with_the_same_key_after_one_has_left(leaves):
    cell = s.cell(c.dimension("slots", 0), waiting_count_max=1)
    first, second = (c.submitted("a", n, payload_bytes=7) for n in "12")
    assert refusals(cell.run(first, second)) == [Code.DOMAIN_QUEUE_FULL]
    leaves(cell, first)
    assert (cell.state.cell.waiting, cell.state.cell.waiting_bytes) == (0, 0)
    s.one(e.OperationAdmitted, cell.run(second))


def test_parked_work_counts_as_waiting():
    cell = s.cell(c.dimension("tokens", 100), c.dimension("slots", 1), waiting_count_max=1)
    cell.run(c.domain(c.dimension("tokens", 0), c.dimension("slots", 1), waiting_count_max=1))
    cell.run(c.submitted("a", "1"))
    cell.run(c.domain(c.dimension("tokens", 9), c.dimension("slots", 1), waiting_count_max=1))
    assert cell.state.operation(c.id_of(c.submitted("a", "1"))).phase == "parked"
    small = c.submitted("a", "2", prompt_tokens=0, output_tokens_max=1)
    assert refusals(cell.run(small)) == [Code.DOMAIN_QUEUE_FULL]


def test_work_that_comes_back_is_never_refused_even_when_its_place_was_taken():
    cell = s.cell(c.dimension("slots", 1), waiting_count_max=1, claim_by_ms=1_000)
    s.granted(cell, c.submitted("a", "1"))
    cell.run(c.submitted("a", "2"))
    cell.run(c.domain(c.dimension("slots", 0), waiting_count_max=1), after_ms=1_000)
    assert cell.state.cell.waiting == 2
    assert refusals(cell.run(c.submitted("a", "3"))) == [Code.DOMAIN_QUEUE_FULL]


def test_running_work_takes_no_waiting_room():
    cell = s.cell(waiting_count_max=1)
    for n in range(5):
        s.started(cell, c.submitted("a", str(n), payload_bytes=10))
    assert (cell.state.cell.waiting, cell.state.cell.waiting_bytes) == (0, 0)
    assert cell.state.cell.waiting_bytes < UNBOUNDED


@pytest.mark.parametrize(("scope", "code"), CAPS)
def test_a_full_queue_says_when_its_head_can_leave(scope, code):
    cap = {"waiting_count_max": 1}
    cell = s.cell(
        c.dimension("tokens", 100),
        tenants=[c.tenant("a", **cap)] if scope == "tenant" else [],
        cell_bounds=cap if scope == "cell" else {},
        **(cap if scope == "domain" else {}),
    )
    s.started(cell, c.submitted("a", "1"))
    cell.run(c.submitted("a", "2", start_within_ms=100_000))
    (full,) = c.only(e.OperationRejected, cell.run(c.submitted("a", "3")))
    assert full.code == code
    exit_ms = cell.state.config.windows["domain", "d", "tokens"].next_exit_ms
    assert full.retry_at_ms == exit_ms > cell.now_ms + 60_000
    again = cell.run(c.submitted("a", "3"), after_ms=full.retry_at_ms - cell.now_ms - 1)
    assert refusals(again) == [code]
    assert len(s.grants(cell.run(after_ms=1))) == 1
    assert refusals(cell.run(c.submitted("a", "3"))) == []


def slot_taken(cell):
    s.started(cell, c.submitted("a", "1"))
    cell.run(c.submitted("a", "2"))


def place_missing(cell):
    cell.run(i.LeaveAnnounced(member="m", member_epoch="e1"), c.submitted("a", "2"))


def another_domain_waits(cell):
    cell.run(c.domain(c.dimension("slots", 0), name="e"))
    cell.run(c.submitted("a", "2", domain="e"))


def another_domain_waits_and_this_one_has_worked(cell):
    cell.run(c.result(s.started(cell, c.submitted("a", "1"))))
    another_domain_waits(cell)


UNKNOWN = [
    slot_taken,
    place_missing,
    another_domain_waits,
    another_domain_waits_and_this_one_has_worked,
]


@pytest.mark.parametrize("why", UNKNOWN)
def test_where_no_window_makes_room_the_instant_is_unknown(why):
    cell = s.cell(c.dimension("slots", 1), cell_bounds={"waiting_count_max": 1})
    why(cell)
    (full,) = c.only(e.OperationRejected, cell.run(c.submitted("a", "3")))
    assert (full.code, full.retry_at_ms) == (Code.CELL_QUEUE_FULL, None)
