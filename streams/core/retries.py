"""Another attempt, or none: by the owner alone, bounded, with backoff, before the deadline (R76).

An attempt that failed or stayed unknown counts; one that the provider refused does not, and pauses
the whole domain instead. Retries are paid from a budget that first starts earn, one for each tenant
and domain, so that retries never outgrow `retry_percent` of the work for long.

>>> [backoff_ms(Millis(1_000), tries) for tries in range(4)]
[1000, 2000, 4000, 8000]
"""

from collections.abc import Sequence

from schemas.codes import Code
from schemas.events import (
    CooldownSet,
    Event,
    ManualRetryAccepted,
    OperationDeadLettered,
    OperationUnparked,
    RetryScheduled,
)
from schemas.ids import DomainId, OperationId
from schemas.inputs import RetryRequested
from schemas.phase import Phase
from schemas.units import Millis

from . import uncertain, waiting
from .by_hand import refused, unsigned
from .cancellation import cancelled_work
from .limits import BACKOFF_MS_MAX, COOLDOWN_MS_MAX
from .operations import OperationRow
from .outcomes import Unreadable
from .settlement import NOT_SENT, after_return
from .state import State
from .tables import Table, pack
from .timers import Kind

SAFE = frozenset(("read_only", "keyed"))
"""Effect classes that may be tried again though the outcome is unknown (R79)."""
HUNDRED = 100


def backoff_ms(first_ms: Millis, tries: int) -> Millis:
    """How long to wait before another attempt after so many that counted: doubling, bounded."""
    return Millis(min(first_ms << min(tries, 32), BACKOFF_MS_MAX))


def after_failure(state: State, operation: OperationId, row: OperationRow) -> Sequence[Event]:
    """After a retryable failure, which is not counted yet: another attempt, or none."""
    if row.cancel_reason is not None:
        return [cancelled_work(operation, row, row.cancel_reason)]
    code = _none_left(state, row)
    if code is not None:
        return [_dead(operation, row, code)]
    return [_scheduled(state, operation, row, "retryable")]


def after_unknown(
    state: State, operation: OperationId, row: OperationRow, *, spent: int
) -> Sequence[Event]:
    """Work that may be repeated safely is; anything else waits for evidence.

    `spent` counts the retries of its tenant and domain that the same decision has scheduled before.
    """
    if row.effect not in SAFE or row.cancel_reason is not None or _none_left(state, row, spent):
        return []
    return [_scheduled(state, operation, row, "unknown")]


def after_refusal(state: State, operation: OperationId, row: OperationRow) -> Sequence[Event]:
    """The provider did not take it: it waits again, unless that has happened too often."""
    config = state.config.domains[row.domain].config
    if row.cancel_reason is None and row.more.throttles >= config.throttles_max:
        return [_dead(operation, row, Code.THROTTLES_EXHAUSTED)]
    return after_return(state, operation, row)


def cooldown(
    state: State, domain: DomainId, cause: str, retry_after_ms: Millis | None
) -> Sequence[Event]:
    """The domain grants nothing for a while; the end of a pause only moves later (F18).

    Without a hint a throttle pauses for `cooldown_ms`; what only a person can mend, until an
    operator configures the domain again (F17).
    """
    config, row = state.config.domains[domain].config, state.config.domains[domain].row
    hint_ms = None if retry_after_ms is None or retry_after_ms < 0 else retry_after_ms
    if hint_ms is None and cause == "throttled":
        hint_ms = config.cooldown_ms
    if hint_ms is None:
        return [] if row.blocked else [CooldownSet(domain=domain, cause=cause)]
    until_ms = Millis(state.now_ms + min(hint_ms, COOLDOWN_MS_MAX))
    if row.blocked or until_ms <= max(state.now_ms, row.cooldown_ms or 0):
        return []
    return [CooldownSet(domain=domain, cause=cause, until_ms=until_ms)]


def backoff_due(state: State, operation: OperationId) -> Sequence[Event]:
    """The backoff is over."""
    row = state.operation(operation)
    assert row is not None
    return [OperationUnparked(tenant=row.tenant, operation=operation)]


def retry(state: State, asked: RetryRequested) -> Sequence[Event] | Unreadable:
    """Try a dead or closed operation again, under its id, as if for the first time."""
    unheard = unsigned(state.bounds, asked)
    if unheard is not None:
        return unheard
    furthest = state.bounds.start_within_ms_max
    row = state.operation(asked.operation)
    if row is None or row.tenant != asked.tenant:
        return [refused(asked, Code.NOT_FOUND, "Expected an operation of the tenant")]
    if row.phase not in (Phase.DEAD, Phase.UNKNOWN_CLOSED):
        detail = f"Expected a dead or closed operation, but it is {row.phase}"
        return [refused(asked, Code.NOT_DEAD, detail)]
    if not 0 < asked.start_within_ms <= furthest:
        detail = f"Expected start_within_ms from 1 to {furthest}, but got {asked.start_within_ms}"
        return [refused(asked, Code.INVALID_FIELD, detail)]
    return [
        ManualRetryAccepted(
            tenant=asked.tenant,
            operation=asked.operation,
            deadline_ms=Millis(state.now_ms + asked.start_within_ms),
            author=asked.author,
            reason=asked.reason,
        )
    ]


