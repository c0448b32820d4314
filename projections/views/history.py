"""What happened to each operation, event by event, with the one word that each adds.

Repeats and conflicts of its submission, deferrals and refused renewals are left out: they change
nothing, and anybody can cause as many of them as he likes.
"""

from functools import cache
from typing import Any, NamedTuple

import msgspec

from projections.projection import Projection, Seen
from schemas import events as e

from .operation import by_operation

STEPS_MAX = 256
"""The newest are kept; an operation with bounded attempts rarely has thirty."""

_DETAILS = ("code", "verdict", "outcome", "cause", "reason", "number")
"""Fields of which an event's first one says what it adds."""


class Step(NamedTuple):
    """One event."""

    at: tuple[int, int]
    """Offset and index."""
    time_ms: int
    type: str
    attempt: int | None
    member: str | None
    detail: str | None


class History(msgspec.Struct, array_like=True):
    """Steps of one operation, oldest first."""

    steps: list[Step] = []
    dropped: int = 0
    """Steps older than those that are kept."""


@cache
def _detail_of(kind: Any) -> str | None:
    return next((name for name in _DETAILS if name in kind.__struct_fields__), None)


def _step(event: Any, seen: Seen) -> Step:
    kind: Any = type(event)
    name = _detail_of(kind)
    said = None if name is None else getattr(event, name)
    return Step(
        (seen.offset, seen.index),
        seen.time_ms,
        kind.__name__,
        getattr(event, "attempt", None),
        getattr(event, "member", None),
        None if said is None else str(said),
    )


def _key(seen: Seen) -> bytes | None:
    """None for what somebody said of another tenant's operation, or of none."""
    event, operation = seen.event, seen.operation
    if operation is None:
        own = isinstance(event, e.OperationAdmitted | e.OperationRejected)
    else:
        own = operation.tenant == event.tenant
    return by_operation(seen) if own else None


def _apply(row: History, seen: Seen) -> History | None:
    if isinstance(seen.event, e.OperationForgotten):
        return None
    row.steps.append(_step(seen.event, seen))
    if len(row.steps) > STEPS_MAX:
        del row.steps[0]
        row.dropped += 1
    return row


HISTORIES = Projection(
    name="history",
    number=16,
    version=1,
    row=History,
    wants=(
        e.OperationAdmitted,
        e.OperationRejected,
        e.OperationParked,
        e.OperationUnparked,
        e.GrantIssued,
        e.GrantExpired,
        e.GrantRevoked,
        e.LeaseClaimed,
        e.ClaimRefused,
        e.LeaseExpired,
        e.StartAccepted,
        e.StartRefused,
        e.SendObserved,
        e.CheckpointRecorded,
        e.CheckpointRefused,
        e.CancelSignalled,
        e.ResultRecorded,
        e.ResultRefusedStale,
        e.OutcomeMarkedUnknown,
        e.EvidenceRecorded,
        e.OutcomeReconciled,
        e.ReservationSettled,
        e.ReservationReleased,
        e.ReservationExpired,
        e.ReservationForfeited,
        e.UsageCorrected,
        e.UsageRefused,
        e.RetryScheduled,
        e.OperatorActionNeeded,
        e.OperationDeadLettered,
        e.ManualRetryAccepted,
        e.ManualActionRefused,
        e.OperationCancelled,
        e.OperationExpired,
        e.OperationForgotten,
    ),
    key=_key,
    initial=History,
    apply=_apply,
)
