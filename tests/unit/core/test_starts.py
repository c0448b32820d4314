"""The handshake before a call: who may start, until when, and what a send report changes."""

import pytest

from schemas import events as e
from schemas.codes import Code
from tests.support import cells as s
from tests.support import core as c

OTHER = b"\x07" * 16


def refused(cell, asked, after_ms=0):
    before = dict(cell.state.attempts)
    found = s.one(e.StartRefused, cell.run(asked, after_ms=after_ms, timers=False))
    assert cell.state.attempts == before
    return found.code


def test_an_accepted_start_records_claim_and_start_as_two_events_and_commits_the_reservation():
    cell = s.cell(send_within_ms=300, transit_ms=40)
    grant = s.granted(cell, c.submitted("a", "1"))
    claim, accepted = cell.run(c.start(grant), after_ms=5)
    assert (type(claim), claim.expires_ms) == (e.LeaseClaimed, cell.now_ms + 60_000)
    assert c.named(claim) == c.named(accepted) == c.named(grant)
    assert (accepted.send_within_ms, accepted.latest_arrival_ms) == (300, cell.now_ms + 340)
    assert cell.state.operation(grant.operation).phase == "started"


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("operation", OTHER, Code.NOT_FOUND),
        ("tenant", "b", Code.NOT_FOUND),
        ("incarnation", 99, Code.EPOCH_SUPERSEDED),
        ("attempt", 2, Code.EPOCH_SUPERSEDED),
        ("epoch", 0, Code.EPOCH_SUPERSEDED),
        ("epoch", 2, Code.EPOCH_SUPERSEDED),
        ("member", "n", Code.EPOCH_SUPERSEDED),
        ("member_epoch", "e0", Code.EPOCH_SUPERSEDED),
    ],
)
def test_a_start_that_does_not_name_the_live_attempt_is_refused(field, value, code):
    cell = s.cell()
    grant = s.granted(cell, c.submitted("a", "1"))
    assert refused(cell, c.start(grant, **{field: value})) == code
    s.one(e.StartAccepted, cell.run(c.start(grant)))


@pytest.mark.parametrize(
    ("after_ms", "accepted"), [(9_999, True), (10_000, False), (10_001, False)]
)
def test_a_start_comes_before_its_claim_by(after_ms, accepted):
    cell = s.cell(claim_by_ms=10_000)
    grant = s.granted(cell, c.submitted("a", "1"))
    if accepted:
        s.one(e.StartAccepted, cell.run(c.start(grant), after_ms=after_ms))
    else:
        assert refused(cell, c.start(grant), after_ms) == Code.START_REFUSED


@pytest.mark.parametrize(
    ("after_ms", "accepted"), [(9_999, True), (10_000, False), (10_001, False)]
)
def test_a_start_comes_before_its_deadline(after_ms, accepted):
    cell = s.cell()
    grant = s.granted(cell, c.submitted("a", "1", start_within_ms=10_000))
    if accepted:
        s.one(e.StartAccepted, cell.run(c.start(grant), after_ms=after_ms))
    else:
        assert refused(cell, c.start(grant), after_ms) == Code.DEADLINE_PASSED


def test_of_two_starts_for_one_grant_one_is_accepted():
    cell = s.cell()
    grant = s.granted(cell, c.submitted("a", "1"))
    events = cell.run(c.start(grant), c.start(grant))
    assert s.kinds(events) == ["LeaseClaimed", "StartAccepted", "StartRefused"]
    assert refused(cell, c.start(grant)) == Code.START_REFUSED


def test_a_start_in_the_entry_in_which_its_grant_expires_comes_first_only_in_time():
    cell = s.cell(claim_by_ms=1_000)
    grant = s.granted(cell, c.submitted("a", "1"))
    events = cell.run(c.start(grant), after_ms=1_000)
    assert s.kinds(events) == ["StartRefused", "GrantExpired", "ReservationExpired", "GrantIssued"]
    assert s.grants(events)[0].epoch == grant.epoch + 1
    assert refused(cell, c.start(grant)) == Code.EPOCH_SUPERSEDED


@pytest.mark.parametrize(("after_ms", "expired"), [(999, 0), (1_000, 1), (1_001, 1)])
def test_an_unstarted_grant_ends_at_its_claim_by_and_gives_everything_back(after_ms, expired):
    cell = s.cell(c.dimension("requests", 9), c.dimension("slots", 9), claim_by_ms=1_000)
    s.granted(cell, c.submitted("a", "1", start_within_ms=1_002))
    cell.run(c.domain(c.dimension("requests", 0), c.dimension("slots", 9), claim_by_ms=1_000))
    events = cell.run(after_ms=after_ms)
    assert len(c.only(e.GrantExpired, events)) == expired
    assert s.used(cell, "requests") == s.used(cell, "slots") == 1 - expired
    assert cell.state.cell.waiting == expired


def test_a_started_grant_does_not_end_at_its_claim_by():
    cell = s.cell(claim_by_ms=1_000)
    s.started(cell, c.submitted("a", "1"))
    assert cell.run(after_ms=3_000) == []
    assert s.used(cell, "slots") == 1


