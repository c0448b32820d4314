"""Checkpoints: contiguous, by the holder alone, and where another member goes on."""

import pytest

from schemas import events as e
from schemas.codes import Code
from tests.support import cells as s
from tests.support import core as c

ONE = c.submitted("a", "1", effect="keyed")


def refusal(cell, asked):
    (refused,) = cell.run(asked)
    assert isinstance(refused, e.CheckpointRefused)
    assert refused.number == asked.number
    return refused.code


def test_checkpoints_are_recorded_with_contiguous_numbers():
    cell = s.cell()
    grant = s.started(cell, ONE)
    asked = [c.checkpoint(grant, n, context_bytes=n, artifacts=1) for n in (1, 2, 3)]
    recorded = cell.run(*asked)
    assert [(type(one), one.number, one.state_ref, one.context_bytes) for one in recorded] == [
        (e.CheckpointRecorded, n, f"state {n}", n) for n in (1, 2, 3)
    ]
    assert s.same_as_followed(cell)


@pytest.mark.parametrize("number", [-1, 0, 2, 4, 10**9])
def test_a_checkpoint_leaves_no_gap_and_goes_not_back(number):
    cell = s.cell()
    grant = s.started(cell, ONE)
    cell.run(c.checkpoint(grant, 1), c.checkpoint(grant, 2))
    asked = c.checkpoint(grant, number, state_ref="another")
    assert refusal(cell, asked) == Code.CHECKPOINT_GAP
    s.one(e.CheckpointRecorded, cell.run(c.checkpoint(grant, 3)))


def test_the_same_checkpoint_again_changes_nothing_and_an_older_one_is_refused():
    cell = s.cell()
    grant = s.started(cell, ONE)
    first, second = c.checkpoint(grant, 1), c.checkpoint(grant, 2)
    s.one(e.CheckpointRecorded, cell.run(*[first] * 3))
    s.one(e.CheckpointRecorded, cell.run(*[second] * 3))
    assert refusal(cell, first) == Code.CHECKPOINT_GAP


def test_a_checkpoint_without_a_reference_says_only_how_far_the_work_is():
    cell = s.cell()
    grant = s.started(cell, ONE)
    asked = c.checkpoint(grant, 1, state_ref=None)
    s.one(e.CheckpointRecorded, cell.run(asked, asked))


NOT_ITS_OWN = [
    ({"operation": b"\x07" * 16}, Code.NOT_FOUND),
    ({"tenant": "b"}, Code.NOT_FOUND),
    ({"epoch": 2}, Code.EPOCH_SUPERSEDED),
    ({"attempt": 2}, Code.EPOCH_SUPERSEDED),
    ({"incarnation": 99}, Code.EPOCH_SUPERSEDED),
    ({"member": "n"}, Code.EPOCH_SUPERSEDED),
    ({"member_epoch": "e2"}, Code.EPOCH_SUPERSEDED),
]


@pytest.mark.parametrize(("wrong", "code"), NOT_ITS_OWN)
def test_only_the_holder_of_the_newest_attempt_reports_checkpoints(wrong, code):
    cell = s.cell()
    grant = s.started(cell, ONE)
    assert refusal(cell, c.checkpoint(grant, 1, **wrong)) == code


def test_there_is_no_checkpoint_before_the_start_and_after_the_end():
    cell = s.cell()
    grant = s.granted(cell, ONE)
    assert refusal(cell, c.checkpoint(grant, 1)) == Code.NOT_STARTED
    cell.run(c.claim(grant))
    assert refusal(cell, c.checkpoint(grant, 1)) == Code.NOT_STARTED
    cell.run(c.start(grant))
    cell.run(c.result(grant))
    assert refusal(cell, c.checkpoint(grant, 1)) == Code.EPOCH_SUPERSEDED


@pytest.mark.parametrize("effect", ["unsafe", "keyed"])
def test_there_is_no_checkpoint_after_the_lease_has_ended(effect):
    cell = s.cell()
    grant = s.started(cell, c.submitted("a", "1", effect=effect))
    cell.run(after_ms=60_000)
    code = Code.LEASE_NOT_HELD if effect == "unsafe" else Code.EPOCH_SUPERSEDED
    assert refusal(cell, c.checkpoint(grant, 1)) == code


