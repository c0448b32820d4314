"""One bounded pass: from a free place to a grant, in the order of the domain's policy.

A head that does not fit is passed over, so that no budget idles while another head fits (R28).
"""

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from operator import itemgetter
from typing import NamedTuple

from schemas.codes import Code
from schemas.events import Event, OperationDeferred, OperationExpired, OperationParked
from schemas.lanes import BULK
from schemas.phase import Phase
from schemas.units import Millis

from . import lanes, saving, waiting
from .budgets import check, earliest_ms, never_fits
from .configured import Domain
from .counters import Counter
from .fairness import Lane, Policy
from .granting import grant
from .outcomes import Binds, Fits, Paced
from .queues import Waiting
from .state import State

BUDGET, PACE, RESERVE, SAVER = "budget", "pace", "reserve", "saver"
"""What can be in the way of a head."""


class Held(NamedTuple):
    """A head that could not go, and why."""

    counter: Counter
    head: Waiting
    binds: Binds | Paced
    by: str


def next_decision(state: State, domain: Domain) -> Sequence[Event]:
    """The next thing to decide in a domain: a grant, or a head that must leave its queue.

    Returns: empty when the pass over the domain is complete.
    """
    if domain.row.blocked or domain.row.cooldown_ms is not None:
        return []
    order = lanes.in_order(domain)
    if domain.row.skipped and (found := _first_in_line(state, domain, order)):
        return found
    return _in_turn(state, domain, order)


def _first_in_line(state: State, domain: Domain, order: Sequence[Lane]) -> Sequence[Event]:
    """The saver goes as soon as it fits; without one, a head that was passed over may begin."""
    for skipped in saving.first_in_line(state, domain):
        candidate = saving.candidate(state, domain, skipped)
        if candidate is None:
            continue
        head, _, counter = candidate
        if head.deadline_ms <= state.now_ms:
            return [_expired(state, counter, head, "deadline")]
        windows, cost = domain.levels(counter.tenant), domain.cost_of(head)
        lane = domain.lanes[skipped.lane]
        keep = lanes.to_keep(domain, order, lane, windows, cost)
        fit = check(windows, cost, now_ms=state.window_now_ms, keep=keep)
        if isinstance(fit, Fits):
            return [grant(state, domain, lane, candidate)]
        if not domain.row.saver:
            return [
                _must_leave(state, domain, counter, head)
                or saving.begin(state, domain, skipped, fit)
            ]
    return []


def _in_turn(state: State, domain: Domain, order: Sequence[Lane]) -> Sequence[Event]:
    """The first head, lane by lane and tenant by tenant, that fits and leaves what it must."""
    held: dict[str, Held] = {}
    now_ms = state.window_now_ms
    passed = saving.Passed(domain, now_ms)
    for lane in order:
        with closing(_candidates(state, domain, lane)) as candidates:
            for candidate in candidates:
                head, _, counter = candidate
                if head.deadline_ms <= state.now_ms:  # its timer is still behind others
                    return [_expired(state, counter, head, "deadline")]
                windows, cost = domain.levels(counter.tenant), domain.cost_of(head)
                keep = saving.to_keep(domain, order, lane, counter, head)
                fit = check(windows, cost, now_ms=now_ms, keep=keep)
                if isinstance(fit, Fits):
                    skipped = passed.by(counter)
                    return [grant(state, domain, lane, candidate, skipped=skipped)]
                leaving = _must_leave(state, domain, counter, head)
                if leaving is not None:
                    return [leaving]
                if isinstance(fit, Paced):
                    by = PACE
                else:
                    passed.add(counter, head, cost)
                    by = BUDGET if keep is None else _held_by(state, domain, order, lane, candidate)
                held.setdefault(by, Held(counter, head, fit, by))
                first = lane.name == BULK and order[0] is lane  # a large one of it leaves nothing
                if _exhausted(domain, now_ms, None if first else keep):
                    break
    return _deferrals(state, domain, held.values()) if held else []


def _held_by(
    state: State, domain: Domain, order: Sequence[Lane], lane: Lane, candidate: waiting.Candidate
) -> str:
    """What is in the way of a head that must leave something free."""
    head, _, counter = candidate
    windows, cost, now_ms = domain.levels(counter.tenant), domain.cost_of(head), state.window_now_ms
    if isinstance(check(windows, cost, now_ms=now_ms), Binds):
        return BUDGET
    reserve = lanes.to_keep(domain, order, lane, windows, cost)
    if reserve and isinstance(check(windows, cost, now_ms=now_ms, keep=reserve), Binds):
        return RESERVE
    return SAVER


