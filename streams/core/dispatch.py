"""One bounded pass: from a free place to a grant, in the order of the domain's policy.

A head that does not fit is passed over, so that no budget idles while another head fits (R28).
"""

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from functools import partial
from operator import le
from typing import NamedTuple

from schemas.codes import Code
from schemas.events import Event, OperationDeferred, OperationExpired, OperationParked
from schemas.ids import OperationId
from schemas.lanes import BULK
from schemas.phase import Phase
from schemas.units import Millis

from . import lanes, saving, waiting
from .budgets import check, earliest_ms, never_fits, room
from .configured import Domain
from .counters import Counter
from .fairness import Lane
from .granting import grant
from .heads import Stand
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
    return _Pass(state, domain, order).decide()


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


class _Pass:
    """A look at the heads of a domain, lane by lane: the first that fits and leaves what it must.

    Looked at in full is the first that the shared budget holds back; of those behind it only they
    are of interest for which there is room. Whom its own caps hold back is set aside until they
    have more room.
    """

    def __init__(self, state: State, domain: Domain, order: Sequence[Lane]) -> None:
        self._state = state
        self._domain = domain
        self._order = order
        self._is_free = partial(waiting.is_free, state, domain)
        self._held: dict[str, Held] = {}
        self._skipped: OperationId | None = None
        """The first that the shared budget holds back: every grant passes it over."""
        self._narrow = False
        """Whether somebody in the lane waits for the shared budget."""

    def decide(self) -> Sequence[Event]:
        """Empty when nothing fits and nobody has to be told again."""
        state, domain = self._state, self._domain
        for lane in self._order:
            with closing(self._heads(lane)) as heads:
                for counter, stand in heads:
                    candidate = waiting.candidate(state, counter, stand)
                    head, fit, keep = candidate[0], *self._fit(lane, candidate)
                    if not isinstance(fit, Fits):
                        if not isinstance(self._own_fit(counter, head), Fits):
                            self._set_aside(lane, counter, stand)
                            continue
                        if self._narrow:
                            continue
                    if head.deadline_ms <= state.now_ms:  # its timer is still behind others
                        return [_expired(state, counter, head, "deadline")]
                    if isinstance(fit, Fits):
                        skipped = self._skipped_by(lane, candidate)
                        return [grant(state, domain, lane, candidate, skipped=skipped)]
                    leaving = _must_leave(state, domain, counter, head)
                    if leaving is not None:
                        return [leaving]
                    self._hold(lane, candidate, fit, keep)
        return self._none_fits()

    def _heads(self, lane: Lane) -> Generator[tuple[Counter, Stand], None, None]:
        """In order; behind the one that the shared budget holds back those for whom it has room."""
        domain = self._domain
        self._narrow = False
        with closing(lane.in_order(self._is_free)) as everybody:
            for one in everybody:
                yield one
                if self._narrow:
                    break
        if self._narrow:
            keep = saving.least_to_keep(domain, self._order, lane)
            most = room(domain.windows, now_ms=self._state.window_now_ms, keep=keep)
            with closing(lane.in_order(self._is_free, most)) as others:
                yield from others

    def _set_aside(self, lane: Lane, counter: Counter, stand: Stand) -> None:
        """Its own caps hold it back; where it stands for others they may have room for one."""
        if stand.least is not None:
            own = self._domain.tenant_windows.get(counter.tenant, ())
            if all(map(le, stand.least, room(own, now_ms=self._state.window_now_ms))):
                return
        lane.set_aside(counter, stand)

    def _own_fit(self, counter: Counter, head: Waiting) -> Fits | Binds | Paced:
        """What the tenant's own caps say."""
        domain = self._domain
        own, cost = domain.tenant_windows.get(counter.tenant, ()), domain.cost_of(head)
        return check(own, cost, now_ms=self._state.window_now_ms)

    def _skipped_by(self, lane: Lane, candidate: waiting.Candidate) -> OperationId | None:
        """An older head of the same tenant, or else the one that every grant passes over."""
        head, _, counter = candidate
        if len(counter.queues) > 1:
            oldest = lane.oldest(counter, self._is_free)
            if oldest is not head:
                return oldest.operation
        return self._skipped

    def _none_fits(self) -> Sequence[Event]:
        """Whoever holds itself back counts only now, and only if its turn comes first."""
        state, domain = self._state, self._domain
        for lane in self._order:
            first = lane.first(self._is_free)
            if first is None:
                continue
            counter, head = first[0], first[1].head()
            fit = self._own_fit(counter, head)
            if isinstance(fit, Fits):
                continue
            leaving = _must_leave(state, domain, counter, head)
            if leaving is not None:
                return [leaving]
            by = PACE if isinstance(fit, Paced) else BUDGET
            self._held.setdefault(by, Held(counter, head, fit, by))
        return _deferrals(state, domain, self._held.values()) if self._held else []

    def _fit(
        self, lane: Lane, candidate: waiting.Candidate
    ) -> tuple[Fits | Binds | Paced, lanes.Keep | None]:
        head, _, counter = candidate
        domain = self._domain
        keep = saving.to_keep(domain, self._order, lane, counter, head)
        windows, cost = domain.levels(counter.tenant), domain.cost_of(head)
        return check(windows, cost, now_ms=self._state.window_now_ms, keep=keep), keep

    def _hold(
        self, lane: Lane, candidate: waiting.Candidate, fit: Binds | Paced, keep: lanes.Keep | None
    ) -> None:
        """It waits for the shared budget."""
        head, _, counter = candidate
        if isinstance(fit, Paced):
            by = PACE
        else:
            by = BUDGET if keep is None else self._held_by(lane, candidate)
            if self._skipped is None:
                self._skipped = head.operation
        self._narrow = head.sequence != self._domain.row.saver
        self._held.setdefault(by, Held(counter, head, fit, by))

    def _held_by(self, lane: Lane, candidate: waiting.Candidate) -> str:
        """What is in the way of a head that must leave something free."""
        head, _, counter = candidate
        domain, now_ms = self._domain, self._state.window_now_ms
        windows, cost = domain.levels(counter.tenant), domain.cost_of(head)
        if isinstance(check(windows, cost, now_ms=now_ms), Binds):
            return BUDGET
        reserve = lanes.to_keep(domain, self._order, lane, windows, cost)
        if reserve and isinstance(check(windows, cost, now_ms=now_ms, keep=reserve), Binds):
            return RESERVE
        return SAVER


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
    furthest += domain.config.send_within_ms + domain.config.transit_ms + state.config.aging.term_ms
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
