"""Unknown outcomes: what makes one, what it holds, and how each source alone resolves it."""

import pytest

from schemas import events as e
from schemas.codes import Code
from tests.support import cells as s
from tests.support import core as c

ONE = c.submitted("a", "1")
HOLD_MS = 900_000
TOKENS, SLOTS = (
    c.dimension("tokens", 900, window_ms=10**7, amount="actual"),
    c.dimension("slots", 9),
)


def cell_of(**over):
    return s.cell(TOKENS, SLOTS, **over)


def used(cell):
    return s.used(cell, "slots"), s.used(cell, "tokens")


def reported(cell, asked=ONE):
    return s.unknown(cell, asked)


def lapsed(cell, asked=ONE):
    grant = s.started(cell, asked)
    s.one(e.OutcomeMarkedUnknown, cell.run(after_ms=60_000))
    return grant


CAUSES = [(reported, "reported"), (lapsed, "lease_expired")]


@pytest.mark.parametrize(("make", "cause"), CAUSES)
def test_an_unknown_outcome_keeps_slot_and_tokens_and_frees_the_place(make, cause):
    cell = cell_of(places=1)
    started_ms = cell.now_ms
    grant = make(cell)
    (marked,) = c.only(e.OutcomeMarkedUnknown, [one.event for one in cell.entries[-1][1]])
    assert (marked.cause, marked.domain) == (cause, "d")
    assert marked.hold_until_ms == started_ms + HOLD_MS
    assert (s.phase(cell, grant), used(cell)) == ("unknown", (1, 100))
    assert cell.state.pools.free_places("m") == 1
    assert s.same_as_followed(cell)


def test_what_the_member_says_of_an_ambiguous_end_is_kept_if_it_is_short():
    cell = cell_of()
    for number, error in enumerate(["reset after send", "x" * 10_000]):
        grant = s.started(cell, c.submitted("a", str(number)))
        marked = s.one(e.OutcomeMarkedUnknown, cell.run(c.result(grant, "unknown", error=error)))
        assert marked.error == (error if number == 0 else None)


def test_an_unknown_outcome_may_bring_the_send_delay():
    cell = cell_of()
    grant = s.started(cell, ONE)
    kinds = s.kinds(cell.run(c.result(grant, "unknown", send_delay_ms=3)))
    assert kinds == ["SendObserved", "OutcomeMarkedUnknown"]


def test_an_unknown_outcome_told_again_changes_nothing():
    cell = cell_of()
    grant = reported(cell)
    assert cell.run(*[c.result(grant, "unknown")] * 3) == []


def test_unsafe_work_is_never_started_again_without_evidence():
    cell = cell_of()
    grant = lapsed(cell)
    events = [cell.run(after_ms=100_000) for _ in range(20)]
    assert s.grants([one for some in events for one in some]) == []
    assert cell.state.operation(grant.operation).starts == 1


# -- each source alone ---------------------------------------------------------------------------

LATE = [
    # outcome, then the phase, what follows, and the tokens that are charged
    ("success", "succeeded", "ReservationSettled", 100),
    ("terminal", "failed", "ReservationSettled", 100),
    ("policy_denied", "failed", "ReservationSettled", 100),
    ("cancelled", "cancelled", "ReservationSettled", 100),
    ("not_sent", "granted", "ReservationReleased", 100),
    ("retryable", "parked", "ReservationSettled", 100),
    ("throttled", "waiting", "ReservationSettled", 100),
]


