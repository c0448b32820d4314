"""How a reservation ends: settled by use, returned unused, forfeited; what its work does then."""

from collections.abc import Sequence

from schemas.codes import Code
from schemas.events import (
    Event,
    GrantExpired,
    GrantRevoked,
    OperationExpired,
    ReservationExpired,
    ReservationForfeited,
    ReservationReleased,
    ReservationSettled,
)
from schemas.ids import OperationId
from schemas.phase import Phase
from schemas.units import Millis, Tokens

from . import lanes, membership, waiting
from .budgets import Cost, give_back, settle, settled_cost_ns
from .cancellation import cancelled_work
from .holds import HoldKey, key_of
from .limits import NOT_SENT_MAX
from .operations import AttemptRow, OperationRow
from .state import State
from .timers import Kind

NOT_SENT = "not_sent"
"""Accepted, and nothing went out: an outcome, and why a reservation was released."""


def settlement(
    state: State, operation: OperationId, attempt: AttemptRow, used: Tokens | None
) -> ReservationSettled:
    """The event that closes a reservation by what was used; None: as it was made."""
    held_ms = Millis(state.now_ms - attempt.granted_ms)
    return ReservationSettled(
        **attempt.named(operation),
        domain=attempt.domain,
        tokens_reserved=attempt.tokens,
        tokens_actual=used,
        overdraft_tokens=Tokens(0 if used is None else max(0, used - attempt.tokens)),
        held_ms=held_ms,
        cost_reserved_ns=attempt.cost_ns,
        cost_ns=settled_cost_ns(
            state.config.domains[attempt.domain].dimensions(),
            Cost(attempt.requests, attempt.tokens, attempt.slots),
            tokens_actual=used,
            hold_ms=held_ms,
        ),
    )


def used_tokens(reserved: Tokens, prompt: Tokens | None, output: Tokens | None) -> Tokens | None:
    """Tokens used; None if unknown. Half a figure counts when it alone is above the reservation."""
    least = Tokens((prompt or 0) + (output or 0))
    known = prompt is not None and output is not None
    return least if known or least > reserved else None


def claim_by_due(state: State, operation: OperationId) -> Sequence[Event]:
    """An unstarted grant ends at its claim-by; the work waits again, or its deadline has come."""
    attempt, row = state.attempts[operation], state.operation(operation)
    assert row is not None
    name = attempt.named(operation)
    return [
        GrantExpired(**name),
        ReservationExpired(**name),
        *after_return(state, operation, row),
        *membership.after_end(state, attempt, [operation]),
    ]


def deadline_due(state: State, operation: OperationId) -> Sequence[Event]:
    """Waiting or parked work whose deadline has come."""
    row = state.operation(operation)
    assert row is not None
    return [_expired(operation, row)]


def after_return(
    state: State, operation: OperationId, row: OperationRow, *, not_sent: int = 0
) -> Sequence[Event]:
    """What becomes of work that came back without a call (WAITING+ in requirements C1)."""
    if row.cancel_reason is not None:
        return [cancelled_work(operation, row, row.cancel_reason)]
    if state.now_ms >= row.deadline_ms:
        return [_expired(operation, row)]
    if row.not_sent + not_sent >= NOT_SENT_MAX:
        return [_expired(operation, row, reason=Code.NOT_SENT_EXHAUSTED)]
    return []


def _expired(
    operation: OperationId, row: OperationRow, reason: str = "deadline"
) -> OperationExpired:
    return OperationExpired(
        tenant=row.tenant, operation=operation, reason=reason, member=row.member
    )


# -- folds --------------------------------------------------------------------------------------


def grant_ended(state: State, event: GrantExpired | GrantRevoked) -> None:
    """Unstarted: the place is free and the work waits at its old sequence."""
    row, attempt = state.operation(event.operation), state.attempts[event.operation]
    assert row is not None
    state.timers.unset(attempt.claim_by_ms, Kind.CLAIM_BY, event.operation)
    state.vacate(event.operation, attempt)
    waiting.wait(state, event.operation, row)


def returned(state: State, event: ReservationReleased | ReservationExpired) -> None:
    """The reservation ended unused: every window and the counter get it back."""
    attempt = _close(state, event)
    give_back(state.held(attempt), state.clocking)
    row = state.operation(event.operation)
    if row is not None and row.is_newest(attempt) and row.result_epoch == event.epoch:
        row.charged_tokens = Tokens(0)  # recorded as not sent
        state.put(event.operation, row)
    lane, counter = state.counted(attempt)
    lane.correct(counter, -attempt.cost_ns, weight=attempt.weight, lift=attempt.lift)
    lanes.settle(state.config.domains[attempt.domain], lane, -attempt.cost_ns, attempt)
    attempt.charges = []


def settled(state: State, event: ReservationSettled) -> None:
    """The reservation is closed by what the call really took."""
    used = event.tokens_reserved if event.tokens_actual is None else event.tokens_actual
    attempt = _charged(state, event, used=event.tokens_actual, charged=used)
    domain = state.config.domains[attempt.domain]
    lane, counter = state.counted(attempt)
    delta_ns = event.cost_ns - event.cost_reserved_ns
    lane.correct(counter, delta_ns, weight=attempt.weight, lift=attempt.lift)
    lanes.settle(domain, lane, delta_ns, attempt)
    if attempt.uncertain is None:  # a hold tells how long nobody knew, not how long a call takes
        lane.settled_hold(counter, event.held_ms, domain.config.hold_initial_ms)


def forfeited(state: State, event: ReservationForfeited) -> None:
    """Closed without knowledge: the slot is back, the tokens are spent in full."""
    _charged(state, event, used=None, charged=event.tokens_reserved)


def _charged(
    state: State,
    event: ReservationSettled | ReservationForfeited,
    *,
    used: Tokens | None,
    charged: Tokens,
) -> AttemptRow:
    attempt = _close(state, event)
    settle(
        state.held(attempt),
        tokens_actual=used,
        now_ms=state.now_ms,
        send_within_ms=attempt.send_within_ms,
        clocking=state.clocking,
    )
    attempt.charges = []
    row = state.operation(event.operation)
    if row is not None and row.is_newest(attempt):
        row.charged_tokens = charged
        if row.result_epoch != event.epoch:  # no result of it was recorded
            row.result_epoch, row.result_digest = event.epoch, b""
        state.put(event.operation, row)
    return attempt


def _close(
    state: State,
    event: ReservationReleased | ReservationExpired | ReservationSettled | ReservationForfeited,
) -> AttemptRow:
    """The reservation is over. The attempt too, unless its outcome stays unknown."""
    operation = event.operation
    attempt = state.attempts.get(operation)
    named = HoldKey(operation, event.incarnation, event.epoch)
    if attempt is None or key_of(operation, attempt) != named:
        attempt = state.holds.drop(named)
    else:
        row = state.operation(operation)
        if row is not None and row.phase is Phase.UNKNOWN:
            assert attempt.uncertain is not None, "Expected an unknown attempt"
            state.holds.unwatch(operation, attempt)
            attempt.uncertain.closed, attempt.uncertain.proof_ms = True, None
            state.holds.watch(operation, attempt)
            state.put_attempt(operation, attempt)
        else:
            state.drop_attempt(operation)
    state.touch(attempt.domain)
    return attempt
