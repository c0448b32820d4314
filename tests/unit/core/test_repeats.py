"""The same key again: a repeat, a conflict, or, beyond the guard's horizon, a new life."""

import pytest
from msgspec.structs import replace

from schemas import events as e
from schemas.codes import Code
from schemas.digest import SEMANTIC_FIELDS
from tests.support import cells as s
from tests.support import core as c

ANSWERS = (e.OperationAdmitted, e.OperationRejected, e.DuplicateObserved, e.SubmissionConflicted)


def answer(cell, asked, after_ms=0):
    return s.one(ANSWERS, cell.run(asked, after_ms=after_ms))


def test_one_hundred_repeats_give_one_admission_and_no_other_change():
    cell = s.cell(c.dimension("slots", 0))
    asked = c.submitted("a", "1")
    events = cell.run(*[replace(asked, start_within_ms=1_000 + n) for n in range(100)])
    assert len(c.only(e.OperationAdmitted, events)) == 1
    assert {one.state for one in c.only(e.DuplicateObserved, events)} == {"waiting"}
    assert cell.state.cell.waiting == 1


OTHER_VALUES = {
    "lane": "bulk",
    "tier": "fast",
    "connection": "c",
    "effect": "keyed",
    "prompt_tokens": 11,
    "output_tokens_max": 91,
    "payload_bytes": 1,
    "payload_ref": "r",
    "content_sha256": "f",
    "domain": "e",
    "turns_max": 3,
    "tools": ("search",),
    "parent": b"\x01" * 16,
}


@pytest.mark.parametrize("field", [f for f in SEMANTIC_FIELDS if f != "pool"])
def test_the_same_key_with_another_payload_is_a_conflict_and_changes_nothing(field):
    cell = s.cell(c.dimension("slots", 0))
    asked = c.submitted("a", "1")
    cell.run(asked)
    before = cell.state.operation(c.id_of(asked))
    (event,) = cell.run(replace(asked, **{field: OTHER_VALUES[field]}))
    assert (type(event), event.operation) == (e.SubmissionConflicted, c.id_of(asked))
    assert cell.state.operation(c.id_of(asked)) == before


@pytest.mark.parametrize("field", ["tenant", "user", "pool"])
def test_the_same_key_in_another_scope_is_another_operation(field):
    cell = s.cell(c.dimension("slots", 0))
    cell.run(c.pool("other"), c.submitted("a", "1"))
    found = answer(cell, c.submitted(**{"tenant": "a", "key": "1", field: "other"}))
    assert isinstance(found, e.OperationAdmitted)


def test_a_refusal_for_good_is_replayed_and_a_temporary_one_is_decided_anew():
    cell = s.cell(c.dimension("tokens", 100), tenants=[c.tenant("a", waiting_count_max=0)])
    large, full = c.submitted("a", "1", output_tokens_max=200), c.submitted("a", "2")
    assert answer(cell, large).code == Code.NEVER_FITS
    for _ in range(2):
        again = answer(cell, large)
        assert (type(again), again.state, again.code) == (
            e.DuplicateObserved,
            "rejected",
            Code.NEVER_FITS,
        )
        assert answer(cell, full).code == Code.TENANT_QUEUE_FULL
    assert isinstance(answer(cell, replace(large, prompt_tokens=9)), e.SubmissionConflicted)
    cell.run(c.tenant("a", waiting_count_max=1))
    assert isinstance(answer(cell, full), e.OperationAdmitted)


# -- the horizon --------------------------------------------------------------------------------

HORIZON = [
    (9_999, e.DuplicateObserved),
    (10_000, e.OperationAdmitted),
    (10_001, e.OperationAdmitted),
]


@pytest.mark.parametrize("refused", [False, True])
@pytest.mark.parametrize(("after_ms", "kind"), HORIZON)
def test_a_key_is_guarded_up_to_its_horizon_and_fresh_from_then_on(after_ms, kind, refused):
    cell = s.cell(c.dimension("tokens", 100), cell_bounds={"guard_horizon_ms": 10_000})
    asked = c.submitted("a", "1")
    if refused:
        cell.run(c.domain(c.dimension("tokens", 99)), asked)
        cell.run(c.domain(c.dimension("tokens", 100)))
    else:
        cell.run(c.result(s.started(cell, asked)))
    first = cell.state.operation(c.id_of(asked)).incarnation
    found = answer(cell, asked, after_ms)
    assert isinstance(found, kind)
    if kind is e.OperationAdmitted:
        assert (found.reuse, found.incarnation > first) == (True, True)
    assert cell.follower().digest() == cell.rows.digest()


def test_what_is_forgotten_leaves_no_row_and_its_results_are_refused():
    cell = s.cell(cell_bounds={"guard_horizon_ms": 10_000})
    asked = c.submitted("a", "1")
    grant = s.started(cell, asked)
    cell.run(c.result(grant))
    s.one(e.OperationForgotten, cell.run(after_ms=10_000))
    assert cell.state.operation(c.id_of(asked)) is None
    again = s.started(cell, asked)
    assert again.incarnation > grant.incarnation
    (evidence,) = cell.run(c.result(grant))
    assert (type(evidence), evidence.code) == (e.ResultRefusedStale, Code.EPOCH_SUPERSEDED)
    cell.run(after_ms=10_000)
    assert cell.state.operation(c.id_of(asked)).phase == "started"


def test_a_refusal_that_does_not_bind_leaves_what_is_known_of_the_key():
    cell = s.cell(cell_bounds={"guard_horizon_ms": 10_000})
    asked = c.submitted("a", "1")
    cell.run(c.result(s.started(cell, asked)))
    cell.run(c.tenant("a", waiting_count_max=0))
    found = answer(cell, asked, after_ms=10_000)
    assert found.code == Code.TENANT_QUEUE_FULL
    assert cell.state.operation(c.id_of(asked)) is None
