"""Runs: a tool loop holds no provider budget; each of its turns is an operation of its own."""

import pytest
from msgspec.structs import replace

from schemas import events as e
from schemas import inputs as i
from schemas.codes import Code
from schemas.digest import payload_digest
from streams.core.limits import TOOLS_MAX
from tests.support import cells as s
from tests.support import core as c

RUN = c.submitted("a", "run", prompt_tokens=0, output_tokens_max=None, turns_max=3, tools=("web",))
SLOTS = c.dimension("slots", 1)


def run_of(cell, asked=RUN):
    return s.started(cell, asked)


def turn(run, number=1, **over):
    return c.submitted(run.tenant, f"turn {number}", **{"parent": run.operation, **over})


def code_of(cell, asked):
    return s.one(e.OperationRejected, cell.run(asked)).code


def test_a_run_holds_a_place_and_nothing_of_the_providers_budget():
    cell = s.cell(SLOTS, c.dimension("tokens", 100), c.dimension("requests", 1), places=1)
    grant = run_of(cell)
    assert (grant.requests, grant.tokens, grant.slots) == (0, 0, 0)
    assert (grant.turns_max, grant.tools) == (3, ("web",))
    assert [s.used(cell, name) for name in ("slots", "tokens", "requests")] == [0, 0, 0]
    assert cell.state.pools.free_places("m") == 0
    cell.run(c.result(grant, prompt_tokens=None, output_tokens=None))
    assert (s.phase(cell, grant), cell.state.pools.free_places("m")) == ("succeeded", 1)
    assert s.same_as_followed(cell)


def test_runs_and_their_turns_do_not_deadlock_on_one_slot():
    cell = s.cell(SLOTS, places=10)
    runs = s.grants(cell.run(*(replace(RUN, idempotency_key=str(n)) for n in range(5))))
    cell.run(*map(c.start, runs))
    turns = [turn(run, f"{n} of {key}") for key, run in enumerate(runs) for n in range(3)]
    waiting = s.grants(cell.run(*turns))
    done = 0
    while waiting:
        assert (len(waiting), s.used(cell, "slots")) == (1, 1)
        cell.run(c.start(waiting[0]))
        waiting, done = s.grants(cell.run(c.result(waiting[0]))), done + 1
    assert done == len(turns)
    cell.run(*map(c.result, runs))
    assert {s.phase(cell, one) for one in runs} == {"succeeded"}
    assert s.same_as_followed(cell)


@pytest.mark.parametrize("slots", [0, 1])
def test_a_run_is_granted_though_no_slot_is_free(slots):
    cell = s.cell(c.dimension("slots", slots))
    cell.run(c.submitted("b", "busy"), c.submitted("c", "waits"))
    assert s.granted(cell, RUN).operation == c.id_of(RUN)


def test_a_turn_is_charged_to_its_tenant_and_names_its_run():
    cell = s.cell()
    run = run_of(cell)
    grant = s.granted(cell, turn(run, runtime_ms=5_000))
    assert (grant.tenant, grant.parent, grant.runtime_ms) == ("a", run.operation, 5_000)
    assert s.used(cell, "slots") == 1


def test_one_turn_more_than_was_admitted_is_refused_and_a_repeat_is_not_one_more():
    cell = s.cell()
    run = run_of(cell)
    for number in (1, 2, 2, 3, 3):
        cell.run(turn(run, number))
    assert code_of(cell, turn(run, 4)) == Code.TURNS_EXHAUSTED
    s.one(e.DuplicateObserved, cell.run(turn(run, 3)))
    assert s.same_as_followed(cell)


def test_turns_are_counted_over_all_attempts_of_the_run():
    cell = s.cell(SLOTS)
    run = run_of(cell, replace(RUN, effect="keyed"))
    cell.run(turn(run, 1), turn(run, 2))
    cell.run(c.checkpoint(run, 1))
    cell.run(c.result(run, "unknown"))
    again = next(one for one in s.grants(cell.run(after_ms=1_000)) if one.turns_max)
    assert (again.operation, again.checkpoint) == (run.operation, 1)
    cell.run(c.start(again))
    cell.run(turn(again, 3))
    assert code_of(cell, turn(again, 4)) == Code.TURNS_EXHAUSTED


def waiting(cell):
    cell.run(c.domain(c.dimension("slots", 9)), c.pool("far"), replace(RUN, pool="far"))
    return s.one(e.OperationAdmitted, [one.event for one in cell.entries[-1][1]])


def granted(cell):
    return s.granted(cell, RUN)


def claimed(cell):
    grant = granted(cell)
    cell.run(c.claim(grant))
    return grant


def succeeded(cell):
    grant = run_of(cell)
    cell.run(c.result(grant))
    return grant


def unknown(cell):
    return s.unknown(cell, RUN)


@pytest.mark.parametrize("state", [waiting, granted, claimed, succeeded, unknown])
def test_a_turn_needs_a_run_that_is_started(state):
    cell = s.cell()
    parent = state(cell)
    assert code_of(cell, turn(parent)) == Code.PARENT_NOT_RUNNING


def test_a_turn_that_came_too_early_may_come_again():
    cell = s.cell()
    run = s.granted(cell, RUN)
    assert code_of(cell, turn(run)) == Code.PARENT_NOT_RUNNING
    cell.run(c.start(run))
    assert s.granted(cell, turn(run)).parent == run.operation


