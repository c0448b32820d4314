"""What waits in each queue, in which order, and what its head was last told to wait for."""

from typing import NamedTuple

import msgspec

from projections.keys import join
from projections.projection import Projection, Seen
from schemas import events as e
from schemas.ids import SELF_POOL
from schemas.phase import Phase

from .operation import Operation
from .phases import MOVES


class Waiting(NamedTuple):
    """One operation that waits."""

    operation: bytes
    admitted_ms: int


class Deferral(NamedTuple):
    """Which limit a head did not fit under, what holds it back there, and until when."""

    level: str
    dimension: str
    held_by: str
    not_before_ms: int | None


class Queue(msgspec.Struct, array_like=True):
    """One queue; there is no row while nothing waits."""

    waiting: int = 0
    waiting_bytes: int = 0
    deferral: Deferral | None = None


_LINED_UP = tuple(set(MOVES) - {e.LeaseClaimed, e.StartAccepted})
"""Events that may bring an operation into its queue or out of it."""


def queue_of(facts: e.OperationAdmitted | Operation) -> bytes:
    """The key of an operation's queue; each member of pool `self` is a queue of its own."""
    place = f"{SELF_POOL}:{facts.member}" if facts.pool == SELF_POOL else facts.pool
    return join(facts.tenant, facts.lane, place, facts.domain)


def _facts(seen: Seen) -> e.OperationAdmitted | Operation:
    facts = seen.event if isinstance(seen.event, e.OperationAdmitted) else seen.operation
    assert facts is not None, f"Expected an operation for {seen.event}"
    return facts


def _by_sequence(seen: Seen) -> bytes | None:
    if (seen.before is Phase.WAITING) == (seen.after is Phase.WAITING):
        return None
    facts = _facts(seen)
    return queue_of(facts) + join(facts.sequence)


def _line_up(_: Waiting, seen: Seen) -> Waiting | None:
    if seen.after is not Phase.WAITING:
        return None
    if isinstance(seen.event, e.OperationAdmitted):
        return Waiting(seen.event.operation, seen.time_ms)
    assert seen.operation is not None, f"Expected an operation for {seen.event}"
    return Waiting(seen.event.operation, seen.operation.admitted_ms or 0)


WAITING = Projection(
    name="waiting",
    number=3,
    version=2,
    row=Waiting,
    wants=_LINED_UP,
    key=_by_sequence,
    initial=lambda: Waiting(b"", 0),
    apply=_line_up,
)


def _by_queue(seen: Seen) -> bytes | None:
    waited, waits = seen.before is Phase.WAITING, seen.after is Phase.WAITING
    if waited == waits and not (waits and isinstance(seen.event, e.OperationDeferred)):
        return None
    return queue_of(_facts(seen))


def _count(row: Queue, seen: Seen) -> Queue | None:
    if isinstance(seen.event, e.OperationDeferred):
        event = seen.event
        row.deferral = Deferral(event.level, event.dimension, event.held_by, event.not_before_ms)
        return row
    if isinstance(seen.event, e.GrantIssued):
        row.deferral = None
    sign = 1 if seen.after is Phase.WAITING else -1
    row.waiting += sign
    row.waiting_bytes += sign * _facts(seen).payload_bytes
    return row if row.waiting else None


QUEUES = Projection(
    name="queue",
    number=4,
    version=3,
    row=Queue,
    wants=(*_LINED_UP, e.OperationDeferred),
    key=_by_queue,
    initial=Queue,
    apply=_count,
)
