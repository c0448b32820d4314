"""What each life of a process holds: grants that it may claim, and leases, each until when.

One renewal holds for all leases of a life but those it did not name. A silence of the scheduler
lengthens every lease; here it shows at the next renewal, a heartbeat later.
"""

import msgspec

from projections.keys import join
from projections.projection import Projection, Seen
from schemas import events as e

NOBODY = b""
"""The key of what is offered in open pools, bounded by their `unclaimed_max`."""


class Holding(msgspec.Struct, array_like=True):
    """By operation; there is no row for a life that holds nothing."""

    claim_by_ms: dict[bytes, int] = {}
    """Grants without a lease."""
    expires_ms: dict[bytes, int] = {}
    """Leases."""


def holding_key(member: str, member_epoch: str) -> bytes:
    """The key of a life."""
    return join(member, member_epoch)


def _by_life(seen: Seen) -> bytes | None:
    if not seen.event.member:
        return None  # in an open pool: nobody's yet
    return holding_key(seen.event.member, seen.event.member_epoch)


def _apply(row: Holding, seen: Seen) -> Holding | None:
    match event := seen.event:
        case e.GrantIssued():
            row.claim_by_ms[event.operation] = event.claim_by_ms
        case e.LeaseClaimed():
            if event.expires_ms is not None:  # journals from before leases tell no end
                row.claim_by_ms.pop(event.operation, None)
                row.expires_ms[event.operation] = event.expires_ms
        case e.LeasesRenewed():
            unnamed = {one.operation for one in event.unnamed}
            for operation in row.expires_ms:
                if operation not in unnamed:
                    row.expires_ms[operation] = event.expires_ms
        case _:
            row.claim_by_ms.pop(event.operation, None)
            row.expires_ms.pop(event.operation, None)
    return row if row.expires_ms or row.claim_by_ms else None


def _unclaimed(seen: Seen) -> bytes | None:
    if isinstance(seen.event, e.GrantIssued):
        return None if seen.event.member else NOBODY
    assert seen.operation is not None, f"Expected an operation for {seen.event}"
    return None if seen.operation.holder else NOBODY


def _offer(row: Holding, seen: Seen) -> Holding | None:
    if isinstance(seen.event, e.GrantIssued):
        row.claim_by_ms[seen.event.operation] = seen.event.claim_by_ms
    else:
        row.claim_by_ms.pop(seen.event.operation, None)
    return row if row.claim_by_ms else None


UNCLAIMED = Projection(
    name="unclaimed",
    number=18,
    version=1,
    row=Holding,
    wants=(e.GrantIssued, e.LeaseClaimed, e.GrantExpired, e.GrantRevoked),
    key=_unclaimed,
    initial=Holding,
    apply=_offer,
)
HOLDINGS = Projection(
    name="holding",
    number=13,
    version=1,
    row=Holding,
    wants=(
        e.GrantIssued,
        e.LeaseClaimed,
        e.LeasesRenewed,
        e.LeaseExpired,
        e.GrantExpired,
        e.GrantRevoked,
        e.ResultRecorded,
        e.OutcomeMarkedUnknown,
    ),
    key=_by_life,
    initial=Holding,
    apply=_apply,
)
