"""The handshake before a call: only an accepted start may go out, and when it can have arrived."""

from collections.abc import Sequence

from schemas.codes import Code
from schemas.events import Event, LeaseClaimed, SendObserved, StartAccepted, StartRefused
from schemas.inputs import ResultReported, SendReported, StartRequested
from schemas.phase import Phase
from schemas.units import Millis

from .budgets import set_arrival
from .operations import AttemptRow, Named
from .outcomes import Unreadable
from .state import State
from .timers import Kind

Attempted = StartRequested | SendReported | ResultReported


def named(asked: Attempted) -> Named:
    """How the input names the attempt."""
    return Named(
        tenant=asked.tenant,
        operation=asked.operation,
        incarnation=asked.incarnation,
        attempt=asked.attempt,
        epoch=asked.epoch,
        member=asked.member,
        member_epoch=asked.member_epoch,
    )


def stale(state: State, asked: Attempted) -> Code | None:
    """Why the input does not speak for the newest attempt of its operation, or None (R68)."""
    attempt = state.attempts.get(asked.operation)
    if attempt is not None and _speaks_for(asked, attempt):
        return None
    row = state.operation(asked.operation)
    if row is None or row.tenant != asked.tenant:
        return Code.NOT_FOUND
    return Code.EPOCH_SUPERSEDED


def _speaks_for(asked: Attempted, attempt: AttemptRow) -> bool:
    return (
        asked.epoch == attempt.epoch
        and asked.attempt == attempt.attempt
        and asked.incarnation == attempt.incarnation
        and asked.tenant == attempt.tenant
        and asked.member == attempt.member
        and asked.member_epoch == attempt.member_epoch
    )


def start(state: State, asked: StartRequested) -> Sequence[Event]:
    """Accept, with the claim in the same entry, or refuse: then no call may go out (R62)."""
    code = stale(state, asked)
    if code is not None:
        return [StartRefused(**named(asked), code=code)]
    attempt = state.attempts[asked.operation]
    row = state.operation(asked.operation)
    assert row is not None
    if attempt.accepted_ms is not None:
        return [StartRefused(**named(asked), code=Code.START_REFUSED)]
    if state.now_ms >= row.deadline_ms:
        return [StartRefused(**named(asked), code=Code.DEADLINE_PASSED)]
    if state.now_ms >= attempt.claim_by_ms:
        return [StartRefused(**named(asked), code=Code.START_REFUSED)]
    transit_ms = state.config.domains[attempt.domain].config.transit_ms
    latest_ms = Millis(state.now_ms + attempt.send_within_ms + transit_ms)
    name = named(asked)
    return [
        LeaseClaimed(**name, expires_ms=None),
        StartAccepted(
            **name,
            send_within_ms=attempt.send_within_ms,
            latest_arrival_ms=latest_ms,
        ),
    ]


def sent(state: State, asked: SendReported) -> Sequence[Event] | Unreadable:
    """A send report moves the arrival earlier, never later, and only once (R173)."""
    if asked.send_delay_ms < 0:
        return Unreadable(
            Code.INVALID_FIELD, f"Expected a delay of 0 or more, but got {asked.send_delay_ms}"
        )
    if stale(state, asked) is not None:
        return []
    attempt = state.attempts[asked.operation]
    return observe(state, attempt, named(asked), asked.send_delay_ms)


def observe(
    state: State, attempt: AttemptRow, name: Named, send_delay_ms: Millis | None
) -> Sequence[Event]:
    """The event of a believable send delay: not negative, within the bound, the first one."""
    if send_delay_ms is None or send_delay_ms < 0 or attempt.observed:
        return []
    if attempt.accepted_ms is None or attempt.latest_arrival_ms is None:
        return []
    transit_ms = state.config.domains[attempt.domain].config.transit_ms
    stepped_ms = state.cell.stepped_ms  # a step moves what was accepted before it
    latest_ms = Millis(attempt.accepted_ms + stepped_ms + send_delay_ms + transit_ms)
    if latest_ms >= attempt.latest_arrival_ms + stepped_ms:
        return []
    return [SendObserved(**name, latest_arrival_ms=latest_ms)]


# -- folds --------------------------------------------------------------------------------------


def accepted(state: State, event: StartAccepted) -> None:
    """The call may go out: from here on its charges leave with their windows."""
    row, attempt = state.operation(event.operation), state.attempts[event.operation]
    assert row is not None
    row.phase = Phase.STARTED
    row.starts += 1
    state.put(event.operation, row)
    state.timers.unset(attempt.claim_by_ms, Kind.CLAIM_BY, event.operation)
    attempt.accepted_ms = Millis(state.now_ms - state.cell.stepped_ms)
    _arrives(state, attempt, event.latest_arrival_ms)
    state.put_attempt(event.operation, attempt)


def observed(state: State, event: SendObserved) -> None:
    """The call was sent earlier than assumed."""
    attempt = state.attempts[event.operation]
    attempt.observed = True
    _arrives(state, attempt, event.latest_arrival_ms)
    state.put_attempt(event.operation, attempt)


def _arrives(state: State, attempt: AttemptRow, latest_ms: Millis) -> None:
    attempt.latest_arrival_ms = Millis(latest_ms - state.cell.stepped_ms)
    set_arrival(
        state.held(attempt),
        latest_ms=latest_ms,
        send_within_ms=attempt.send_within_ms,
        clocking=state.clocking,
    )
