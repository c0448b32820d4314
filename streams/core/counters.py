"""What each tenant was served in a lane, and where its waiting work is."""

import msgspec

from schemas.ids import TenantId
from schemas.units import Millis

from .queues import Queue


class CounterRow(msgspec.Struct, array_like=True, gc=False, kw_only=True):
    """What one tenant has been served in one lane of one domain."""

    base: int = 0
    served: int = 0
    weight: int = 1
    lift: int = 0
    """How often idleness or blocking was written off; a reservation names the value it saw."""
    position: int = 0
    """Place in the ring; unique in the lane."""
    held: bool = False
    """When it was last passed over, only its own places or caps were in its way."""
    hold_ms: Millis = Millis(0)
    """Estimate of how long a call holds its slot; 0 until the first settlement."""


class LaneRow(msgspec.Struct, array_like=True, gc=False, kw_only=True):
    """What the tenants of a lane share."""

    v: int = 0
    """Highest key at a pick; it never falls."""
    cost_max_ns: int = 0
    """Largest cost admitted so far: M."""
    positions: int = 0
    """Ring positions given."""
    visitor: int = 0
    """Ring position of whoever took the last turn and may take the next; 0 if nobody may."""
    turns: int = 0
    """Turns that the visitor has taken in a row."""


Place = tuple[int, int, TenantId]
"""Effective key, ring position, and the tenant itself."""


class Counter:
    """One tenant's counter, with the queues it has in this lane."""

    def __init__(self, tenant: TenantId, row: CounterRow, key: bytes) -> None:
        self.tenant = tenant
        self.row_key = key
        self.row = row
        self.rank = 0
        self.queues: dict[str, Queue] = {}
        """By pool; only those in which something waits."""
        self.indexed: Place | None = None
        """Its one valid item in the index of its lane; all others of it are outdated."""

    @property
    def key(self) -> int:
        """Cost served per weight; the smallest goes next."""
        return self.row.base + self.row.served // self.row.weight
