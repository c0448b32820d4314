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
from schemas.inputs import Prices
from schemas.phase import Phase
from schemas.units import Micros, Millis, Tokens

from . import lanes, membership, waiting
from .budgets import give_back, settle
from .cancellation import cancelled_work
from .costs import Used, cost_after, priced, settled_cost_ns
from .holds import HoldKey, key_of
from .limits import NOT_SENT_MAX
from .operations import AttemptRow, OperationRow
from .state import State
from .timers import Kind

NOT_SENT = "not_sent"
"""Accepted, and nothing went out: an outcome, and why a reservation was released."""


def settlement(
    state: State, operation: OperationId, attempt: AttemptRow, used: Used | None
) -> ReservationSettled:
    """The event that closes a reservation by what was used; None: as it was made."""
    held_ms = Millis(state.now_ms - attempt.granted_ms)
    reserved, actual = cost_after(attempt, None), cost_after(attempt, used)
    dimensions = state.config.domains[attempt.domain].dimensions()
    return ReservationSettled(
        **attempt.named(operation),
        domain=attempt.domain,
        tokens_reserved=attempt.tokens,
        tokens_actual=None if used is None else actual.tokens,
        overdraft_tokens=Tokens(max(0, actual.tokens - attempt.tokens)),
        held_ms=held_ms,
        cost_reserved_ns=attempt.cost_ns,
        cost_ns=settled_cost_ns(dimensions, reserved, actual, hold_ms=held_ms),
        input_tokens_actual=Tokens(0) if used is None else used.input_tokens,
        money_micros=actual.money,
    )


def told(
    one: AttemptRow | OperationRow,
    prices: Prices | None,
    prompt: Tokens | None,
    output: Tokens | None,
) -> Used | None:
    """What it used; None if unknown. Half a figure counts if it is above what was reserved for it.

    The other half then costs what was reserved.
    """
    if prompt is None or output is None:
        reserved = one.prompt_tokens, one.output_tokens_max
        prompt = max(reserved[0], prompt or Tokens(0))
        output = max(reserved[1], output or Tokens(0))
        if (prompt, output) == reserved:
            return None
    return priced(prices, prompt, output)


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
        row.charge(Tokens(0), Tokens(0), Micros(0), attempt.prices)  # recorded as not sent
        state.put(event.operation, row)
    lane, counter = state.counted(attempt)
    lane.correct(counter, -attempt.cost_ns, weight=attempt.weight, lift=attempt.lift)
    lanes.settle(state.config.domains[attempt.domain], lane, -attempt.cost_ns, attempt)
    attempt.charges = []


def settled(state: State, event: ReservationSettled) -> None:
    """The reservation is closed by what the call really took."""
    used = None
    if event.tokens_actual is not None:
        output = Tokens(event.tokens_actual - event.input_tokens_actual)
        used = Used(event.input_tokens_actual, output, event.money_micros)
    attempt = _charged(state, event, used)
    domain = state.config.domains[attempt.domain]
    lane, counter = state.counted(attempt)
    delta_ns = event.cost_ns - event.cost_reserved_ns
    lane.correct(counter, delta_ns, weight=attempt.weight, lift=attempt.lift)
    lanes.settle(domain, lane, delta_ns, attempt)
    if attempt.uncertain is None:  # a hold tells how long nobody knew, not how long a call takes
        lane.settled_hold(counter, event.held_ms, domain.config.hold_initial_ms)


def forfeited(state: State, event: ReservationForfeited) -> None:
    """Closed without knowledge: the slot is back, the tokens are spent in full."""
    _charged(state, event, None)


def _charged(
    state: State,
    event: ReservationSettled | ReservationForfeited,
    used: Used | None,
) -> AttemptRow:
    attempt = _close(state, event)
    actual = cost_after(attempt, used)
    settle(
        state.held(attempt),
        actual,
        now_ms=state.now_ms,
        send_within_ms=attempt.send_within_ms,
        clocking=state.clocking,
    )
    attempt.charges = []
    row = state.operation(event.operation)
    if row is not None and row.is_newest(attempt):
        row.charge(actual.input_tokens, actual.output_tokens, actual.money, attempt.prices)
        if row.result_epoch != event.epoch:  # no result of it was recorded
            row.ended(event)
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
    state.config.domains[attempt.domain].freed(attempt.tenant)
    return attempt