@pytest.mark.parametrize(("make", "_cause"), CAUSES)
@pytest.mark.parametrize(("outcome", "phase", "closed", "tokens"), LATE)
def test_a_late_result_of_the_newest_attempt_resolves_it(
    make, _cause, outcome, phase, closed, tokens
):
    cell = cell_of()
    grant = make(cell)
    events = cell.run(c.result(grant, outcome), after_ms=5_000)
    assert s.kinds(events)[:3] == ["OutcomeReconciled", "ResultRecorded", closed]
    assert (events[0].source, events[0].verdict) == ("late_result", outcome)
    assert events[0].confidence == "locally_measured"
    assert (s.phase(cell, grant), s.used(cell, "tokens")) == (phase, tokens)
    assert s.used(cell, "slots") == (phase == "granted")
    assert cell.run(c.result(grant, outcome)) == []
    assert s.same_as_followed(cell)


@pytest.mark.parametrize(("make", "_cause"), CAUSES)
@pytest.mark.parametrize(("verdict", "phase"), [("completed", "succeeded"), ("failed", "failed")])
def test_a_look_up_that_finds_the_call_ended_settles_it(make, _cause, verdict, phase):
    cell = cell_of()
    grant = make(cell)
    found = c.evidence(grant, verdict, prompt_tokens=10, output_tokens=50, result_ref="there")
    reconciled, settled = cell.run(found)
    assert (reconciled.source, reconciled.verdict) == ("provider_lookup", verdict)
    assert (reconciled.confidence, reconciled.evidence) == ("provider_reported", "call 7")
    assert (reconciled.result_ref, settled.tokens_actual) == ("there", 60)
    assert (s.phase(cell, grant), used(cell)) == (phase, (0, 60))
    assert cell.run(found, c.evidence(grant, "failed", evidence="other")) == []
    assert s.same_as_followed(cell)


def test_a_look_up_without_figures_settles_what_was_reserved():
    cell = cell_of()
    grant = reported(cell)
    (_, settled) = cell.run(c.evidence(grant, "completed"))
    assert (settled.tokens_actual, used(cell)) == (None, (0, 100))


def test_a_look_up_that_finds_no_call_returns_everything_and_the_work_waits_again():
    cell = cell_of()
    grant = reported(cell)
    cell.run(c.domain(TOKENS, c.dimension("slots", 0)))
    reconciled, released, *_ = cell.run(c.evidence(grant, "not_executed"))
    assert (reconciled.verdict, released.reason) == ("not_executed", "not_executed")
    assert (s.phase(cell, grant), used(cell)) == ("waiting", (0, 0))
    assert cell.run(c.evidence(grant, "not_executed")) == []
    again = s.granted(cell, c.domain(TOKENS, SLOTS))
    assert (again.operation, again.epoch, again.attempt) == (grant.operation, 2, 2)
    assert s.same_as_followed(cell)


def test_a_usage_report_shows_that_the_call_ran():
    cell = cell_of()
    grant = reported(cell)
    reconciled, settled = cell.run(c.usage(grant, 60))
    assert (reconciled.source, reconciled.verdict) == ("usage_report", "completed")
    assert (reconciled.evidence, settled.tokens_actual) == ("u1", 60)
    assert (s.phase(cell, grant), used(cell)) == ("succeeded", (0, 60))
    assert cell.run(c.usage(grant, 60)) == []
    assert s.same_as_followed(cell)


@pytest.mark.parametrize(("after_ms", "proved"), [(-1, False), (0, True), (1, True)])
def test_the_longest_call_of_the_provider_gives_the_slot_back_and_no_outcome(after_ms, proved):
    cell = cell_of(call_ms_max=100_000, send_within_ms=1_000, transit_ms=50)
    grant = reported(cell)
    events = cell.run(after_ms=101_050 + after_ms)
    assert s.said(events) == (["OutcomeReconciled", "ReservationSettled"] if proved else [])
    if proved:
        told = s.one(e.OutcomeReconciled, events)
        assert (told.source, told.verdict) == ("elapsed_maximum", "ended")
        assert s.one(e.ReservationSettled, events).tokens_actual is None
    assert (s.phase(cell, grant), used(cell)) == ("unknown", (1 - proved, 100))
    assert s.same_as_followed(cell)


