"""Where an event leaves its operation: the transitions of requirements C1."""

from typing import TYPE_CHECKING, Any

from schemas import events as e
from schemas.phase import Phase

if TYPE_CHECKING:
    from .operation import Operation

LIVE = frozenset(
    (
        Phase.WAITING,
        Phase.PARKED,
        Phase.GRANTED,
        Phase.LEASED,
        Phase.STARTED,
        Phase.UNKNOWN,
    )
)
AWAITING_A_PERSON = frozenset((Phase.DEAD, Phase.UNKNOWN_CLOSED))
"""Over, unless a person wants another attempt or says how it ended."""
ENDED = AWAITING_A_PERSON | frozenset(
    (Phase.SUCCEEDED, Phase.FAILED, Phase.CANCELLED, Phase.EXPIRED)
)
OVER = ENDED | {Phase.REJECTED}
"""Nobody needs to wait any longer."""

_AFTER: dict[type, Phase] = {
    e.OperationAdmitted: Phase.WAITING,
    e.OperationRejected: Phase.REJECTED,
    e.OperationParked: Phase.PARKED,
    e.RetryScheduled: Phase.PARKED,
    e.OperationUnparked: Phase.WAITING,
    e.GrantIssued: Phase.GRANTED,
    e.GrantExpired: Phase.WAITING,
    e.GrantRevoked: Phase.WAITING,
    e.StartAccepted: Phase.STARTED,
    e.OutcomeMarkedUnknown: Phase.UNKNOWN,
    e.OperatorActionNeeded: Phase.UNKNOWN_CLOSED,
    e.OperationDeadLettered: Phase.DEAD,
    e.ManualRetryAccepted: Phase.WAITING,
    e.OperationCancelled: Phase.CANCELLED,
    e.OperationExpired: Phase.EXPIRED,
}
MOVES: tuple[type, ...] = (*_AFTER, e.LeaseClaimed, e.ResultRecorded, e.OutcomeReconciled)
"""Every event that may change the phase, but that which forgets the operation."""

_ENDS = {
    "success": Phase.SUCCEEDED,
    "terminal": Phase.FAILED,
    "policy_denied": Phase.FAILED,
    "cancelled": Phase.CANCELLED,
}
"""Any other outcome goes back to its queue; what follows from it is an event of its own."""
_VERDICTS = {"completed": Phase.SUCCEEDED, "failed": Phase.FAILED}
_OPEN_TO_EVIDENCE = frozenset((Phase.UNKNOWN, Phase.UNKNOWN_CLOSED, Phase.WAITING, Phase.PARKED))
"""Elsewhere evidence about an unknown attempt changes nothing: it goes on, or ended otherwise."""


def phase_after(event: Any, operation: "Operation | None") -> Phase | None:
    """The phase after the event; most events leave it as it was."""
    before = None if operation is None else operation.phase
    match event:
        case e.ResultRecorded():
            return _ended(operation, _ENDS.get(event.outcome, Phase.WAITING))
        case e.OutcomeReconciled():
            return _reconciled(event, operation)
        case e.LeaseClaimed():  # journals from before leases know no such phase
            return before if event.expires_ms is None else Phase.LEASED
        case e.OperationForgotten():
            return None
        case _:
            return _AFTER.get(type(event), before)


def _ended(operation: "Operation | None", phase: Phase) -> Phase:
    asked = operation is not None and operation.cancel_requested
    return Phase.CANCELLED if asked and phase is Phase.FAILED else phase


def _reconciled(event: e.OutcomeReconciled, operation: "Operation | None") -> Phase | None:
    """Evidence moves the operation if it is about its newest attempt, and nothing else does."""
    if operation is None:
        return None
    newest = (event.incarnation, event.epoch) == (operation.incarnation, operation.epoch)
    if not newest or event.source == "late_result" or operation.phase not in _OPEN_TO_EVIDENCE:
        return operation.phase
    if event.verdict == "not_executed" and operation.phase is Phase.UNKNOWN:
        return Phase.WAITING
    phase = _VERDICTS.get(event.verdict)
    return operation.phase if phase is None else _ended(operation, phase)