_HEAD = itemgetter(0)


def _candidates(
    state: State, domain: Domain, lane: Lane
) -> Generator[waiting.Candidate, None, None]:
    """Heads whose pool has a free place, in the order of the policy; of one tenant oldest first.

    FIFO is an order of heads, not of tenants. Without a free place anywhere nobody is looked at,
    however many wait.
    """
    if all(state.free_member(place) is None for place in lane.places):
        return
    with closing(lane.in_order()) as counters:
        if lane.policy is Policy.FIFO:
            found = [one for each in counters for one in waiting.candidates(state, domain, each)]
            yield from sorted(found, key=_HEAD)
        else:
            for counter in counters:
                yield from waiting.candidates(state, domain, counter)


def _exhausted(domain: Domain, now_ms: Millis, keep: lanes.Keep | None) -> bool:
    """Whether no request or slot is to be had: every call needs one, so no other head fits either.

    Runs need neither.
    """
    return not domain.row.runs and any(
        (window.free < (1 if keep is None else 1 + keep(window)) or window.opens_ms > now_ms)
        for window in domain.windows
        if window.config.unit in ("requests", "slots")
    )


def _must_leave(
    state: State, domain: Domain, counter: Counter, head: Waiting
) -> OperationParked | OperationExpired | None:
    """A head that no time helps: configuration made it unfit, or it can only fit too late."""
    windows = domain.levels(counter.tenant)
    cost = domain.cost_of(head)
    never = never_fits(windows, cost)
    if never is not None:
        return OperationParked(
            tenant=counter.tenant,
            operation=head.operation,
            reason=Code.NEVER_FITS,
            level=never.level,
            dimension=never.dimension,
        )
    # No exit lies beyond this, so that a later deadline needs no look at the buckets.
    furthest = max(w.config.reset_uncertainty_ms + (w.config.window_ms or 0) for w in windows)
    furthest += domain.config.send_within_ms + domain.config.transit_ms + state.clocking.term_ms
    if head.deadline_ms > state.now_ms + 2 * furthest:
        return None
    earliest = earliest_ms(windows, cost, now_ms=state.window_now_ms)
    if earliest is None or earliest + state.cell.stepped_ms < head.deadline_ms:
        return None
    return _expired(state, counter, head, "not_before")


def _expired(state: State, counter: Counter, head: Waiting, reason: str) -> OperationExpired:
    row = state.operation(head.operation)
    assert row is not None
    return OperationExpired(
        tenant=counter.tenant, operation=head.operation, reason=reason, member=row.member
    )


def _deferrals(state: State, domain: Domain, held: Iterable[Held]) -> Sequence[Event]:
    """Record who could not go and why, at most once a domain in `deferral_sample_ms`."""
    last = domain.row.deferred_ms
    if last >= 0 and state.now_ms < last + state.bounds.deferral_sample_ms:
        return []
    return [_deferral(state, domain, one) for one in held]


def _deferral(state: State, domain: Domain, held: Held) -> OperationDeferred:
    earliest = None
    if held.by in (BUDGET, PACE):
        levels = domain.levels(held.counter.tenant)
        cost = domain.cost_of(held.head)
        earliest = earliest_ms(levels, cost, now_ms=state.window_now_ms)
    return OperationDeferred(
        tenant=held.counter.tenant,
        operation=held.head.operation,
        domain=domain.name,
        level=held.binds.level,
        dimension=held.binds.dimension,
        not_before_ms=None if earliest is None else Millis(earliest + state.cell.stepped_ms),
        held_by=held.by,
    )


# -- folds --------------------------------------------------------------------------------------


def deferred(state: State, event: OperationDeferred) -> None:
    """Remember when, for the sampling rule, and that the reserve held something back."""
    domain = state.config.domains[event.domain]
    domain.row.deferred_ms = state.now_ms
    state.put_domain(domain)
    if event.held_by == saving.FAR:
        saving.deferred(state, domain, event)
    elif event.held_by == RESERVE:
        lane = state.lane(event.domain, BULK)
        lane.held_back(lane.counter(event.tenant))


def expired(state: State, event: OperationExpired) -> None:
    """Over, without a start."""
    row = state.operation(event.operation)
    assert row is not None
    waiting.leave_queue(state, event.operation, row)
    state.finish(event.operation, row, Phase.EXPIRED)
