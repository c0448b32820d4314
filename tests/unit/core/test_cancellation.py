"""Cancellation in every state, twice, early, and by whoever has no right to it."""

import pytest
from msgspec.structs import replace

from schemas import events as e
from schemas.codes import Code
from streams.core.limits import EARLY_CANCELS_MAX
from tests.support import cells as s
from tests.support import core as c

ONE = c.submitted("a", "1")


def waiting(cell):
    cell.run(c.domain(c.dimension("slots", 0)), ONE)


def parked(cell):
    cell.run(c.domain(c.dimension("slots", 0), c.dimension("tokens", 100)), ONE)
    cell.run(c.domain(c.dimension("slots", 1), c.dimension("tokens", 99)))


def granted(cell):
    s.granted(cell, ONE)


def started(cell):
    s.started(cell, ONE)


def claimed(cell):
    cell.run(c.claim(s.granted(cell, ONE)))


def unknown(cell):
    s.unknown(cell, ONE)


def backing_off(cell):
    cell.run(c.result(s.started(cell, ONE), "retryable"))


def waiting_beside_its_hold(cell):
    cell.run(c.domain(c.dimension("slots", 1), retry_backoff_ms=1))
    s.unknown(cell, replace(ONE, effect="keyed"))
    cell.run(after_ms=1)


def dead(cell):
    cell.run(c.domain(c.dimension("slots", 1), attempts_max=1))
    backing_off(cell)


def unknown_closed(cell):
    cell.run(c.reconcile(s.unknown(cell, ONE), "abandoned"))


def succeeded(cell):
    cell.run(c.result(s.started(cell, ONE)))


def cancelled(cell):
    waiting(cell)
    cell.run(s.cancel(ONE))


def expired(cell):
    waiting(cell)
    cell.run(after_ms=ONE.start_within_ms)


def rejected(cell):
    cell.run(c.domain(c.dimension("tokens", 99)), ONE)


STATES = [
    (waiting, ["OperationCancelled"], "cancelled"),
    (parked, ["OperationCancelled"], "cancelled"),
    (granted, ["GrantRevoked", "ReservationReleased", "OperationCancelled"], "cancelled"),
    (claimed, ["GrantRevoked", "ReservationReleased", "OperationCancelled"], "cancelled"),
    (started, ["CancelSignalled"], "started"),
    (unknown, ["CancelSignalled"], "unknown"),
    (backing_off, ["OperationCancelled"], "cancelled"),
    (waiting_beside_its_hold, ["OperationCancelled"], "cancelled"),
    (dead, [], "dead"),
    (unknown_closed, [], "unknown_closed"),
    (succeeded, [], "succeeded"),
    (cancelled, [], "cancelled"),
    (expired, [], "expired"),
    (rejected, [], "rejected"),
]


@pytest.mark.parametrize(("state", "events", "phase"), STATES)
def test_in_each_state_the_first_cancellation_acts_and_the_second_changes_nothing(
    state, events, phase
):
    cell = s.cell(c.dimension("slots", 1))
    state(cell)
    assert s.kinds(cell.run(s.cancel(ONE, reason="first"))) == events
    assert cell.state.operation(c.id_of(ONE)).phase == phase
    assert cell.run(s.cancel(ONE, reason="second"), s.cancel(ONE)) == []
    assert cell.follower().digest() == cell.rows.digest()


@pytest.mark.parametrize("state", [waiting, granted])
def test_cancelled_work_leaves_no_residue(state):
    cell = s.cell(c.dimension("slots", 1))
    state(cell)
    cell.run(s.cancel(ONE))
    assert (cell.state.cell.waiting, cell.state.attempts, s.used(cell, "slots")) == (0, {}, 0)


def test_started_work_keeps_its_slot_until_its_end_is_known():
    cell = s.cell(c.dimension("slots", 1))
    grant = s.started(cell, ONE)
    signal = s.one(e.CancelSignalled, cell.run(s.cancel(ONE, reason="stop it")))
    assert (signal.cause, signal.epoch) == ("stop it", grant.epoch)
    cell.run(after_ms=120_000)  # twice its lease
    assert s.used(cell, "slots") == 1


ENDS = [
    ("success", "succeeded"),
    ("cancelled", "cancelled"),
    ("terminal", "cancelled"),
    ("policy_denied", "cancelled"),
    ("not_sent", "cancelled"),
    ("retryable", "cancelled"),
    ("throttled", "cancelled"),
]


@pytest.mark.parametrize(("outcome", "phase"), ENDS)
def test_signalled_work_ends_as_cancelled_unless_it_succeeded(outcome, phase):
    cell = s.cell(c.dimension("slots", 1))
    grant = s.started(cell, ONE)
    cell.run(s.cancel(ONE))
    cell.run(c.result(grant, outcome))
    assert cell.state.operation(c.id_of(ONE)).phase == phase
    assert (cell.state.cell.waiting, s.used(cell, "slots")) == (0, 0)


KNOWN_LATER = [
    # what becomes known of an unknown attempt that was to be cancelled
    (lambda grant: c.evidence(grant, "not_executed"), "cancelled"),
    (lambda grant: c.evidence(grant, "failed"), "cancelled"),
    (lambda grant: c.evidence(grant, "completed"), "succeeded"),
    (lambda grant: c.reconcile(grant, "not_executed"), "cancelled"),
    (lambda grant: c.reconcile(grant, "abandoned"), "unknown_closed"),
    (lambda grant: c.usage(grant, 50), "succeeded"),
    (lambda grant: c.result(grant, "not_sent"), "cancelled"),
    (lambda grant: c.result(grant, "retryable"), "cancelled"),
    (lambda grant: c.result(grant, "terminal"), "cancelled"),
    (c.result, "succeeded"),
]


