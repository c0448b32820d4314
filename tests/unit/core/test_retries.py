"""Another attempt: by the owner alone, after a backoff, bounded by count, budget and deadline."""

import pytest

from schemas import events as e
from schemas.codes import Code
from streams.core.limits import BACKOFF_MS_MAX
from streams.core.retries import backoff_ms
from tests.support import cells as s
from tests.support import core as c

ONE = c.submitted("a", "1", start_within_ms=10**8)
SLOTS = c.dimension("slots", 9)


def fails(cell, grant, **over):
    """The start of the grant, and a retryable end of it; what follows that."""
    cell.run(c.start(grant))
    return cell.run(c.result(grant, "retryable", **over))


def test_backoff_doubles_and_ends_at_an_hour():
    assert [backoff_ms(1_000, tries) for tries in (0, 1, 2, 11, 12, 10**6)] == [
        1_000,
        2_000,
        4_000,
        2_048_000,
        BACKOFF_MS_MAX,
        BACKOFF_MS_MAX,
    ]


@pytest.mark.parametrize(("after_ms", "again"), [(999, 0), (1_000, 1), (1_001, 1)])
def test_a_retryable_failure_settles_and_waits_out_its_backoff(after_ms, again):
    cell = s.cell(SLOTS)
    grant = s.started(cell, ONE)
    recorded, settled, scheduled = cell.run(c.result(grant, "retryable"))
    assert (recorded.outcome, settled.tokens_actual) == ("retryable", 100)
    assert (scheduled.cause, scheduled.epoch) == ("retryable", grant.epoch)
    assert scheduled.not_before_ms == cell.now_ms + 1_000
    assert (s.phase(cell, grant), s.used(cell, "slots")) == ("parked", 0)
    kinds = s.kinds(cell.run(after_ms=after_ms))
    assert kinds == ["OperationUnparked", "GrantIssued"] * again
    assert s.same_as_followed(cell)


def test_each_failure_doubles_the_backoff_until_the_attempts_are_used_up():
    cell = s.cell(SLOTS, attempts_max=4, retry_backoff_ms=1_000)
    grant, waited = s.granted(cell, ONE), []
    while s.phase(cell, grant) != "dead":
        events = fails(cell, grant)
        for scheduled in c.only(e.RetryScheduled, events):
            waited.append(scheduled.not_before_ms - cell.now_ms)
            grant = s.granted(cell, after_ms=waited[-1])
    letter = s.one(e.OperationDeadLettered, events)
    assert waited == [1_000, 2_000, 4_000]
    assert (letter.reason, grant.attempt, grant.epoch) == (Code.ATTEMPTS_EXHAUSTED, 4, 4)
    assert (cell.state.cell.waiting, s.used(cell, "slots"), cell.state.attempts) == (0, 0, {})
    assert s.same_as_followed(cell)


def test_work_keeps_its_id_and_its_place_in_the_queue_over_its_attempts():
    cell = s.cell(c.dimension("slots", 1))
    grant = s.started(cell, ONE)
    cell.run(c.submitted("a", "2"), c.submitted("a", "3"))
    second = s.granted(cell, c.result(grant, "retryable"))
    cell.run(c.start(second), after_ms=1_000)
    again = s.granted(cell, c.result(second))
    assert (again.operation, again.epoch, again.attempt) == (grant.operation, 2, 2)


def test_failed_unknown_and_throttled_attempts_count_as_they_should():
    cell = s.cell(SLOTS, attempts_max=3, retry_backoff_ms=100, cooldown_ms=1)
    grant = s.started(cell, c.submitted("a", "1", effect="keyed"))
    for outcome in ("not_sent", "throttled", "retryable", "unknown", "not_sent", "retryable"):
        events = cell.run(c.result(grant, outcome)) + cell.run(after_ms=1_000)
        for grant in s.grants(events):
            cell.run(c.start(grant))
    assert s.one(e.OperationDeadLettered, events).reason == Code.ATTEMPTS_EXHAUSTED
    assert grant.epoch == 6


# -- inside the deadline ------------------------------------------------------------------------


@pytest.mark.parametrize(("within_ms", "again"), [(1_999, 0), (2_000, 0), (2_001, 1)])
def test_no_attempt_is_scheduled_that_the_deadline_would_end(within_ms, again):
    cell = s.cell(SLOTS)
    grant = s.started(cell, c.submitted("a", "1", start_within_ms=within_ms))
    events = cell.run(c.result(grant, "retryable"), after_ms=1_000)
    assert len(c.only(e.RetryScheduled, events)) == again
    reasons = [one.reason for one in c.only(e.OperationDeadLettered, events)]
    assert reasons == [Code.DEADLINE_PASSED] * (1 - again)


def test_safe_work_past_its_deadline_stays_unknown():
    cell = s.cell(SLOTS)
    grant = s.started(cell, c.submitted("a", "1", effect="keyed", start_within_ms=500))
    assert s.kinds(cell.run(c.result(grant, "unknown"))) == ["OutcomeMarkedUnknown"]


