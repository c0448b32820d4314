"""How an attempt ends: each outcome, each stale or broken report, and never twice."""

import pytest

from schemas import events as e
from schemas.codes import Code
from streams.core.limits import NOT_SENT_MAX, TOKENS_MAX
from tests.support import cells as s
from tests.support import core as c

OUTCOMES = [
    ("success", "succeeded"),
    ("terminal", "failed"),
    ("policy_denied", "failed"),
    ("cancelled", "cancelled"),
]


@pytest.mark.parametrize(("outcome", "phase"), OUTCOMES)
def test_a_known_outcome_closes_operation_and_reservation_in_one_entry(outcome, phase):
    cell = s.cell()
    grant = s.started(cell, c.submitted("a", "1"))
    recorded, settled = cell.run(c.result(grant, outcome), after_ms=70)
    assert (type(recorded), type(settled)) == (e.ResultRecorded, e.ReservationSettled)
    assert c.named(recorded) == c.named(settled) == c.named(grant)
    assert (settled.domain, settled.held_ms, settled.cost_reserved_ns) == ("d", 70, grant.cost_ns)
    assert cell.state.operation(grant.operation).phase == phase
    assert cell.state.attempts == {}


@pytest.mark.parametrize("outcome", ["", "Success", "timeout", "x" * 60_000])
def test_an_outcome_of_no_known_class_is_quarantined_and_keeps_the_slot(outcome):
    cell = s.cell()
    grant = s.started(cell, c.submitted("a", "1"))
    event = s.one(e.InputQuarantined, cell.run(c.result(grant, outcome)))
    assert (event.code, len(event.detail) < 200) == (Code.UNKNOWN_OUTCOME_CLASS, True)
    assert s.used(cell, "slots") == 1


@pytest.mark.parametrize(("after_ms", "late"), [(9_999, False), (10_000, True), (10_001, True)])
def test_a_result_at_or_after_the_deadline_is_recorded_and_flagged(after_ms, late):
    cell = s.cell()
    grant = s.started(cell, c.submitted("a", "1", start_within_ms=10_000))
    recorded = s.one(e.ResultRecorded, cell.run(c.result(grant), after_ms=after_ms))
    assert recorded.late is late
    assert cell.state.operation(grant.operation).phase == "succeeded"


def test_a_deadline_does_not_end_started_work():
    cell = s.cell()
    s.started(cell, c.submitted("a", "1", start_within_ms=10_000))
    assert cell.run(after_ms=59_999) == []  # its lease lasts for a minute


STALE = [
    ("operation", b"\x07" * 16, Code.NOT_FOUND),
    ("tenant", "b", Code.NOT_FOUND),
    ("incarnation", 99, Code.EPOCH_SUPERSEDED),
    ("attempt", 2, Code.EPOCH_SUPERSEDED),
    ("epoch", 0, Code.EPOCH_SUPERSEDED),
    ("member", "n", Code.EPOCH_SUPERSEDED),
    ("member_epoch", "e0", Code.EPOCH_SUPERSEDED),
]


@pytest.mark.parametrize("outcome", ["success", "not_sent"])
@pytest.mark.parametrize(("field", "value", "code"), STALE)
def test_a_result_that_does_not_name_the_live_attempt_is_kept_as_evidence(
    field, value, code, outcome
):
    cell = s.cell()
    grant = s.started(cell, c.submitted("a", "1"))
    (evidence,) = cell.run(c.result(grant, outcome, output_tokens=7, **{field: value}))
    assert (type(evidence), evidence.code) == (e.ResultRefusedStale, code)
    assert (evidence.outcome, evidence.output_tokens) == (outcome, 7)
    assert s.used(cell, "slots") == 1


def test_a_result_without_an_accepted_start_settles_nothing():
    cell = s.cell()
    grant = s.granted(cell, c.submitted("a", "1"))
    (evidence,) = cell.run(c.result(grant))
    assert evidence.code == Code.NOT_STARTED
    s.one(e.StartAccepted, cell.run(c.start(grant)))


@pytest.mark.parametrize("outcome", ["success", "terminal", "not_sent"])
def test_a_repeated_result_changes_nothing_and_says_nothing(outcome):
    cell = s.cell(c.dimension("tokens", 900, amount="actual"), c.dimension("slots", 9))
    grant = s.started(cell, c.submitted("a", "1"))
    said = c.result(grant, outcome, send_delay_ms=3, error="as it was")
    events = cell.run(said, said)
    assert s.kinds(events)[-2:].count("ResultRecorded") <= 1
    assert not c.only(e.ResultRefusedStale, events)
    used = s.used(cell, "tokens"), s.used(cell, "slots")
    assert cell.run(said, c.result(grant, outcome, send_delay_ms=9, error="told again")) == []
    assert (s.used(cell, "tokens"), s.used(cell, "slots")) == used


DIFFERENT = [
    {"outcome": "terminal"},
    {"outcome": "not_sent"},
    {"output_tokens": 500},
    {"prompt_tokens": None},
    {"result_ref": "elsewhere"},
    {"member_epoch": "e2"},
]