@pytest.mark.parametrize(("asked", "phase"), KNOWN_LATER)
def test_an_unknown_attempt_that_was_to_be_cancelled_ends_as_it_turns_out(asked, phase):
    cell = s.cell(c.dimension("slots", 1))
    grant = s.unknown(cell, ONE)
    cell.run(s.cancel(ONE))
    cell.run(asked(grant))
    assert s.phase(cell, grant) == phase
    assert s.used(cell, "slots") == (phase == "unknown_closed")
    assert s.grants(cell.run(after_ms=10**5)) == []
    assert s.same_as_followed(cell)


@pytest.mark.parametrize("end", ["reported", "lease"])
def test_signalled_work_that_becomes_unknown_is_not_tried_again(end):
    cell = s.cell(c.dimension("slots", 9))
    grant = s.started(cell, replace(ONE, effect="keyed"))
    cell.run(s.cancel(ONE))
    cell.run(*([c.result(grant, "unknown")] if end == "reported" else []), after_ms=60_000)
    assert (s.phase(cell, grant), s.grants(cell.run(after_ms=10**5))) == ("unknown", [])


def test_cancelled_work_keeps_the_hold_of_its_unknown_attempt_to_its_bound():
    cell = s.cell(c.dimension("slots", 9), unknown_hold_ms=10_000)
    grant = s.unknown(cell, replace(ONE, effect="keyed"))
    cell.run(s.cancel(ONE))
    assert (s.phase(cell, grant), s.used(cell, "slots")) == ("cancelled", 1)
    assert s.said(cell.run(after_ms=10_000)) == ["ReservationForfeited"]
    assert (s.phase(cell, grant), s.used(cell, "slots")) == ("cancelled", 0)
    assert s.same_as_followed(cell)


def test_a_start_after_an_ordered_cancellation_is_refused_and_before_it_gets_a_signal():
    cell = s.cell()
    grant = s.granted(cell, ONE)
    events = cell.run(s.cancel(ONE), c.start(grant))
    assert s.one(e.StartRefused, events).code == Code.EPOCH_SUPERSEDED
    cell = s.cell()
    grant = s.granted(cell, ONE)
    assert s.kinds(cell.run(c.start(grant), s.cancel(ONE))) == [
        "LeaseClaimed",
        "StartAccepted",
        "CancelSignalled",
    ]


def test_nobody_cancels_the_work_of_another_tenant():
    cell = s.cell()
    started(cell)
    (event,) = cell.run(s.cancel(ONE, tenant="b"))
    assert (type(event), event.code) == (e.InputQuarantined, Code.NOT_FOUND)


@pytest.mark.parametrize(
    "over", [{"tenant": ""}, {"tenant": "a\x00"}, {"tenant": "x" * 201}, {"reason": "é" * 1_025}]
)
def test_a_cancellation_that_cannot_be_kept_is_quarantined(over):
    cell = s.cell()
    started(cell)
    (event,) = cell.run(s.cancel(ONE, **over))
    assert (type(event), event.code) == (e.InputQuarantined, Code.INVALID_FIELD)


# -- ahead of the submission --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("after_ms", "takes_effect"), [(4_999, True), (5_000, True), (5_001, False)]
)
def test_an_early_cancellation_is_remembered_for_its_span(after_ms, takes_effect):
    # Inputs come before timers: at the very instant the submission still finds it.
    cell = s.cell(cell_bounds={"early_cancel_ms": 5_000})
    s.one(e.CancellationRemembered, cell.run(s.cancel(ONE)))
    if after_ms > 5_000:
        s.one(e.CancellationForgotten, cell.run(after_ms=5_000))
        after_ms -= 5_000
    events = cell.run(ONE, after_ms=after_ms)
    assert s.kinds(events)[0] == "OperationAdmitted"
    assert len(c.only(e.OperationCancelled, events)) == takes_effect
    assert len(s.grants(events)) == (not takes_effect)
    assert cell.state.cell.early_cancels == 0


def test_an_early_cancellation_is_kept_once_with_its_first_reason():
    cell = s.cell()
    cell.run(s.cancel(ONE, reason="first"))
    assert cell.run(s.cancel(ONE, reason="second")) == []
    assert s.one(e.OperationCancelled, cell.run(ONE)).reason == "first"


def test_an_early_cancellation_by_another_tenant_is_in_nobodys_way():
    cell = s.cell()
    cell.run(s.cancel(ONE, tenant="b"))
    assert s.granted(cell, ONE)
    other = c.submitted("a", "2")
    cell.run(s.cancel(other, tenant="b"), s.cancel(other))
    s.one(e.OperationCancelled, cell.run(other))
    assert cell.state.cell.early_cancels == 2
    forgotten = c.only(e.CancellationForgotten, cell.run(after_ms=60_000))
    assert [one.tenant for one in forgotten] == ["b", "b"]
    assert cell.state.cell.early_cancels == 0


def test_a_refused_submission_does_not_use_up_its_early_cancellation():
    cell = s.cell(tenants=[c.tenant("a", waiting_count_max=0)])
    cell.run(s.cancel(ONE))
    s.one(e.OperationRejected, cell.run(ONE))
    s.one(e.OperationCancelled, cell.run(c.tenant("a"), ONE))


@pytest.mark.parametrize(
    ("held", "kind"), [(-1, e.CancellationRemembered), (0, e.InputQuarantined)]
)
def test_early_cancellations_are_bounded(held, kind):
    cell = s.cell()
    cell.state.cell.early_cancels = EARLY_CANCELS_MAX + held
    s.one(kind, cell.run(s.cancel(ONE)))
