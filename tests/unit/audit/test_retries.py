"""Defects in retries and pauses: each is named at its position; true stories are clean."""

from typing import Any

from msgspec.structs import replace

from schemas.ids import OperationId
from tests.support.budget import DOMAIN
from tests.support.history import History
from tests.support.plants import Plant, Plants, judge, started
from tests.support.trouble import (
    BACKOFF_MS,
    back,
    doubt,
    failed,
    fails,
    give_up,
    scheduling,
    unknown,
)
from tests.support.words import e, i

plants = Plants()


def dead(operation: OperationId, history: History, reason: str) -> Any:
    """The event that ends it for want of attempts."""
    incarnation = history.grants[operation].incarnation
    return e.OperationDeadLettered(
        tenant="t", operation=operation, incarnation=incarnation, reason=reason
    )


def domain(history: History, **changes: Any) -> None:
    """Domain `d` with other bounds, and wide budgets."""
    wide = tuple(replace(one, limit=1_000) for one in DOMAIN.dimensions)
    history.configure("domain", "d", domain=replace(DOMAIN, dimensions=wide, **changes))


def retried(history: History, operation: OperationId, **changes: Any) -> int:
    """An operator asks for another attempt."""
    told = {"author": "o", "reason": "r"}
    asked = i.RetryRequested(tenant="t", operation=operation, start_within_ms=60_000, **told)
    deadline_ms = history.now_ms + 1 + 60_000
    history.admitted[operation] = replace(history.admitted[operation], deadline_ms=deadline_ms)
    made = e.ManualRetryAccepted(tenant="t", operation=operation, deadline_ms=deadline_ms, **told)
    return history.append([asked], [replace(made, **changes)])


# -- retries ---------------------------------------------------------------------------------------


@plants.breaks("retries")
def unsafe_work_is_tried_again_blindly(history: History) -> int:
    operation = started(history)
    return doubt(history, operation, scheduling(history, operation, "unknown"))


@plants.breaks("retries")
def unsafe_work_is_granted_again_blindly(history: History) -> int:
    return history.grant(unknown(history))


@plants.breaks("retries")
def a_retry_of_nothing_that_failed(history: History) -> int:
    operation = started(history)
    return fails(history, operation, "throttled", scheduling(history, operation, "retryable"))


@plants.breaks("retries")
def a_backoff_that_does_not_double(history: History) -> int:
    domain(history)
    operation = failed(history)
    back(history, operation)
    history.grant(operation)
    history.start(operation)
    return fails(history, operation, "retryable", scheduling(history, operation, "retryable"))


@plants.breaks("retries")
def one_attempt_too_many(history: History) -> int:
    domain(history, attempts_max=1)
    operation = started(history)
    return fails(history, operation, "retryable", scheduling(history, operation, "retryable"))


@plants.breaks("retries")
def a_retry_that_nothing_pays_for(history: History) -> int:
    domain(history, retry_burst=1)
    failed(history)
    operation = started(history, "b")
    return fails(history, operation, "retryable", scheduling(history, operation, "retryable"))


@plants.breaks("retries")
def a_retry_after_its_deadline(history: History) -> int:
    operation = history.submit("a", start_within_ms=900)
    history.grant(operation)
    history.start(operation)
    return fails(history, operation, "retryable", scheduling(history, operation, "retryable"))


@plants.breaks("lives")
def a_backoff_that_ends_early(history: History) -> int:
    return back(history, failed(history), BACKOFF_MS - 1)


@plants.breaks("retries")
def dead_before_its_attempts_are_used_up(history: History) -> int:
    operation = started(history)
    return fails(history, operation, "retryable", dead(operation, history, "attempts-exhausted"))


@plants.breaks("retries")
def dead_after_one_throttle(history: History) -> int:
    operation = started(history)
    return fails(history, operation, "throttled", dead(operation, history, "throttles-exhausted"))


@plants.breaks("retries")
def a_retry_by_hand_that_nobody_asked_for(history: History) -> int:
    domain(history, attempts_max=1)
    operation = started(history)
    fails(history, operation, "retryable", dead(operation, history, "attempts-exhausted"))
    told = {"author": "o", "reason": "r", "deadline_ms": history.now_ms + 60_000}
    return history.append([], [e.ManualRetryAccepted(tenant="t", operation=operation, **told)])


