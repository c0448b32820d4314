"""Work that waits: counted in its caps, in its queue or parked, with the timer of its deadline."""

from functools import partial

from schemas.ids import MemberId, OperationId
from schemas.phase import Phase

from . import lanes
from .configured import Domain
from .counters import Counter
from .fairness import Lane
from .heads import Stand
from .operations import OperationRow
from .pools import is_own, place_of
from .queues import Queue, Waiting
from .state import State
from .tables import Table, pack
from .timers import Kind

Candidate = tuple[Waiting, MemberId, Counter]
"""A head that may be granted, the member that would run it, and whose it is."""


def is_free(state: State, domain: Domain, place: str) -> bool:
    """Whether the domain's work could go there now."""
    return state.free_member(place) is not None and state.config.runs(place, domain.name)


def candidate(state: State, counter: Counter, stand: Stand) -> Candidate:
    """The head that waits there, with a free place."""
    member = state.free_member(stand.pool)
    assert member is not None, f"Expected a free place in {stand.pool}"
    return stand.head(), member, counter


def enter(state: State, lane: Lane, counter: Counter, queue: Queue) -> None:
    """Something waits in the queue; one of pool self follows the place of its member."""
    counter.queues[queue.pool] = queue
    lane.queues += 1
    if is_own(queue.pool):
        state.pools.wait(queue, partial(lane.turned, counter, queue))
    else:
        counter.shared[queue.pool] = queue


def _leave(state: State, lane: Lane, counter: Counter, queue: Queue) -> None:
    """Nothing waits in the queue any more."""
    del counter.queues[queue.pool]
    lane.queues -= 1
    if queue.pool in counter.shared:
        del counter.shared[queue.pool]
    else:
        state.pools.wait_no_longer(queue)
        lane.changed(counter, queue)


def queue_up(state: State, operation: OperationId, row: OperationRow) -> None:
    """Make it eligible at the place of its sequence."""
    lane, counter = state.counted(row)
    place = place_of(row.pool, row.member, row.tenant)
    idle = not counter.queues
    queue = counter.queues.get(place)
    if queue is None:
        queue = Queue(state.rows, row.domain, row.lane, place, row.tenant)
    queue.add(
        Waiting(
            row.sequence,
            operation,
            row.prompt_tokens,
            row.output_tokens_max,
            row.deadline_ms,
            row.is_run,
        )
    )
    if place not in counter.queues:
        enter(state, lane, counter, queue)
    if idle:
        if lane.is_idle:
            lanes.wake(state.config.domains[row.domain], lane)
        lane.activate(counter)
    elif queue.head().operation == operation:
        lane.changed(counter, queue)
    row.phase = Phase.WAITING
    state.put(operation, row)
    state.touch(row.domain)


def unqueue(state: State, row: OperationRow) -> None:
    """Take it out of its queue."""
    lane, counter = state.counted(row)
    place = place_of(row.pool, row.member, row.tenant)
    queue = counter.queues[place]
    queue.remove(row.sequence)
    if not queue.count:
        _leave(state, lane, counter, queue)
        if not counter.queues:
            lane.deactivate(counter)
    else:
        lane.changed(counter, queue)
    domain = state.config.domains[row.domain]
    if domain.row.skipped:
        domain.row.forget(row.sequence)
        state.put_domain(domain)
    state.touch(row.domain)


def _count(state: State, row: OperationRow, change: int) -> None:
    """Count it in the caps of tenant, domain and cell, or no longer."""
    size = change * row.payload_bytes
    waiting, domain = state.waiting(row.tenant), state.config.domains[row.domain]
    waiting.count += change
    waiting.bytes += size
    state.rows.put(Table.TENANT, pack(row.tenant), waiting)
    domain.row.count += change
    domain.row.bytes += size
    if row.is_run:
        domain.row.runs += change
    state.put_domain(domain)
    state.cell.waiting += change
    state.cell.waiting_bytes += size


def wait(state: State, operation: OperationId, row: OperationRow) -> None:
    """It waits from now on: caps, queue, and the timer of its deadline."""
    _count(state, row, +1)
    state.timers.set(row.deadline_ms, Kind.DEADLINE, operation)
    queue_up(state, operation, row)


def leave_queue(state: State, operation: OperationId, row: OperationRow) -> None:
    """It waits no longer, in whatever way it did."""
    if row.phase is Phase.PARKED:
        end_parking(state, operation, row)
    else:
        unqueue(state, row)
    _count(state, row, -1)
    state.timers.unset(row.deadline_ms, Kind.DEADLINE, operation)


def end_parking(state: State, operation: OperationId, row: OperationRow) -> None:
    """Whatever it was parked for no longer matters."""
    if row.extra is not None and row.extra.not_before_ms is not None:
        state.timers.unset(row.extra.not_before_ms, Kind.RETRY, operation)
        row.extra.not_before_ms = None
    else:
        state.rows.delete(Table.PARKED, pack(row.domain, row.sequence))
