"""Uncertain reservations: how long they are held, what closes them, and what goes on meanwhile."""

import pytest
from msgspec.structs import replace

from schemas import events as e
from schemas.codes import Code
from schemas.ids import provider_key
from tests.support import cells as s
from tests.support import core as c

HOLD_MS = 100_000
EDGE = [(HOLD_MS - 1, False), (HOLD_MS, True), (HOLD_MS + 1, True)]
UNSAFE = c.submitted("a", "1")
KEYED = c.submitted("a", "1", effect="keyed")
TOKENS, SLOTS = (
    c.dimension("tokens", 900, window_ms=10**7, amount="actual"),
    c.dimension("slots", 9),
)
CLOSES = (e.ReservationSettled, e.ReservationReleased, e.ReservationForfeited)


def cell_of(*dimensions, **over):
    return s.cell(*(dimensions or (TOKENS, SLOTS)), **{"unknown_hold_ms": HOLD_MS, **over})


def used(cell):
    return s.used(cell, "slots"), s.used(cell, "tokens")


# -- the bound ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("after_ms", "over"), EDGE)
def test_at_its_bound_a_hold_is_forfeited_and_an_operator_is_called(after_ms, over):
    cell = cell_of()
    grant = s.unknown(cell, UNSAFE)
    events = cell.run(after_ms=after_ms)
    assert s.said(events) == (["ReservationForfeited", "OperatorActionNeeded"] if over else [])
    for forfeited in c.only(e.ReservationForfeited, events):
        assert (forfeited.tokens_reserved, forfeited.held_ms) == (100, after_ms)
        assert forfeited.cost_ns == grant.cost_ns
    assert [one.reason for one in c.only(e.OperatorActionNeeded, events)] == ["hold_bound"] * over
    assert used(cell) == (1 - over, 100)  # charged in full
    assert s.phase(cell, grant) == ("unknown_closed" if over else "unknown")
    assert s.same_as_followed(cell)


def test_a_hold_that_is_past_its_bound_when_its_lease_ends_is_forfeited_at_once():
    cell = cell_of(unknown_hold_ms=1_000)
    s.started(cell, UNSAFE)
    kinds = s.said(cell.run(after_ms=60_000))
    assert kinds == [
        "LeaseExpired",
        "OutcomeMarkedUnknown",
        "ReservationForfeited",
        "OperatorActionNeeded",
    ]


def test_when_every_slot_is_stranded_all_of_them_return_within_the_bound():
    cell = cell_of(c.dimension("slots", 50), lease_ms=10_000)
    events = cell.run(*(c.submitted("a", str(n)) for n in range(60)))
    cell.run(*(c.start(grant) for grant in s.grants(events)))
    events = cell.run(after_ms=10_000)
    assert (len(c.only(e.OutcomeMarkedUnknown, events)), s.used(cell, "slots")) == (50, 50)
    assert s.grants(cell.run(after_ms=HOLD_MS - 10_001)) == []
    events = cell.settle_down(after_ms=1)
    assert len(c.only(e.ReservationForfeited, events)) == 50
    assert len(c.only(e.OperatorActionNeeded, events)) == 50
    assert len(s.grants(events)) == 10
    assert s.used(cell, "slots") == 10
    assert s.same_as_followed(cell)


def test_after_the_longest_call_the_bound_only_calls_the_operator():
    cell = cell_of(call_ms_max=10_000)
    s.unknown(cell, UNSAFE)
    cell.run(after_ms=50_000)
    assert s.said(cell.run(after_ms=50_000)) == ["OperatorActionNeeded"]
    assert used(cell) == (0, 100)


def test_a_step_of_time_moves_what_is_due_of_a_hold():
    cell = cell_of(call_ms_max=50_000, send_within_ms=1_000)
    s.unknown(cell, UNSAFE)
    s.unknown(cell, c.submitted("a", "2", effect="keyed"))
    cell.now_ms += 10**6
    cell.take_over(step_ms=10**6)
    assert c.only(e.OutcomeReconciled, cell.run(after_ms=50_999)) == []
    assert len(c.only(e.OutcomeReconciled, cell.run(after_ms=1))) == 2
    assert c.only(e.OperatorActionNeeded, cell.run(after_ms=HOLD_MS - 51_001)) == []
    s.one(e.OperatorActionNeeded, cell.run(after_ms=1))
    assert s.same_as_followed(cell)


def test_a_silence_of_the_scheduler_does_not_lengthen_a_hold():
    cell = cell_of()
    s.unknown(cell, UNSAFE)
    cell.silence_ms = 50_000
    cell.run(after_ms=50_000)
    s.one(e.ReservationForfeited, cell.run(after_ms=50_000))