def test_the_longest_call_counts_from_when_the_call_was_sent():
    cell = cell_of(call_ms_max=100_000, send_within_ms=1_000)
    grant = s.started(cell, ONE)
    cell.run(c.sent(grant, 10))
    cell.run(c.result(grant, "unknown"))
    assert s.said(cell.run(after_ms=100_009)) == []
    s.one(e.OutcomeReconciled, cell.run(after_ms=1))


def test_a_longest_call_that_has_passed_is_proof_at_once():
    cell = s.cell(SLOTS, lease_ms=60_000, call_ms_max=10_000)
    s.started(cell, ONE)
    kinds = s.kinds(cell.run(after_ms=60_000))
    assert kinds == [
        "LeaseExpired",
        "OutcomeMarkedUnknown",
        "OutcomeReconciled",
        "ReservationSettled",
        "LeasesReviewed",
    ]


def test_a_longest_call_that_ends_after_the_bound_proves_nothing():
    cell = cell_of(call_ms_max=HOLD_MS, unknown_hold_ms=HOLD_MS)
    reported(cell)
    events = cell.run(after_ms=HOLD_MS) + cell.run(after_ms=HOLD_MS)
    assert s.said(events) == ["ReservationForfeited", "OperatorActionNeeded"]


RESOLVES_LATER = [
    (c.result, "succeeded", ["OutcomeReconciled", "ResultRecorded"]),
    (lambda grant: c.evidence(grant, "failed"), "failed", ["OutcomeReconciled"]),
    (lambda grant: c.evidence(grant, "not_executed"), "granted", ["OutcomeReconciled"]),
    (lambda grant: c.usage(grant, 60), "succeeded", ["OutcomeReconciled", "UsageCorrected"]),
    (lambda grant: c.usage(grant, 100), "succeeded", ["OutcomeReconciled"]),
    (lambda grant: c.reconcile(grant, "completed"), "succeeded", ["OutcomeReconciled"]),
]


@pytest.mark.parametrize(("asked", "phase", "kinds"), RESOLVES_LATER)
def test_what_time_has_settled_is_still_resolved_by_every_other_source_and_settles_once(
    asked, phase, kinds
):
    cell = cell_of(call_ms_max=1_000)
    grant = reported(cell)
    s.one(e.ReservationSettled, cell.run(after_ms=2_000))
    events = cell.run(asked(grant))
    assert s.kinds(events)[: len(kinds)] == kinds
    assert c.only((e.ReservationSettled, e.ReservationReleased), events) == []
    assert (s.phase(cell, grant), s.used(cell, "slots")) == (phase, phase == "granted")
    assert s.kinds(cell.run(asked(grant))) in ([], ["ManualActionRefused"])
    assert s.same_as_followed(cell)


OPERATOR = [
    ("completed", "succeeded", "ReservationSettled"),
    ("failed", "failed", "ReservationSettled"),
    ("not_executed", "granted", "ReservationReleased"),
    ("abandoned", "unknown_closed", "OperatorActionNeeded"),
]


@pytest.mark.parametrize(("make", "_cause"), CAUSES)
@pytest.mark.parametrize(("verdict", "phase", "follows"), OPERATOR)
def test_an_operator_says_what_became_of_it(make, _cause, verdict, phase, follows):
    cell = cell_of()
    grant = make(cell)
    events = cell.run(c.reconcile(grant, verdict))
    assert s.kinds(events)[:2] == ["OutcomeReconciled", follows]
    told = events[0]
    assert (told.source, told.verdict, told.confidence) == ("operator", verdict, "unknown")
    assert (told.author, told.reason) == ("op", "why")
    assert s.phase(cell, grant) == phase
    refused = s.one(e.ManualActionRefused, cell.run(c.reconcile(grant, verdict)))
    assert (refused.action, refused.code, refused.author) == ("reconcile", Code.NOT_UNKNOWN, "op")
    assert s.same_as_followed(cell)
