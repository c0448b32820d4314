"""Work that waits: counted in its caps, in its queue or parked, with the timer of its deadline."""

from operator import itemgetter

from schemas.ids import MemberId, OperationId
from schemas.phase import Phase

from . import lanes
from .configured import Domain
from .counters import Counter
from .operations import OperationRow
from .pools import place_of
from .queues import Queue, Waiting
from .state import State
from .tables import Table, pack
from .timers import Kind

Candidate = tuple[Waiting, MemberId, Counter]
"""A head that may be granted, the member that would run it, and whose it is."""
_HEAD = itemgetter(0)


def candidate(state: State, counter: Counter, queue: Queue) -> Candidate:
    """The head of a queue whose place is free."""
    member = state.free_member(queue.pool)
    assert member is not None, f"Expected a free place in {queue.pool}"
    return queue.head(), member, counter


def candidates(state: State, domain: Domain, counter: Counter) -> list[Candidate]:
    """A tenant's heads in one lane whose pool has a free place, oldest first."""
    found: list[Candidate] = []
    for place, queue in counter.queues.items():
        member = state.free_member(place)
        if member is not None and state.config.runs(place, domain.name):
            found.append((queue.head(), member, counter))
    if len(found) > 1:
        found.sort(key=_HEAD)
    return found


def queue_up(state: State, operation: OperationId, row: OperationRow) -> None:
    """Make it eligible at the place of its sequence."""
    lane, counter = state.counted(row)
    place = place_of(row.pool, row.member)
    idle = not counter.queues
    queue = counter.queues.get(place)
    if queue is None:
        queue = Queue(state.rows, row.domain, row.lane, place, row.tenant)
        counter.queues[place] = queue
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
    if idle:
        if lane.is_idle:
            lanes.wake(state.config.domains[row.domain], lane)
        lane.activate(counter)
    elif queue.head().operation == operation:
        lane.changed(counter)
    row.phase = Phase.WAITING
    state.put(operation, row)
    state.touch(row.domain)


def unqueue(state: State, row: OperationRow) -> None:
    """Take it out of its queue."""
    lane, counter = state.counted(row)
    place = place_of(row.pool, row.member)
    queue = counter.queues[place]
    queue.remove(row.sequence)
    if not queue.count:
        del counter.queues[place]
        if not counter.queues:
            lane.deactivate(counter)
    else:
        lane.changed(counter)
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
