"""What each tenant was served in a lane, and where its waiting work is."""

from typing import Protocol

import msgspec

from schemas.ids import TenantId
from schemas.units import Millis

from .queues import Queue


class Tag(Protocol):
    """A start-tag counter of a tenant or of a lane: `key = base + served // weight`."""

    base: int
    served: int
    weight: int
    lift: int


def key_of(tag: Tag) -> int:
    """Cost served per weight; the smallest goes next."""
    return tag.base + tag.served // tag.weight


def raise_to(tag: Tag, key: int) -> None:
    """Write off what idleness or blocking has earned."""
    tag.base, tag.served = key, 0
    tag.lift += 1


def reweigh(tag: Tag, weight: int) -> None:
    """Another weight from here on; what was served stays worth what it was."""
    tag.base, tag.served, tag.weight = key_of(tag), 0, weight


def correct(tag: Tag, delta_ns: int, *, weight: int, lift: int, v: int) -> None:
    """The cost of a reservation turned out otherwise, or it was returned.

    At the weight of the reservation. A surcharge counts in full; a refund from before the last
    lift lowers the key to no less than V, or refunds would bank credit.
    """
    floor = min(key_of(tag), v)
    if weight == tag.weight:
        tag.served += delta_ns
    else:
        tag.base += -(-delta_ns // weight)
    if lift != tag.lift and key_of(tag) < floor:
        tag.base, tag.served = floor, 0


class CounterRow(msgspec.Struct, array_like=True, gc=False, kw_only=True):
    """What one tenant has been served in one lane of one domain."""

    base: int = 0
    served: int = 0
    weight: int = 1
    lift: int = 0
    """How often idleness or blocking was written off; a reservation names the value it saw."""
    position: int = 0
    """Place in the ring; unique in the lane."""
    hold_ms: Millis = Millis(0)
    """Estimate of how long a call holds its slot; 0 until the first settlement."""
    deficit: int = 0
    """Deficit round robin: what is left of its visit; below 0 what it owes."""
    by_floor: int = 0
    """Grants in lane bulk that took of the reserve, owed by the floor."""
    held_back: int = 0
    """How often it was recorded that nothing but the reserve held its head back."""


class LaneRow(msgspec.Struct, array_like=True, gc=False, kw_only=True):
    """What the tenants of a lane share, and what the lane itself was served."""

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
    base: int = 0
    served: int = 0
    weight: int = 1
    lift: int = 0


class Counter:
    """One tenant's counter, with the queues it has in this lane."""

    def __init__(self, tenant: TenantId, row: CounterRow, key: bytes) -> None:
        self.tenant = tenant
        self.row_key = key
        self.row = row
        self.rank = 0
        self.queues: dict[str, Queue] = {}
        """By place; only those in which something waits."""
        self.shared: dict[str, Queue] = {}
        """Those of them whose place is a whole pool, not one member of pool self."""

    @property
    def key(self) -> int:
        """Cost served per weight; the smallest goes next."""
        return key_of(self.row)
