"""What a person does about dead work and unknown outcomes: heard once, named, or refused."""

import pytest

from schemas import events as e
from schemas.codes import Code
from tests.support import cells as s
from tests.support import core as c

ONE = c.submitted("a", "1", start_within_ms=10**8)
SLOTS = c.dimension("slots", 9)


def fails(cell, grant, **over):
    """The start of the grant, and a retryable end of it; what follows that."""
    cell.run(c.start(grant))
    return cell.run(c.result(grant, "retryable", **over))


def dead(cell, asked=ONE):
    """Its only attempt failed."""
    grant = s.started(cell, asked)
    s.one(e.OperationDeadLettered, cell.run(c.result(grant, "retryable")))
    return grant


def test_a_dead_operation_is_tried_again_by_hand_under_its_id_and_the_log_says_by_whom():
    cell = s.cell(SLOTS, attempts_max=1)
    grant = dead(cell)
    accepted, again = cell.run(c.retry(grant, 5_000, author="ops", reason="provider is back"))
    assert (type(accepted), accepted.author) == (e.ManualRetryAccepted, "ops")
    assert (accepted.reason, accepted.deadline_ms) == ("provider is back", cell.now_ms + 5_000)
    assert (again.operation, again.incarnation) == (grant.operation, grant.incarnation)
    assert (again.epoch, again.attempt, again.deadline_ms) == (2, 2, accepted.deadline_ms)
    assert s.same_as_followed(cell)


def test_a_retry_by_hand_begins_the_bounds_anew():
    cell = s.cell(SLOTS, attempts_max=2, throttles_max=1, cooldown_ms=1, retry_backoff_ms=1)
    grant = s.granted(cell, ONE)
    for _ in range(2):
        s.one(e.RetryScheduled, fails(cell, grant))
        grant = s.granted(cell, after_ms=1)
        cell.run(c.start(grant))
        s.one(e.OperationDeadLettered, cell.run(c.result(grant, "retryable")))
        grant = s.one(e.GrantIssued, cell.run(c.retry(grant)))
    cell.run(c.start(grant))
    cell.run(c.result(grant))
    assert s.phase(cell, grant) == "succeeded"


def test_an_outcome_that_was_never_known_is_tried_again_by_hand_beside_its_hold():
    cell = s.cell(SLOTS)
    grant = s.unknown(cell, ONE)
    cell.run(c.reconcile(grant, "abandoned"))
    again = s.one(e.GrantIssued, cell.run(c.retry(grant)))
    assert (again.epoch, s.used(cell, "slots")) == (2, 2)
    assert s.same_as_followed(cell)


def test_a_retry_by_hand_is_heard_once():
    cell = s.cell(SLOTS, attempts_max=1)
    grant = dead(cell)
    events = cell.run(*[c.retry(grant)] * 3)
    s.one(e.ManualRetryAccepted, events)
    refused = c.only(e.ManualActionRefused, events)
    assert [(one.code, one.action) for one in refused] == [(Code.NOT_DEAD, "retry")] * 2


REFUSED = [
    ({"tenant": "b"}, Code.NOT_FOUND),
    ({"operation": b"\x07" * 16}, Code.NOT_FOUND),
    ({"start_within_ms": 0}, Code.INVALID_FIELD),
    ({"start_within_ms": 10**15}, Code.INVALID_FIELD),
]


@pytest.mark.parametrize(("wrong", "code"), REFUSED)
def test_a_retry_by_hand_that_does_not_apply_is_refused(wrong, code):
    cell = s.cell(SLOTS, attempts_max=1)
    grant = dead(cell)
    (refused,) = cell.run(c.retry(grant, **wrong))
    assert (type(refused), refused.code) == (e.ManualActionRefused, code)
    assert s.phase(cell, grant) == "dead"


@pytest.mark.parametrize("wrong", [{"author": ""}, {"reason": ""}, {"reason": "x" * 10_000}])
@pytest.mark.parametrize("asked", [c.retry, lambda grant, **w: c.reconcile(grant, "failed", **w)])
def test_what_a_person_does_needs_a_name_and_a_reason(asked, wrong):
    cell = s.cell(SLOTS, attempts_max=1)
    grant = dead(cell)
    assert s.one(e.InputQuarantined, cell.run(asked(grant, **wrong))).code == Code.INVALID_FIELD


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"verdict": "ended"}, Code.INVALID_FIELD),
        ({"prompt_tokens": -1}, Code.USAGE_OUT_OF_RANGE),
        ({"output_tokens": 10**12}, Code.USAGE_OUT_OF_RANGE),
    ],
)
def test_a_verdict_that_makes_no_sense_is_set_aside(wrong, code):
    cell = s.cell(SLOTS)
    grant = s.unknown(cell, ONE)
    asked = c.reconcile(grant, **{"verdict": "failed", **wrong})
    assert s.one(e.InputQuarantined, cell.run(asked)).code == code
    assert s.phase(cell, grant) == "unknown"


def test_a_dead_operation_is_a_repeat_of_its_key_and_a_cancellation_does_nothing():
    cell = s.cell(SLOTS, attempts_max=1)
    dead(cell)
    assert s.one(e.DuplicateObserved, cell.run(ONE)).state == "dead"
    assert cell.run(s.cancel(ONE)) == []