@pytest.mark.parametrize("over", DIFFERENT)
def test_a_second_result_that_says_otherwise_is_a_conflict_and_changes_nothing(over):
    cell = s.cell(c.dimension("tokens", 900, amount="actual"), c.dimension("slots", 9))
    grant = s.started(cell, c.submitted("a", "1"))
    events = cell.run(c.result(grant), c.result(grant, **over))
    assert s.kinds(events) == ["ResultRecorded", "ReservationSettled", "ResultRefusedStale"]
    cell.take_over()
    (evidence,) = cell.run(c.result(grant, **over))
    assert evidence.code == Code.SETTLEMENT_CONFLICT
    assert (s.used(cell, "tokens"), s.used(cell, "slots")) == (100, 0)
    assert cell.state.operation(grant.operation).phase == "succeeded"


def test_a_result_of_an_attempt_that_had_none_contradicts_nothing():
    cell = s.cell(claim_by_ms=1_000)
    first = s.started(cell, c.submitted("a", "1"))
    again = s.one(e.GrantIssued, cell.run(c.result(first, "not_sent")))
    assert cell.run(c.result(first, "not_sent")) == []
    (other,) = cell.run(c.result(first))
    assert other.code == Code.SETTLEMENT_CONFLICT
    cell.run(after_ms=1_000)  # it was never started, and expires
    (stale,) = cell.run(c.result(again))
    assert stale.code == Code.EPOCH_SUPERSEDED


FIGURES = [
    # reported, recorded
    (None, None),
    (-1, None),
    (0, 0),
    (TOKENS_MAX, TOKENS_MAX),
    (TOKENS_MAX + 1, None),
    (2**62, None),
]


@pytest.mark.parametrize(("reported", "recorded"), FIGURES)
def test_a_broken_figure_of_use_is_no_figure(reported, recorded):
    for field in ("prompt_tokens", "output_tokens"):
        cell = s.cell()
        grant = s.started(cell, c.submitted("a", "1"))
        result, settled = cell.run(c.result(grant, **{field: reported}))
        assert getattr(result, field) == recorded
        assert (settled.tokens_actual is None) is (recorded is None)


@pytest.mark.parametrize(("bytes_", "kept"), [(2_047, True), (2_048, True), (2_049, False)])
def test_a_reference_that_is_too_long_is_left_out_and_the_slot_settles_anyway(bytes_, kept):
    cell = s.cell()
    for field in ("result_ref", "error"):
        grant = s.started(cell, c.submitted("a", field))
        text = "é" * (bytes_ // 2) + "x" * (bytes_ % 2)
        result = s.one(e.ResultRecorded, cell.run(c.result(grant, **{field: text})))
        assert (getattr(result, field) == text) is kept
        assert s.used(cell, "slots") == 0


# -- not sent -----------------------------------------------------------------------------------


def test_work_that_was_not_sent_waits_again_at_its_old_place_under_a_new_epoch():
    cell = s.cell(places=1)
    asked = [c.submitted("a", str(n)) for n in range(2)]
    grant = s.one(e.GrantIssued, cell.run(*asked))
    cell.run(c.start(grant))
    recorded, released, again = cell.run(c.result(grant, "not_sent"))
    assert (type(recorded), type(released)) == (e.ResultRecorded, e.ReservationReleased)
    assert (released.reason, again.operation, again.epoch) == ("not_sent", grant.operation, 2)
    assert cell.state.cell.waiting == 1


def test_work_not_sent_at_its_deadline_expires():
    cell = s.cell()
    grant = s.started(cell, c.submitted("a", "1", start_within_ms=1_000))
    events = cell.run(c.result(grant, "not_sent"), after_ms=1_000)
    assert s.one(e.OperationExpired, events).reason == "deadline"
    assert cell.state.cell.waiting == 0


def test_work_is_given_up_after_so_many_starts_that_led_to_no_call():
    cell = s.cell()
    grant = s.started(cell, c.submitted("a", "1"))
    for _ in range(NOT_SENT_MAX - 1):
        grant = s.granted(cell, c.result(grant, "not_sent"))
        cell.run(c.start(grant))
    assert (
        s.one(e.OperationExpired, cell.run(c.result(grant, "not_sent"))).reason
        == Code.NOT_SENT_EXHAUSTED
    )
    assert grant.attempt == NOT_SENT_MAX


@pytest.mark.parametrize(("output", "charged"), [(89, None), (90, None), (91, 101)])
def test_half_a_figure_of_use_counts_when_it_is_above_what_was_reserved_for_it(output, charged):
    cell = s.cell(c.dimension("tokens", 900), c.dimension("slots", 9))
    grant = s.started(cell, c.submitted("a", "1"))
    events = cell.run(c.result(grant, prompt_tokens=None, output_tokens=output))
    assert s.one(e.ReservationSettled, events).tokens_actual == charged
    assert s.used(cell, "tokens") == (charged or 100)
