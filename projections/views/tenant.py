"""What each tenant was told and has in the cell now (requirements R134, R141).

offered = admitted + rejected + duplicates + conflicts, and admitted = ended + everything live.
"""

import msgspec

from projections.keys import join
from projections.projection import Projection, Seen
from schemas import events as e
from schemas.phase import Phase

from .operation import ENDED, LIVE


class Tenant(msgspec.Struct, array_like=True):
    """Counts of one tenant; the phases that are over only grow."""

    admitted: int = 0
    duplicates: int = 0
    conflicts: int = 0
    refusals: dict[str, int] = {}
    """Rejections by code."""
    phases: dict[Phase, int] = {}
    """Operations now live, and operations ended ever, by phase."""
    waiting_bytes: int = 0
    grants: int = 0
    starts: int = 0
    settled: int = 0
    tokens_reserved: int = 0
    tokens_used: int = 0
    cost_ns: int = 0


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
        case e.GrantIssued():
            row.grants += 1
        case e.StartAccepted():
            row.starts += 1
        case e.ReservationSettled():
            _settle(row, event)
        case _:
            pass  # the others only move an operation on
    if seen.before is not seen.after:
        _move(row, seen)
    return row


def _settle(row: Tenant, event: e.ReservationSettled) -> None:
    used = event.tokens_reserved if event.tokens_actual is None else event.tokens_actual
    row.settled += 1
    row.tokens_reserved += event.tokens_reserved
    row.tokens_used += used
    row.cost_ns += event.cost_ns


def _move(row: Tenant, seen: Seen) -> None:
    before, after = seen.before, seen.after
    facts = seen.event if isinstance(seen.event, e.OperationAdmitted) else seen.operation
    size = facts.payload_bytes if facts is not None else 0
    if before in LIVE:
        row.phases[before] -= 1
    if after in LIVE or (after in ENDED and before not in ENDED):
        row.phases[after] = row.phases.get(after, 0) + 1
    if before is Phase.WAITING:
        row.waiting_bytes -= size
    if after is Phase.WAITING:
        row.waiting_bytes += size


TENANTS = Projection(
    name="tenant",
    number=5,
    version=1,
    row=Tenant,
    wants=(
        e.OperationAdmitted,
        e.OperationRejected,
        e.DuplicateObserved,
        e.SubmissionConflicted,
        e.OperationParked,
        e.OperationUnparked,
        e.OperationCancelled,
        e.OperationExpired,
        e.GrantIssued,
        e.GrantExpired,
        e.GrantRevoked,
        e.StartAccepted,
        e.ResultRecorded,
        e.ReservationSettled,
    ),
    key=_by_tenant,
    initial=Tenant,
    apply=_apply,
)