def test_work_in_its_backoff_can_be_cancelled_and_its_deadline_ends_it():
    cell = s.cell(SLOTS)
    for number, how in enumerate(("cancelled", "expired")):
        asked = c.submitted("a", str(number), start_within_ms=1_500)
        grant = s.started(cell, asked)
        cell.run(c.domain(c.dimension("slots", 0)), c.result(grant, "retryable"))
        events = cell.run(*([s.cancel(asked)] if how == "cancelled" else []), after_ms=499)
        events += cell.run(after_ms=1_001)
        cell.run(c.domain(SLOTS))
        assert s.phase(cell, grant) == how
        assert (cell.state.cell.waiting, s.grants(events)) == (0, [])
    assert s.same_as_followed(cell)


# -- the retry budget ---------------------------------------------------------------------------


def test_retries_of_a_tenant_in_a_domain_are_bounded_by_a_burst():
    cell = s.cell(SLOTS, retry_burst=2, retry_percent=0)
    for number in range(4):
        grant = s.started(cell, c.submitted("a", str(number)))
        events = cell.run(c.result(grant, "retryable"))
        reasons = [one.reason for one in c.only(e.OperationDeadLettered, events)]
        assert reasons == [Code.RETRY_BUDGET_EXHAUSTED] * (number >= 2)
    other = s.started(cell, c.submitted("b", "1"))
    s.one(e.RetryScheduled, cell.run(c.result(other, "retryable")))
    cell.run(c.domain(SLOTS, name="d2", retry_burst=2))
    elsewhere = s.started(cell, c.submitted("a", "d2", domain="d2"))
    s.one(e.RetryScheduled, cell.run(c.result(elsewhere, "retryable")))
    assert s.same_as_followed(cell)


def test_first_starts_earn_a_part_of_a_retry_and_no_more_than_the_burst():
    cell = s.cell(c.dimension("slots", 99), retry_burst=1, retry_percent=50)
    s.one(e.RetryScheduled, fails(cell, s.granted(cell, ONE)))

    def started(key):
        return s.granted(cell, c.submitted("a", key))

    s.one(e.OperationDeadLettered, fails(cell, started("2")))  # earned 50 of 100
    s.one(e.RetryScheduled, fails(cell, started("3")))
    for number in range(4, 14):
        cell.run(c.start(started(str(number))))
    assert cell.state.credit == {}  # full, and nothing is kept of it
    s.one(e.RetryScheduled, fails(cell, started("15")))
    s.one(e.OperationDeadLettered, fails(cell, started("16")))
    assert s.same_as_followed(cell)


def test_only_first_starts_earn():
    cell = s.cell(SLOTS, retry_burst=1, retry_percent=100, retry_backoff_ms=1)
    grant = s.granted(cell, ONE)
    s.one(e.RetryScheduled, fails(cell, grant))
    again = s.granted(cell, after_ms=1)
    assert s.one(e.OperationDeadLettered, fails(cell, again)).reason == Code.RETRY_BUDGET_EXHAUSTED


@pytest.mark.parametrize("burst", [0, 1])
def test_without_a_burst_nothing_is_tried_again(burst):
    cell = s.cell(SLOTS, retry_burst=burst)
    assert len(c.only(e.RetryScheduled, fails(cell, s.granted(cell, ONE)))) == burst


def test_leases_that_end_together_take_no_more_from_the_budget_than_it_has():
    cell = s.cell(SLOTS, retry_burst=2, retry_percent=0)
    grants = s.grants(cell.run(*[c.submitted("a", str(n), effect="keyed") for n in range(5)]))
    cell.run(*[c.start(grant) for grant in grants])
    events = cell.run(after_ms=60_000)
    assert len(c.only(e.OutcomeMarkedUnknown, events)) == 5
    assert len(c.only(e.RetryScheduled, events)) == 2
    assert sorted(s.phase(cell, one) for one in grants) == ["parked"] * 2 + ["unknown"] * 3


def test_faults_on_all_layers_at_once_start_no_more_than_the_bounds_allow():
    cell = s.cell(
        c.dimension("slots", 10**4),
        places=1_000,
        attempts_max=5,
        retry_burst=10,
        retry_percent=20,
        retry_backoff_ms=100,
        unknown_hold_ms=10**6,
    )
    outcomes = ["retryable", "unknown", None]  # None: its lease ends
    for number in range(100):
        asked = c.submitted("a", str(number), effect="keyed", start_within_ms=10**8)
        grants = s.grants(cell.run(*[asked] * 3, after_ms=500))  # clients repeat themselves
        for grant in grants:
            cell.run(*[c.start(grant)] * 3)
            outcome = outcomes[number % 3]
            cell.run(*[c.result(grant, outcome)] * 3 if outcome else [])
    for _ in range(40):
        for grant in s.grants(cell.run(after_ms=10_000)):
            cell.run(c.start(grant))
            cell.run(c.result(grant, "unknown"))
    operations = [cell.state.operation(c.id_of(c.submitted("a", str(n)))) for n in range(100)]
    starts = [row.starts for row in operations]
    assert max(starts) <= 5
    assert 100 < sum(starts) <= 100 + 10 + 20
    assert s.same_as_followed(cell)