def test_a_hold_outlives_the_memory_of_its_operation():
    cell = cell_of(call_ms_max=50_000, cell_bounds={"guard_horizon_ms": 1_000})
    grant = s.unknown(cell, UNSAFE)
    cell.run(c.reconcile(grant, "abandoned"))
    s.one(e.OperationForgotten, cell.run(after_ms=1_000))
    assert used(cell) == (1, 100)
    assert (
        s.one(e.InputQuarantined, cell.run(c.evidence(grant, "completed"))).code == Code.NOT_FOUND
    )
    again = s.granted(cell, UNSAFE)
    assert (again.epoch, again.incarnation > grant.incarnation) == (1, True)
    assert used(cell) == (2, 200)
    cell.run(c.start(again))
    kinds = s.said(cell.run(after_ms=50_000))
    assert kinds == ["OutcomeReconciled", "ReservationSettled"]
    assert (s.phase(cell, again), used(cell)) == ("started", (1, 200))
    assert s.same_as_followed(cell)


# -- another attempt beside the hold --------------------------------------------------------------


@pytest.mark.parametrize("effect", ["keyed", "read_only"])
def test_work_that_may_be_repeated_is_tried_again_while_the_old_hold_counts(effect):
    cell = cell_of(retry_backoff_ms=500)
    grant = s.started(cell, c.submitted("a", "1", effect=effect))
    marked, scheduled = cell.run(c.result(grant, "unknown"))
    assert isinstance(marked, e.OutcomeMarkedUnknown)
    assert (scheduled.cause, scheduled.not_before_ms) == ("unknown", cell.now_ms + 500)
    assert (s.phase(cell, grant), used(cell)) == ("parked", (1, 100))
    again = s.granted(cell, after_ms=500)
    assert (again.operation, again.epoch, again.attempt) == (grant.operation, 2, 2)
    assert used(cell) == (2, 200)
    assert provider_key(again.operation, again.incarnation) == provider_key(
        grant.operation, grant.incarnation
    )
    assert s.same_as_followed(cell)


def test_with_every_slot_uncertain_no_second_attempt_fits_until_one_returns():
    cell = cell_of(c.dimension("slots", 1), retry_backoff_ms=500)
    grant = s.unknown(cell, KEYED)
    assert s.grants(cell.run(after_ms=500)) == []
    again = s.granted(cell, c.result(grant, "retryable"))
    assert (again.epoch, s.used(cell, "slots")) == (2, 1)


def second(cell):
    """A keyed operation whose first attempt is uncertain, and whose second one runs."""
    first = s.unknown(cell, KEYED)
    again = s.granted(cell, after_ms=1_000)
    cell.run(c.start(again))
    return first, again


CLOSERS = [
    # what is said of the older attempt, the evidence of it, and what its hold is closed by
    (c.result, "ResultRefusedStale", "ReservationSettled", 60),
    (lambda first: c.result(first, "retryable"), "ResultRefusedStale", "ReservationSettled", 60),
    (lambda first: c.result(first, "not_sent"), "ResultRefusedStale", "ReservationReleased", 0),
    (lambda first: c.evidence(first, "completed"), "OutcomeReconciled", "ReservationSettled", 60),
    (lambda first: c.evidence(first, "failed"), "OutcomeReconciled", "ReservationSettled", 60),
    (
        lambda first: c.evidence(first, "not_executed"),
        "OutcomeReconciled",
        "ReservationReleased",
        0,
    ),
    (lambda first: c.usage(first, 60), "OutcomeReconciled", "ReservationSettled", 60),
    (
        lambda first: c.reconcile(first, "failed", epoch=1),
        "OutcomeReconciled",
        "ReservationSettled",
        60,
    ),
]


@pytest.mark.parametrize(("asked", "told", "closed", "tokens"), CLOSERS)
def test_what_is_said_of_an_older_attempt_closes_its_hold_and_leaves_the_newest_alone(
    asked, told, closed, tokens
):
    cell = cell_of()
    first, again = second(cell)
    said = asked(first)
    if hasattr(said, "prompt_tokens"):
        said = replace(said, prompt_tokens=0, output_tokens=60)
    events = cell.run(said)
    assert s.kinds(events) == [told, closed]
    assert {one.epoch for one in events} == {1}
    assert (s.phase(cell, again), used(cell)) == ("started", (1, 100 + tokens))
    assert c.only(CLOSES, cell.run(said)) == []
    assert s.same_as_followed(cell)
    cell.run(c.result(again))
    assert (s.phase(cell, again), s.used(cell, "slots")) == ("succeeded", 0)


