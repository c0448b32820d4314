"""What each tenant was told and has in the cell now (requirements R134, R141); not what it used.

offered = admitted + rejected + duplicates + conflicts, and admitted = ended + everything live.
"""

import msgspec

from projections.keys import join
from projections.projection import Projection, Seen
from schemas import events as e
from schemas.phase import Phase

from .operation import Operation
from .phases import MOVES


class Tenant(msgspec.Struct, array_like=True):
    """Counts of one tenant; the phases that are over only grow."""

    admitted: int = 0
    duplicates: int = 0
    conflicts: int = 0
    refusals: dict[str, int] = {}
    """Rejections by code."""
    phases: dict[Phase, int] = {}
    """Operations now live, and operations ended ever, by phase; their sum is `admitted`."""
    waiting_bytes: int = 0


def _by_tenant(seen: Seen) -> bytes | None:
    return join(seen.event.tenant)


def _apply(row: Tenant, seen: Seen) -> Tenant:
    match event := seen.event:
        case e.OperationAdmitted():
            row.admitted += 1
        case e.OperationRejected():
            row.refusals[event.code] = row.refusals.get(event.code, 0) + 1
        case e.DuplicateObserved():
            row.duplicates += 1
        case e.SubmissionConflicted():
            row.conflicts += 1
        case _:
            pass  # the others only move an operation on
    if seen.before is not seen.after:
        _move(row, seen)
    return row


def _move(row: Tenant, seen: Seen) -> None:
    """From one phase to another; an admission begins a new life, whatever became of the last."""
    begins = isinstance(seen.event, e.OperationAdmitted)
    size = _size(seen.event if begins else seen.operation)
    if seen.after is Phase.REJECTED:
        return
    if seen.before is not None and not begins:
        row.phases[seen.before] -= 1
        row.waiting_bytes -= size if seen.before is Phase.WAITING else 0
    if seen.after is not None:
        row.phases[seen.after] = row.phases.get(seen.after, 0) + 1
        row.waiting_bytes += size if seen.after is Phase.WAITING else 0


def _size(facts: e.OperationAdmitted | Operation | None) -> int:
    return 0 if facts is None else facts.payload_bytes


TENANTS = Projection(
    name="tenant",
    number=5,
    version=2,
    row=Tenant,
    wants=(*MOVES, e.DuplicateObserved, e.SubmissionConflicted),
    key=_by_tenant,
    initial=Tenant,
    apply=_apply,
)