def test_a_turn_has_a_run_of_its_own_tenant_as_its_parent():
    cell = s.cell()
    run, call = run_of(cell), s.started(cell, c.submitted("a", "a call"))
    for asked in (
        replace(turn(run), tenant="b"),
        turn(run, parent=b"\x07" * 16),
        turn(call),
    ):
        assert code_of(cell, asked) == Code.PARENT_NOT_RUNNING
    assert code_of(cell, replace(RUN, idempotency_key="x", parent=run.operation)) == (
        Code.INVALID_FIELD
    )


OUTSIDE = [
    ({"turns_max": 0}, Code.INVALID_FIELD),
    ({"turns_max": -1}, Code.INVALID_FIELD),
    ({"turns_max": 5}, None),
    ({"turns_max": 6}, Code.TURNS_TOO_MANY),
    ({"runtime_ms": 0}, Code.INVALID_FIELD),
    ({"runtime_ms": -1}, Code.INVALID_FIELD),
    ({"runtime_ms": 8_000}, None),
    ({"runtime_ms": 8_001}, Code.RUNTIME_TOO_LONG),
    ({"prompt_tokens": 1}, Code.INVALID_FIELD),
    ({"output_tokens_max": 1}, Code.INVALID_FIELD),
    ({"output_tokens_max": 0}, None),
    ({"tools": tuple(f"tool{n}" for n in range(TOOLS_MAX))}, None),
    ({"tools": tuple(f"tool{n}" for n in range(TOOLS_MAX + 1))}, Code.INVALID_FIELD),
    ({"tools": ("",)}, Code.INVALID_FIELD),
    ({"turns_max": None, "output_tokens_max": 1}, Code.INVALID_FIELD),  # tools, but no run
    ({"turns_max": None, "tools": ()}, Code.OUTPUT_CEILING_MISSING),
]


@pytest.mark.parametrize(("over", "code"), OUTSIDE)
def test_a_run_stays_within_its_tenants_bounds(over, code):
    cell = s.cell(tenants=[c.tenant("a", turns_max=5, runtime_ms_max=8_000)])
    asked = replace(RUN, **over)
    if code is None:
        assert s.granted(cell, asked).operation == c.id_of(asked)
    else:
        assert code_of(cell, asked) == code
        s.one(e.DuplicateObserved, cell.run(asked))


def test_what_makes_a_run_is_a_part_of_what_its_key_stands_for():
    changed = [replace(RUN, turns_max=4), replace(RUN, tools=()), replace(RUN, parent=b"\x01" * 16)]
    assert len({payload_digest(one) for one in [RUN, *changed]}) == 4


def test_a_run_that_waits_is_counted_over_reopening_and_cancellation():
    cell = s.cell(SLOTS)
    cell.run(c.pool("far"), *(replace(RUN, pool="far", idempotency_key=str(n)) for n in range(3)))
    cell.take_over()
    assert cell.state.config.domains["d"].row.runs == 3
    cell.run(s.cancel(replace(RUN, pool="far", idempotency_key="0")))
    assert cell.state.config.domains["d"].row.runs == 2
    assert s.same_as_followed(cell)


def test_a_cancelled_run_leaves_its_turns_to_end_by_themselves():
    cell = s.cell()
    run = run_of(cell)
    child = s.started(cell, turn(run))
    s.one(e.CancelSignalled, cell.run(s.cancel(RUN)))
    cell.run(c.result(run, "cancelled"))
    assert (s.phase(cell, run), s.phase(cell, child)) == ("cancelled", "started")
    cell.run(c.result(child))
    assert s.phase(cell, child) == "succeeded"


def _runs(limit):
    return c.dimension("runs", limit, kind="concurrency", window_ms=None)


def test_the_active_runs_of_a_tenant_are_bounded_and_nothing_else_is_held_up():
    own = [c.tenant("a", budgets=(i.TenantBudget(domain="d", dimensions=(_runs(1),)),))]
    cell = s.cell(c.dimension("slots", 9), places=10, tenants=own)
    first, second = (replace(RUN, idempotency_key=key) for key in ("1", "2"))
    events = cell.settle_down(first, second, c.submitted("a", "call"), replace(RUN, tenant="b"))
    granted = s.grants(events)
    assert {one.operation for one in granted} == {
        c.id_of(first),
        c.id_of(replace(RUN, tenant="b")),
    }, "the tenant's own queue is first in, first out"
    deferred = s.one(e.OperationDeferred, events)
    assert (deferred.level, deferred.dimension) == ("tenant", "runs")
    (run,) = (one for one in granted if one.tenant == "a")
    cell.run(c.start(run))
    after = s.grants(cell.settle_down(c.result(run, prompt_tokens=None, output_tokens=None)))
    assert {one.operation for one in after} == {c.id_of(second), c.id_of(c.submitted("a", "call"))}
    assert s.same_as_followed(cell)


def test_a_domain_may_bound_its_runs_while_calls_go_on():
    cell = s.cell(c.dimension("slots", 9), _runs(0), places=10)
    (call,) = s.grants(cell.settle_down(RUN, c.submitted("b", "call")))
    assert call.tenant == "b"
