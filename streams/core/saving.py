"""Saving mode: a head that others keep passing gets its whole cost kept free (R36).

A stream of small calls starves a large head for ever, since none of them leaves enough room. So a
head whose turn came first and that was passed over too often, or for too long, becomes the saver of
its domain: others use only what is above its whole cost, in each dimension that both use, its
tenant's own caps among them. One saver a domain, so that no two wait for each other; it ends when
the head leaves its queue, in whatever way, when nobody is left to run it, and with a change of
configuration.
"""

from collections.abc import Sequence

from schemas.events import OperationDeferred, SavingStarted
from schemas.ids import OperationId
from schemas.lanes import BULK, LANES
from schemas.units import Millis

from . import lanes, waiting
from .budgets import earliest_ms
from .configured import Domain
from .counters import Counter
from .fairness import Lane
from .limits import SKIPPED_MAX
from .outcomes import Binds, Paced
from .pools import place_of
from .queues import Waiting
from .rows import SkippedRow
from .state import State
from .waiting import Candidate
from .windows import Window

FAR = "far"
"""What is in the way of a head that would save for too long."""


def first_in_line(state: State, domain: Domain) -> Sequence[SkippedRow]:
    """The saver; without one, the heads that must save or be granted now, longest waiting first."""
    saver = domain.row.saving
    if saver is not None:
        return [saver]
    now_ms, config = state.window_now_ms, domain.config
    due = [
        one
        for one in domain.row.skipped
        if (one.skips >= config.skips_max or now_ms - one.since_ms >= config.age_max_ms)
        and (one.not_before_ms is None or one.not_before_ms <= now_ms)
    ]
    return sorted(due, key=lambda one: one.head.sequence)


def candidate(state: State, domain: Domain, skipped: SkippedRow) -> Candidate | None:
    """The head of its queue, if that has a place: itself, or one that came back before it."""
    if not waiting.is_free(state, domain, skipped.place):
        return None
    counter = domain.lanes[skipped.lane].counters[skipped.tenant]
    return waiting.candidate(state, counter, counter.queues[skipped.place])


def begin(
    state: State, domain: Domain, skipped: SkippedRow, fit: Binds | Paced
) -> SavingStarted | OperationDeferred:
    """It saves, unless even its earliest fit is too far: then it is first in line at that time."""
    now_ms, cost = state.window_now_ms, domain.cost_of(skipped.head)
    each = [
        earliest_ms([window], cost, now_ms=now_ms) or Millis(0)
        for window in domain.levels(skipped.tenant)
    ]
    if max(each) > now_ms + domain.config.saving_max_ms:
        return OperationDeferred(
            tenant=skipped.tenant,
            operation=skipped.head.operation,
            domain=domain.name,
            level=fit.level,
            dimension=fit.dimension,
            not_before_ms=Millis(max(each) + state.cell.stepped_ms),
            held_by=FAR,
        )
    return SavingStarted(
        tenant=skipped.tenant,
        operation=skipped.head.operation,
        domain=domain.name,
        lane=skipped.lane,
        skips=skipped.skips,
        since_ms=skipped.since_ms,
    )


def to_keep(
    domain: Domain, order: Sequence[Lane], lane: Lane, counter: Counter, head: Waiting
) -> lanes.Keep | None:
    """What a head must leave free for other lanes and for the saver; None if it may take all.

    A saver holds back its own lane and lower ones; one of bulk holds back every lane while bulk is
    owed its floor. It waits for its cost and its reserve, so that bulk leaves it both.
    """
    if lane.name != BULK and not domain.row.saver:
        return None
    windows, cost = domain.levels(counter.tenant), domain.cost_of(head)
    reserve = lanes.to_keep(domain, order, lane, windows, cost)
    saver = domain.row.saving
    if saver is None or saver.head.sequence == head.sequence:
        return reserve
    return _beside(domain, order, lane, reserve, own=counter.tenant == saver.tenant)


def least_to_keep(domain: Domain, order: Sequence[Lane], lane: Lane) -> lanes.Keep | None:
    """What every head of the lane but the saver must leave free of the shared budget."""
    return _beside(domain, order, lane, lanes.least_to_keep(domain, order, lane), own=False)


def _beside(
    domain: Domain, order: Sequence[Lane], lane: Lane, reserve: lanes.Keep | None, *, own: bool
) -> lanes.Keep | None:
    saver = domain.row.saving
    if saver is None or not _holds_back(order, saver, lane):
        return reserve
    vector, both = domain.cost_of(saver.head), saver.lane == BULK

    def keep(window: Window) -> int:
        part = vector.amount(window.config) if own or window.level == "domain" else 0
        kept = 0 if reserve is None else reserve(window)
        return part + kept if both else max(part, kept)

    return keep


def _holds_back(order: Sequence[Lane], saver: SkippedRow, lane: Lane) -> bool:
    lower = LANES.index(lane.name) >= LANES.index(saver.lane)
    return lower or (saver.lane == BULK and lanes.is_owed_floor(order))


# -- folds --------------------------------------------------------------------------------------


def passed_over(state: State, domain: Domain, operation: OperationId) -> None:
    """Count it; the grant's fold keeps the row."""
    row = state.operation(operation)
    assert row is not None
    skipped = domain.row.skipped
    found = next((one for one in skipped if one.head.sequence == row.sequence), None)
    if found is None and len(skipped) < SKIPPED_MAX:
        place = place_of(row.pool, row.member, row.tenant)
        queue = domain.lanes[row.lane].counters[row.tenant].queues[place]
        found = SkippedRow(
            head=queue.head(),
            tenant=row.tenant,
            lane=row.lane,
            place=place,
            since_ms=state.window_now_ms,
        )
        skipped.append(found)
    if found is not None:
        found.skips += 1


def started(state: State, event: SavingStarted) -> None:
    """One saver a domain."""
    row = state.operation(event.operation)
    assert row is not None
    domain = state.config.domains[event.domain]
    domain.row.saver = row.sequence
    state.put_domain(domain)


def deferred(state: State, domain: Domain, event: OperationDeferred) -> None:
    """First in line then, and no saver before; the caller keeps the row."""
    assert event.not_before_ms is not None, "Expected to know when"
    for one in domain.row.skipped:
        if one.head.operation == event.operation:
            one.not_before_ms = Millis(event.not_before_ms - state.cell.stepped_ms)