def test_an_older_attempt_that_is_still_unknown_says_nothing_new():
    cell = cell_of()
    first, _ = second(cell)
    assert cell.run(c.result(first, "unknown")) == []
    assert used(cell) == (2, 200)


def test_the_hold_of_an_older_attempt_is_forfeited_alone():
    cell = cell_of()
    first, again = second(cell)
    cell.run(c.result(again))
    events = cell.run(after_ms=HOLD_MS - 1_000)
    assert s.one(e.ReservationForfeited, events).epoch == first.epoch
    assert c.only(e.OperatorActionNeeded, events) == []
    assert (s.phase(cell, again), used(cell)) == ("succeeded", (0, 200))


def test_another_life_of_the_member_does_not_speak_for_the_older_attempt():
    cell = cell_of()
    first, _ = second(cell)
    (evidence,) = cell.run(c.result(first, member_epoch="e2"))
    assert (type(evidence), evidence.code) == (e.ResultRefusedStale, Code.EPOCH_SUPERSEDED)
    refused = s.one(e.UsageRefused, cell.run(c.usage(first, 60, member_epoch="e2")))
    assert refused.code == Code.NOT_ITS_MEMBER
    assert used(cell) == (2, 200)


BEFORE_THE_SECOND = [
    (c.result, "succeeded"),
    (lambda first: c.result(first, "terminal"), "failed"),
    (lambda first: c.result(first, "cancelled"), "cancelled"),
    (lambda first: c.result(first, "retryable"), "parked"),
    (lambda first: c.result(first, "throttled"), "parked"),
    (lambda first: c.result(first, "not_sent"), "parked"),
    (lambda first: c.evidence(first, "completed"), "succeeded"),
    (lambda first: c.evidence(first, "failed"), "failed"),
    (lambda first: c.evidence(first, "not_executed"), "parked"),
    (lambda first: c.usage(first, 60), "succeeded"),
    (lambda first: c.reconcile(first, "completed"), "succeeded"),
    (lambda first: c.reconcile(first, "not_executed"), "parked"),
]


@pytest.mark.parametrize(("asked", "phase"), BEFORE_THE_SECOND)
def test_before_the_next_attempt_is_granted_the_unknown_one_is_the_newest(asked, phase):
    cell = cell_of()
    first = s.unknown(cell, KEYED)
    assert s.one(e.OutcomeReconciled, cell.run(asked(first))).epoch == first.epoch
    assert (s.phase(cell, first), s.used(cell, "slots")) == (phase, 0)
    assert c.only(CLOSES, cell.run(asked(first))) == []
    assert s.same_as_followed(cell)
    assert len(s.grants(cell.run(after_ms=1_000))) == (phase == "parked")


def test_after_its_backoff_too_a_late_success_ends_the_work_without_another_call():
    cell = cell_of(c.dimension("slots", 1))
    first = s.unknown(cell, KEYED)
    cell.run(after_ms=1_000)
    assert s.phase(cell, first) == "waiting"
    cell.run(c.result(first))
    assert (s.phase(cell, first), s.used(cell, "slots")) == ("succeeded", 0)
    assert cell.run(after_ms=5_000) == []


def test_only_the_newest_attempt_can_be_abandoned():
    cell = cell_of()
    first, _ = second(cell)
    refused = s.one(e.ManualActionRefused, cell.run(c.reconcile(first, "abandoned", epoch=1)))
    assert refused.code == Code.NOT_UNKNOWN
    assert used(cell) == (2, 200)


def test_each_attempt_that_stays_unknown_counts_and_the_last_one_waits_for_evidence():
    cell = cell_of(attempts_max=3, retry_backoff_ms=100)
    grant = s.unknown(cell, KEYED)
    for epoch in (2, 3):
        grant = s.granted(cell, after_ms=200)
        cell.run(c.start(grant))
        assert s.used(cell, "slots") == epoch
        cell.run(c.result(grant, "unknown"))
    assert (s.phase(cell, grant), used(cell)) == ("unknown", (3, 300))
    events = cell.run(after_ms=HOLD_MS)
    assert [one.epoch for one in c.only(e.ReservationForfeited, events)] == [1, 2, 3]
    assert (s.phase(cell, grant), used(cell)) == ("unknown_closed", (0, 300))


def test_a_late_refusal_by_the_provider_costs_no_tokens_whatever_became_of_the_work():
    cell = cell_of(retry_backoff_ms=1)
    first = s.unknown(cell, KEYED)
    told = c.result(first, "throttled", prompt_tokens=None, output_tokens=None)
    settled = s.one(e.ReservationSettled, cell.run(told))
    assert (settled.tokens_actual, used(cell)) == (0, (0, 0))
    assert s.same_as_followed(cell)