@pytest.mark.parametrize(("after_ms", "code"), [(59_999, None), (60_000, Code.LEASE_NOT_HELD)])
def test_time_ends_a_lease_for_checkpoints_whether_or_not_its_timer_has_fired(after_ms, code):
    cell = s.cell()
    grant = s.started(cell, c.submitted("a", "1"))
    (event,) = cell.run(c.checkpoint(grant, 1), after_ms=after_ms, timers=False)
    assert getattr(event, "code", None) == code


SIZES = [
    ({"context_bytes": 1_000}, None),
    ({"context_bytes": 1_001}, Code.CONTEXT_TOO_LARGE),
    ({"context_bytes": -1}, Code.INVALID_FIELD),
    ({"artifacts": 3}, None),
    ({"artifacts": 4}, Code.TOO_MANY_ARTIFACTS),
    ({"artifacts": -1}, Code.INVALID_FIELD),
    ({"state_ref": "x" * 2_048}, None),
    ({"state_ref": "x" * 2_049}, Code.REFERENCE_TOO_LONG),
]


@pytest.mark.parametrize(("sizes", "code"), SIZES)
def test_context_and_artifacts_are_limited_by_tenant(sizes, code):
    cell = s.cell(tenants=[c.tenant("a", context_bytes_max=1_000, artifacts_max=3)])
    grant = s.started(cell, ONE)
    asked = c.checkpoint(grant, 1, **sizes)
    if code is None:
        s.one(e.CheckpointRecorded, cell.run(asked))
    else:
        assert refusal(cell, asked) == code


ENDS = [
    # how the attempt ended, and when the next one begins
    (lambda grant: [c.result(grant, "retryable")], 1_000),
    (lambda grant: [c.result(grant, "unknown")], 1_000),
    (lambda grant: [c.result(grant, "not_sent")], 0),
    (lambda _: [], 61_000),
]


@pytest.mark.parametrize(("end", "after_ms"), ENDS)
def test_another_member_resumes_from_the_last_recorded_checkpoint(end, after_ms):
    cell = s.cell(places=1)
    cell.run(c.join("n", member_epoch="n1"), c.heartbeat("n", "n1"))
    grant = s.started(cell, ONE)
    assert (grant.checkpoint, grant.checkpoint_ref) == (0, None)
    cell.run(c.checkpoint(grant, 1), c.checkpoint(grant, 2))
    busy = s.granted(cell, c.submitted("a", "another"))
    events = cell.run(*end(grant))
    cell.take_over()
    events += cell.run(after_ms=min(after_ms, 60_000)) + cell.run(after_ms=after_ms and 1_000)
    again = next(one for one in s.grants(events) if one.operation == grant.operation)
    assert busy.member != grant.member
    assert (again.epoch, again.checkpoint, again.checkpoint_ref) == (2, 2, "state 2")
    cell.run(c.start(again))
    assert refusal(cell, c.checkpoint(grant, 3)) == Code.EPOCH_SUPERSEDED
    s.one(e.CheckpointRecorded, cell.run(c.checkpoint(again, 3)))
    assert s.same_as_followed(cell)


def test_a_retry_by_hand_resumes_too_and_a_new_incarnation_begins_anew():
    cell = s.cell(attempts_max=1, cell_bounds={"guard_horizon_ms": 10_000})
    grant = s.started(cell, ONE)
    cell.run(c.checkpoint(grant, 1))
    cell.run(c.result(grant, "retryable"))
    again = s.one(e.GrantIssued, cell.run(c.retry(grant)))
    assert again.checkpoint == 1
    cell.run(c.start(again))
    cell.run(c.result(again))
    anew = s.one(e.GrantIssued, cell.run(ONE, after_ms=10_000))
    assert (anew.checkpoint, anew.epoch) == (0, 1)
