"""Until when each lease lasts, by the life of the process that holds it.

One renewal holds for all leases of a life but those it did not name. A silence of the scheduler
lengthens every lease; here it shows at the next renewal, a heartbeat later.
"""

import msgspec

from projections.keys import join
from projections.projection import Projection, Seen
from schemas import events as e


class Leases(msgspec.Struct, array_like=True):
    """The leases of one life; there is no row without any."""

    expires_ms: dict[bytes, int] = {}
    """By operation."""


def lease_key(member: str, member_epoch: str) -> bytes:
    """The key of a life."""
    return join(member, member_epoch)


def _by_life(seen: Seen) -> bytes | None:
    return lease_key(seen.event.member, seen.event.member_epoch)


def _apply(row: Leases, seen: Seen) -> Leases | None:
    match event := seen.event:
        case e.LeaseClaimed():
            if event.expires_ms is not None:
                row.expires_ms[event.operation] = event.expires_ms
        case e.LeasesRenewed():
            unnamed = {one.operation for one in event.unnamed}
            for operation in row.expires_ms:
                if operation not in unnamed:
                    row.expires_ms[operation] = event.expires_ms
        case _:
            row.expires_ms.pop(event.operation, None)
    return row if row.expires_ms else None


LEASES = Projection(
    name="lease",
    number=13,
    version=1,
    row=Leases,
    wants=(
        e.LeaseClaimed,
        e.LeasesRenewed,
        e.LeaseExpired,
        e.GrantExpired,
        e.GrantRevoked,
        e.ResultRecorded,
        e.OutcomeMarkedUnknown,
    ),
    key=_by_life,
    initial=Leases,
    apply=_apply,
)
