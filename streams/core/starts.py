"""The handshake before a call: only an accepted start may go out, and when it can have arrived."""

from collections.abc import Sequence

from schemas.codes import Code
from schemas.events import Event, GrantIssued, SendObserved, StartAccepted, StartRefused
from schemas.ids import DomainId
from schemas.inputs import SendReported, StartRequested
from schemas.phase import Phase
from schemas.units import Millis

from . import leases, retries
from .budgets import set_arrival
from .fencing import named, not_startable, stale
from .operations import AttemptRow, Named
from .outcomes import Unreadable
from .state import State
from .timers import Kind


def start(state: State, asked: StartRequested) -> Sequence[Event]:
    """Accept, with the claim in the same entry, or refuse: then no call may go out (R62)."""
    code = not_startable(state, asked)
    if code is not None:
        return [StartRefused(**named(asked), code=code)]
    attempt = state.attempts[asked.operation]
    if attempt.lease_ms is not None and leases.ends_ms(state, attempt) <= state.lease_now_ms:
        return [StartRefused(**named(asked), code=Code.LEASE_NOT_HELD)]
    accepted = _accept(state, asked, attempt.domain, attempt.send_within_ms)
    if attempt.lease_ms is not None:
        return [accepted]
    return [leases.lease(state, asked), accepted]


def at_once(state: State, grant: GrantIssued) -> Sequence[Event]:
    """Claim and start of a grant that is a standing start; nothing for any other (R185)."""
    if grant.started_ms is None:
        return []
    accepted = _accept(state, grant, grant.domain, grant.send_within_ms)
    return [leases.lease(state, grant), accepted]


def _accept(
    state: State, asked: StartRequested | GrantIssued, domain: DomainId, send_within_ms: Millis
) -> StartAccepted:
    transit_ms = state.config.domains[domain].config.transit_ms
    row = state.operation(asked.operation)
    assert row is not None
    return StartAccepted(
        **named(asked),
        send_within_ms=send_within_ms,
        latest_arrival_ms=Millis(state.now_ms + send_within_ms + transit_ms),
        commits_entitlement=row.starts == 0,
    )


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
    if not attempt.is_open:  # what it was charged is settled, and moves no more
        return []
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
    if not row.starts:
        retries.earn(state, row)
    row.starts += 1
    state.put(event.operation, row)
    state.timers.unset(attempt.claim_by_ms, Kind.CLAIM_BY, event.operation)
    attempt.accepted_ms = Millis(state.now_ms - state.cell.stepped_ms)
    if attempt.lease_ms is not None:
        runtime_ms = state.config.runtime_ms(row.tenant, row.more.runtime_ms)
        attempt.runtime_ms = Millis(state.lease_now_ms + runtime_ms)
        leases.watch(state, attempt, Millis(state.now_ms + runtime_ms))
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