def _none_left(state: State, row: OperationRow, spent: int = 0) -> Code | None:
    """Why another attempt would be one too many, or None; the failing one is not counted yet."""
    config = state.config.domains[row.domain].config
    if row.more.tries + 1 >= config.attempts_max:
        return Code.ATTEMPTS_EXHAUSTED
    if _credit(state, row) < HUNDRED * (1 + spent):
        return Code.RETRY_BUDGET_EXHAUSTED
    if state.now_ms + backoff_ms(config.retry_backoff_ms, row.more.tries) >= row.deadline_ms:
        return Code.DEADLINE_PASSED
    return None


def _scheduled(
    state: State, operation: OperationId, row: OperationRow, cause: str
) -> RetryScheduled:
    config = state.config.domains[row.domain].config
    wait_ms = backoff_ms(config.retry_backoff_ms, row.more.tries)
    return RetryScheduled(
        tenant=row.tenant,
        operation=operation,
        incarnation=row.incarnation,
        attempt=row.starts,
        epoch=row.epoch,
        cause=cause,
        not_before_ms=Millis(state.now_ms + wait_ms),
    )


def _dead(operation: OperationId, row: OperationRow, code: Code) -> OperationDeadLettered:
    return OperationDeadLettered(
        tenant=row.tenant,
        operation=operation,
        incarnation=row.incarnation,
        reason=code,
        member=row.member,
    )


def _credit(state: State, row: OperationRow) -> int:
    """Retries left, in hundredths."""
    most = state.config.domains[row.domain].config.retry_burst * HUNDRED
    return min(most, state.credit.get((row.domain, row.tenant), most))


# -- folds --------------------------------------------------------------------------------------


def earn(state: State, row: OperationRow) -> None:
    """A first start earns a part of a retry, as long as some are missing."""
    if (row.domain, row.tenant) in state.credit:
        config = state.config.domains[row.domain].config
        _put_credit(state, row, _credit(state, row) + config.retry_percent)


def recorded(row: OperationRow, outcome: str) -> None:
    """Count what did not end the operation."""
    if outcome == NOT_SENT:
        row.not_sent += 1
    elif outcome == "retryable":
        row.extend().tries += 1
    else:
        row.extend().throttles += 1


def scheduled(state: State, event: RetryScheduled) -> None:
    """Out of the ready set until its backoff is over; an unknown attempt keeps its hold."""
    operation, row = event.operation, state.operation(event.operation)
    assert row is not None
    if row.phase is Phase.UNKNOWN:
        row.extend().tries += 1
        uncertain.set_aside(state, operation)
        waiting.wait(state, operation, row)
    waiting.unqueue(state, row)
    _put_credit(state, row, _credit(state, row) - HUNDRED)
    row.phase, row.extend().not_before_ms = Phase.PARKED, event.not_before_ms
    state.timers.set(event.not_before_ms, Kind.RETRY, operation)
    state.put(operation, row)


def dead(state: State, event: OperationDeadLettered) -> None:
    """Over, until a person wants another attempt."""
    row = state.operation(event.operation)
    assert row is not None
    waiting.leave_queue(state, event.operation, row)
    state.finish(event.operation, row, Phase.DEAD)


def retried(state: State, event: ManualRetryAccepted) -> None:
    """It waits as on its first day."""
    operation, row = event.operation, state.operation(event.operation)
    assert row is not None
    state.unfinish(operation, row)
    row.deadline_ms, row.not_sent, row.cancel_reason = event.deadline_ms, 0, None
    if row.extra is not None:
        row.extra.tries = row.extra.throttles = 0
    waiting.wait(state, operation, row)


def paused(state: State, event: CooldownSet) -> None:
    """No grants in this domain until then, or until it is configured again."""
    domain = state.config.domains[event.domain]
    if event.until_ms is None:
        domain.row.blocked = True
    else:
        domain.row.cooldown_ms = event.until_ms
    state.put_domain(domain)


def _put_credit(state: State, row: OperationRow, credit: int) -> None:
    key = row.domain, row.tenant
    if credit >= state.config.domains[row.domain].config.retry_burst * HUNDRED:
        state.credit.pop(key, None)
        state.rows.delete(Table.RETRY, pack(*key))
    else:
        state.credit[key] = credit
        state.rows.put(Table.RETRY, pack(*key), credit)
