"""Closed without knowing: what still comes in is evidence, and only a person goes on from there."""

import pytest

from schemas import events as e
from schemas.codes import Code
from tests.support import cells as s
from tests.support import core as c

HOLD_MS = 10_000
ONE = c.submitted("a", "1", start_within_ms=10**6)
TOKENS, SLOTS = (
    c.dimension("tokens", 900, window_ms=10**7, amount="actual"),
    c.dimension("slots", 9),
)


def forfeited(cell):
    """Its hold has reached its bound."""
    grant = s.unknown(cell, ONE)
    s.one(e.ReservationForfeited, cell.run(after_ms=HOLD_MS))
    return grant


def abandoned(cell):
    """An operator has given it up; its hold goes on."""
    grant = s.unknown(cell, ONE)
    s.one(e.OperatorActionNeeded, cell.run(c.reconcile(grant, "abandoned")))
    return grant


def cell_of():
    return s.cell(TOKENS, SLOTS, unknown_hold_ms=HOLD_MS)


CLOSED = [(forfeited, 0), (abandoned, 1)]


@pytest.mark.parametrize(("closed", "held"), CLOSED)
@pytest.mark.parametrize("outcome", ["success", "retryable", "not_sent", "throttled", "unknown"])
def test_a_late_result_is_evidence_and_settles_what_is_still_held(closed, held, outcome):
    cell = cell_of()
    grant = closed(cell)
    assert s.used(cell, "slots") == held
    events = cell.run(c.result(grant, outcome))
    ends = {"not_sent": "ReservationReleased"}.get(outcome, "ReservationSettled")
    if held and outcome == "unknown":
        assert events == []
    else:
        assert s.kinds(events) == ["ResultRefusedStale", *[ends] * held]
        assert (events[0].code, events[0].outcome) == (Code.EPOCH_SUPERSEDED, outcome)
        assert s.used(cell, "slots") == 0
    assert s.phase(cell, grant) == "unknown_closed"
    assert s.same_as_followed(cell)


@pytest.mark.parametrize(("closed", "held"), CLOSED)
@pytest.mark.parametrize(("verdict", "phase"), [("completed", "succeeded"), ("failed", "failed")])
def test_an_operator_who_knows_better_ends_it(closed, held, verdict, phase):
    cell = cell_of()
    grant = closed(cell)
    told = c.reconcile(grant, verdict, prompt_tokens=0, output_tokens=40)
    events = cell.run(told)
    follows = "ReservationSettled" if held else "UsageCorrected"
    assert s.kinds(events) == ["OutcomeReconciled", follows]
    assert cell.state.operation(grant.operation).charged_tokens == 40
    assert (events[0].source, events[0].epoch, events[0].author) == ("operator", 1, "op")
    assert (s.phase(cell, grant), s.used(cell, "slots")) == (phase, 0)
    assert s.one(e.ManualActionRefused, cell.run(told)).code == Code.NOT_UNKNOWN
    assert s.same_as_followed(cell)


def test_of_what_is_forfeited_nobody_can_say_that_it_never_ran_or_give_it_up_again():
    cell = cell_of()
    grant = forfeited(cell)
    for verdict in ("not_executed", "abandoned"):
        refused = s.one(e.ManualActionRefused, cell.run(c.reconcile(grant, verdict)))
        assert refused.code == Code.NOT_UNKNOWN
    other = s.one(e.ManualActionRefused, cell.run(c.reconcile(grant, "failed", epoch=2)))
    assert other.code == Code.NOT_UNKNOWN


def test_what_was_given_up_and_never_ran_returns_its_hold_and_stays_closed():
    cell = cell_of()
    grant = abandoned(cell)
    kinds = s.kinds(cell.run(c.reconcile(grant, "not_executed")))
    assert kinds == ["OutcomeReconciled", "ReservationReleased"]
    assert (s.phase(cell, grant), s.used(cell, "slots")) == ("unknown_closed", 0)
    (late,) = cell.run(c.result(grant))
    assert late.code == Code.CONTRADICTS_RECONCILIATION


@pytest.mark.parametrize(("closed", "held"), CLOSED)
def test_a_look_up_after_the_end_settles_what_is_held_and_otherwise_says_nothing(closed, held):
    cell = cell_of()
    grant = closed(cell)
    kinds = s.kinds(cell.run(c.evidence(grant, "completed")))
    assert kinds == ["OutcomeReconciled", "ReservationSettled"] * held
    assert s.phase(cell, grant) == ("succeeded" if held else "unknown_closed")
    assert s.same_as_followed(cell)


def test_a_hold_that_was_given_up_is_forfeited_at_its_bound_and_nobody_is_called_twice():
    cell = cell_of()
    grant = abandoned(cell)
    assert s.said(cell.run(after_ms=HOLD_MS)) == ["ReservationForfeited"]
    assert (s.phase(cell, grant), s.used(cell, "slots")) == ("unknown_closed", 0)


@pytest.mark.parametrize(("closed", "held"), CLOSED)
def test_a_person_may_want_another_attempt_beside_what_is_held(closed, held):
    cell = cell_of()
    grant = closed(cell)
    again = s.one(e.GrantIssued, cell.run(c.retry(grant)))
    assert (again.operation, again.epoch, s.used(cell, "slots")) == (grant.operation, 2, 1 + held)
    cell.run(c.start(again))
    cell.run(c.result(again))
    assert (s.phase(cell, again), s.used(cell, "slots")) == ("succeeded", held)
    assert s.same_as_followed(cell)


CONTRADICTED = [
    lambda grant: c.reconcile(grant, "not_executed"),
    lambda grant: c.evidence(grant, "not_executed"),
]


@pytest.mark.parametrize("said", CONTRADICTED)
@pytest.mark.parametrize(("outcome", "contradicts"), [("success", True), ("not_sent", False)])
def test_a_late_result_that_contradicts_what_was_said_is_flagged(said, outcome, contradicts):
    cell = cell_of()
    grant = s.unknown(cell, ONE)
    again = s.one(e.GrantIssued, cell.run(said(grant)))
    (late,) = cell.run(c.result(grant, outcome))
    code = Code.CONTRADICTS_RECONCILIATION if contradicts else Code.EPOCH_SUPERSEDED
    assert (type(late), late.code) == (e.ResultRefusedStale, code)
    assert (s.phase(cell, again), s.used(cell, "slots")) == ("granted", 1)
