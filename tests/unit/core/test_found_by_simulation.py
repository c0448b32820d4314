"""What the independent judges found in the core: each history once, in its shortest form."""

from typing import Any

from schemas import events as e
from schemas import inputs as i
from schemas.codes import Code
from tests.support import cells as s
from tests.support import core as c

LEASE_MS = 1_000


def cell(**domain: Any) -> c.Core:
    """Member m with leases of a second."""
    made = c.Core()
    config = {"unknown_hold_ms": 10_000, "retry_backoff_ms": 200, **domain}
    made.run(
        s.bounds(guard_horizon_ms=3_000),
        c.domain(c.dimension("slots", 100), c.dimension("tokens", 10**6), **config),
        c.pool(lease_ms=LEASE_MS),
    )
    made.run(c.join(places=100), c.heartbeat())
    return made


def ran(made: c.Core, outcome: str, **usage: Any) -> e.GrantIssued:
    """One keyed attempt of tenant t that was started and ended so."""
    grant = s.started(made, c.submitted("t", "a", effect="keyed"))
    made.run(c.result(grant, outcome, **usage))
    return grant


def test_leases_that_end_together_share_one_budget_of_retries():
    made = cell(retry_burst=2)
    asked = [c.submitted("t", f"k{n}", effect="keyed") for n in range(5)]
    grants = s.grants(made.run(*asked))
    made.run(*map(c.start, grants))
    events = made.run(after_ms=LEASE_MS)
    assert len(c.only(e.OutcomeMarkedUnknown, events)) == 5
    assert len(c.only(e.RetryScheduled, events)) == 2


def test_usage_of_an_attempt_does_not_correct_the_charge_of_the_next_one():
    made = cell()
    first = ran(made, "retryable", prompt_tokens=10, output_tokens=20)
    second = s.granted(made, after_ms=200)
    made.run(c.start(second))
    made.run(after_ms=LEASE_MS)
    made.run(c.result(second, "retryable", prompt_tokens=10, output_tokens=60))
    refused = s.one(e.UsageRefused, made.run(c.usage(first, 90)))
    assert refused.code == Code.EPOCH_SUPERSEDED
    corrected = s.one(e.UsageCorrected, made.run(c.usage(second, 90)))
    assert (corrected.tokens_before, corrected.tokens_actual) == (70, 90)


def test_usage_of_a_call_that_was_reported_as_not_sent_is_charged_from_nothing():
    made = cell()
    ran(made, "retryable", prompt_tokens=10, output_tokens=20)
    second = s.granted(made, after_ms=200)
    made.run(c.start(second))
    made.run(c.result(second, "not_sent"))
    before = s.used(made, "tokens")
    corrected = s.one(e.UsageCorrected, made.run(c.usage(second, 50)))
    assert (corrected.tokens_before, corrected.tokens_actual) == (0, 50)
    assert s.used(made, "tokens") == before + 50


def test_a_late_result_settles_its_hold_though_the_operation_is_forgotten():
    made = cell()
    asked = c.submitted("t", "a", effect="keyed", start_within_ms=2_000)
    grant = s.started(made, asked)
    made.run(after_ms=LEASE_MS)
    made.run(s.cancel(asked))
    s.one(e.OperationForgotten, made.run(after_ms=3_000))
    events = made.run(c.result(grant))
    assert s.kinds(events) == ["ResultRefusedStale", "ReservationSettled"]
    assert s.used(made, "slots") == 0


def test_who_lost_a_lease_is_told_so_when_the_call_is_proved_to_have_ended():
    made = cell(call_ms_max=1_500)
    grant = s.started(made, c.submitted("t", "a"))
    made.run(after_ms=LEASE_MS)
    s.one(e.OutcomeReconciled, made.run(after_ms=2_000))
    refused: i.LeaseName = s.one(e.RenewRefused, made.run(c.renewal(grant)))
    assert (refused.operation, refused.epoch) == (grant.operation, grant.epoch)


def test_a_send_report_moves_nothing_after_the_reservation_is_closed():
    made = cell(call_ms_max=1_500, send_within_ms=500)
    grant = s.started(made, c.submitted("t", "a"))
    made.run(after_ms=LEASE_MS)
    s.one(e.ReservationSettled, made.run(after_ms=2_000))
    assert s.kinds(made.run(c.sent(grant, 5))) == []


def test_what_an_operator_calls_completed_is_charged_nothing_that_was_another_attempts():
    made = cell()
    ran(made, "retryable", prompt_tokens=10, output_tokens=20)
    second = s.granted(made, after_ms=200)
    made.run(c.start(second))
    made.run(c.result(second, "unknown"))
    made.run(c.reconcile(second, "abandoned"), c.evidence(second, "not_executed"))
    made.run(c.reconcile(second, "completed"))
    corrected = c.only(e.UsageCorrected, made.run(c.usage(second, 50)))
    assert [one.tokens_before for one in corrected] in ([], [0])