@plants.breaks("lives")
def a_retry_by_hand_of_what_is_not_over(history: History) -> int:
    return retried(history, started(history))


# -- pauses ----------------------------------------------------------------------------------------


def throttled(history: History, key: str, until_ms: int | None, cause: str = "throttled") -> int:
    """A call was refused, and its domain pauses."""
    operation = started(history, key)
    paused = e.CooldownSet(domain="d", cause=cause, until_ms=until_ms)
    return fails(history, operation, cause, paused)


@plants.breaks("retries")
def a_grant_in_a_pause(history: History) -> int:
    domain(history)
    throttled(history, "a", history.now_ms + 10_000)
    return history.grant(history.submit("b"))


@plants.breaks("retries")
def a_grant_before_an_operator_ends_the_pause(history: History) -> int:
    domain(history)
    throttled(history, "a", None, "quota_exhausted")
    history.wait(50_000)
    return history.grant(history.submit("b", start_within_ms=90_000))


@plants.breaks("retries")
def a_pause_that_ends_earlier_than_before(history: History) -> int:
    domain(history)
    first, second = started(history, "a"), started(history, "b")
    later_ms = history.now_ms + 10_000
    fails(
        history, first, "throttled", e.CooldownSet(domain="d", cause="throttled", until_ms=later_ms)
    )
    sooner = e.CooldownSet(domain="d", cause="throttled", until_ms=later_ms - 1)
    return fails(history, second, "throttled", sooner)


@plants.breaks("retries")
def a_pause_for_no_reason(history: History) -> int:
    paused = e.CooldownSet(domain="d", cause="throttled", until_ms=history.now_ms + 10_000)
    return history.append([], [paused])


@plants.cases()
def test_a_planted_defect_is_named_at_its_position(check: str, plant: Plant) -> None:
    judge(check, plant)


def test_failures_back_off_up_to_the_last_attempt_and_a_person_begins_anew() -> None:
    history = History()
    domain(history, attempts_max=2)
    operation = failed(history)
    back(history, operation)
    history.grant(operation)
    history.start(operation)
    fails(history, operation, "retryable", dead(operation, history, "attempts-exhausted"))
    retried(history, operation)
    history.run(operation)
    findings = history.audit(strict=True)
    assert findings.findings == ()
    assert findings.operations == {"succeeded": 1}


def test_keyed_work_runs_again_while_its_old_hold_stays() -> None:
    history = History()
    domain(history)
    operation = history.submit("a", effect="keyed")
    history.grant(operation)
    history.start(operation)
    old_ms = history.started_ms[operation]
    doubt(history, operation, scheduling(history, operation, "unknown"))
    old = history.grants[operation]
    back(history, operation)
    history.run(operation)
    new = history.grants[operation]
    history.grants[operation], history.started_ms[operation] = old, old_ms
    late = i.ResultReported(**history.named(operation), outcome="terminal")
    stale = e.ResultRefusedStale(
        **history.named(operation), code="epoch-superseded", outcome="terminal"
    )
    history.append([late], [stale, history.settling(operation)])
    history.grants[operation] = new
    findings = history.audit(strict=True)
    assert findings.findings == ()
    assert findings.reservations == {"settled": 2, "open": 0}


def test_a_person_may_try_unsafe_work_again_after_its_bound() -> None:
    history = History()
    operation = unknown(history)
    give_up(history, operation)
    retried(history, operation)
    history.run(operation)
    assert history.audit(strict=True).findings == ()


def test_a_pause_ends_with_its_time_or_with_a_new_configuration() -> None:
    history = History()
    domain(history)
    throttled(history, "a", history.now_ms + 10_000)
    history.wait(10_000)
    history.run(next(iter(history.admitted)))
    throttled(history, "b", None, "quota_exhausted")
    domain(history)
    history.run(list(history.admitted)[1])
    assert history.audit(strict=True).findings == ()