def test_a_grant_that_ends_past_its_deadline_ends_its_work_too():
    cell = s.cell()
    s.granted(cell, c.submitted("a", "1", start_within_ms=500))
    kinds = s.kinds(cell.run(after_ms=500))
    assert kinds == ["GrantExpired", "ReservationExpired", "OperationExpired"]
    assert cell.state.cell.waiting == 0


def test_epochs_of_an_operation_only_grow():
    cell = s.cell(claim_by_ms=1_000)
    epochs = [s.granted(cell, c.submitted("a", "1")).epoch]
    epochs += [s.granted(cell, after_ms=1_000).epoch for _ in range(3)]
    cell.take_over()
    epochs.append(s.granted(cell, after_ms=1_000).epoch)
    assert epochs == [1, 2, 3, 4, 5]


# -- send reports -------------------------------------------------------------------------------

DELAYS = [
    # delay, new latest arrival after acceptance (send within 300, transit 40), or None
    (0, 40),
    (299, 339),
    (300, None),
    (301, None),
    (10**15, None),
]


@pytest.mark.parametrize(("delay_ms", "latest_ms"), DELAYS)
def test_a_send_report_moves_the_arrival_earlier_and_never_later(delay_ms, latest_ms):
    cell = s.cell(send_within_ms=300, transit_ms=40)
    grant = s.started(cell, c.submitted("a", "1"))
    accepted_ms = cell.now_ms
    events = cell.run(c.sent(grant, delay_ms), after_ms=20)
    found = [one.latest_arrival_ms - accepted_ms for one in c.only(e.SendObserved, events)]
    assert found == ([] if latest_ms is None else [latest_ms])


def test_a_second_send_report_changes_nothing():
    cell = s.cell()
    grant = s.started(cell, c.submitted("a", "1"))
    cell.run(c.sent(grant, 50))
    assert cell.run(c.sent(grant, 50), c.sent(grant, 10)) == []
    events = cell.run(c.result(grant, send_delay_ms=5))
    assert c.only(e.SendObserved, events) == []


def test_a_result_may_bring_the_send_delay():
    cell = s.cell()
    grant = s.started(cell, c.submitted("a", "1"))
    kinds = s.kinds(cell.run(c.result(grant, send_delay_ms=5)))
    assert kinds == ["SendObserved", "ResultRecorded", "ReservationSettled"]


@pytest.mark.parametrize("delay_ms", [None, -1, 10**9])
def test_a_result_with_an_unbelievable_delay_is_a_result_without_one(delay_ms):
    cell = s.cell()
    grant = s.started(cell, c.submitted("a", "1"))
    kinds = s.kinds(cell.run(c.result(grant, send_delay_ms=delay_ms)))
    assert kinds == ["ResultRecorded", "ReservationSettled"]


def test_a_negative_delay_is_quarantined():
    cell = s.cell()
    grant = s.started(cell, c.submitted("a", "1"))
    s.one(e.InputQuarantined, cell.run(c.sent(grant, -1)))


def test_a_send_report_for_what_was_not_started_or_is_over_changes_nothing():
    cell = s.cell()
    grant = s.granted(cell, c.submitted("a", "1"))
    assert cell.run(c.sent(grant, 5)) == []
    cell.run(c.start(grant))
    cell.run(c.result(grant))
    assert cell.run(c.sent(grant, 5)) == []


def test_a_send_report_after_its_charge_has_left_brings_nothing_back():
    cell = s.cell(c.dimension("requests", 9, window_ms=100), send_within_ms=50)
    grant = s.started(cell, c.submitted("a", "1"))
    cell.run(after_ms=500)
    cell.run(c.sent(grant, 5))
    assert s.used(cell, "requests") == 0
    cell.run(c.result(grant))
    assert s.used(cell, "requests") == 0


@pytest.mark.parametrize("outcome", ["success", "not_sent"])
def test_a_report_that_puts_the_exit_into_the_past_frees_the_charge_once(outcome):
    cell = s.cell(c.dimension("requests", 1, window_ms=100), send_within_ms=1_000)
    grant = s.started(cell, c.submitted("a", "1"))
    cell.run(
        c.sent(grant, 5), c.result(grant, outcome), s.cancel(c.submitted("a", "1")), after_ms=500
    )
    cell.run()
    assert s.used(cell, "requests") == 0
    cell.run(after_ms=5_000)
    assert s.used(cell, "requests") == 0


def test_a_time_step_between_start_and_report_moves_the_arrival_with_it():
    cell = s.cell(send_within_ms=300)
    grant = s.started(cell, c.submitted("a", "1"))
    accepted_ms = cell.now_ms
    cell.now_ms += 7_000
    cell.take_over(step_ms=7_000)
    observed = s.one(e.SendObserved, cell.run(c.sent(grant, 50)))
    assert observed.latest_arrival_ms == accepted_ms + 7_000 + 50
