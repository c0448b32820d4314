"""In which order operations are listed: of a tenant, of those who await a person, of a run."""

from projections.keys import NUMBER_MAX, join
from projections.projection import Projection, Seen
from schemas import events as e

from .operation import Operation, by_operation
from .phases import AWAITING_A_PERSON

Place = tuple[int, int]
"""Offset and index of an event."""


def newest_first(place: Place | None) -> bytes:
    """How keys end that sort the newest first; without a place, as no key does."""
    offset, index = place or (-1, -1)
    return join(NUMBER_MAX - 1 - offset, NUMBER_MAX - 1 - index)


def listed_at(row: Operation) -> bytes:
    """How the key of its listing ends; of one that is not listed, as no key does."""
    return newest_first(row.admitted_at)


def _listed(seen: Seen) -> bytes | None:
    event = seen.event
    if isinstance(event, e.OperationForgotten):
        assert seen.operation is not None, "Expected to know what is forgotten"
        return join(event.tenant) + listed_at(seen.operation)
    if isinstance(event, e.OperationRejected) and not event.binds_key:
        return None  # the same key is decided anew (R188): nothing to list yet
    return join(event.tenant) + newest_first((seen.offset, seen.index))


def _list(_: bytes, seen: Seen) -> bytes | None:
    return None if isinstance(seen.event, e.OperationForgotten) else by_operation(seen)


LISTED = Projection(
    name="listed",
    number=2,
    version=1,
    row=bytes,
    wants=(e.OperationAdmitted, e.OperationRejected, e.OperationForgotten),
    key=_listed,
    initial=bytes,
    apply=_list,
)


def _awaiting(seen: Seen) -> bytes | None:
    """A key where an operation begins or ceases to await a person."""
    awaited, awaits = seen.before in AWAITING_A_PERSON, seen.after in AWAITING_A_PERSON
    if awaits and not awaited:
        return join(seen.event.tenant) + newest_first((seen.offset, seen.index))
    if awaited and not awaits:
        assert seen.operation is not None, "Expected an operation that was over"
        return join(seen.operation.tenant) + newest_first(seen.operation.ended_at)
    return None


def _await(_: bytes, seen: Seen) -> bytes | None:
    return by_operation(seen) if seen.after in AWAITING_A_PERSON else None


DEAD_LETTERS = Projection(
    name="dead_letter",
    number=10,
    version=1,
    row=bytes,
    wants=(
        e.OperationDeadLettered,
        e.OperatorActionNeeded,
        e.ManualRetryAccepted,
        e.OutcomeReconciled,
        e.OperationAdmitted,
        e.OperationRejected,
        e.OperationForgotten,
    ),
    key=_awaiting,
    initial=bytes,
    apply=_await,
)


def _child(seen: Seen) -> bytes | None:
    event = seen.event
    if isinstance(event, e.OperationAdmitted):
        at = newest_first((seen.offset, seen.index))
        return None if event.parent is None else event.parent + at
    row = seen.operation
    assert row is not None, "Expected to know what is forgotten"
    return None if row.parent is None else row.parent + listed_at(row)


CHILDREN = Projection(
    name="child",
    number=11,
    version=1,
    row=bytes,
    wants=(e.OperationAdmitted, e.OperationForgotten),
    key=_child,
    initial=bytes,
    apply=_list,
)
