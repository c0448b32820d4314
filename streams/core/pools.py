"""Members of elastic pools: who has a free place, and what each life of a process still holds."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from enum import StrEnum
from heapq import heappop, heappush

import msgspec

from schemas.ids import SELF_POOL, MemberEpoch, MemberId, OperationId, PoolId, TenantId
from schemas.units import Millis

from .limits import LIVES_OVER_MAX
from .queues import FREE, TAKEN, Queue
from .tables import Overlay, Table, pack

STALE_MAX = 64
"""Outdated entries of a heap beyond which it is made anew."""


class Standing(StrEnum):
    """Where a member is in its life (requirements C5); idle and busy follow from its places."""

    JOINING = "joining"
    ACTIVE = "active"
    DRAINING = "draining"
    SUSPECT = "suspect"
    LOST = "lost"


class MemberRow(msgspec.Struct, array_like=True, gc=False, kw_only=True):
    """The newest life of a member."""

    member_epoch: MemberEpoch
    pool: PoolId
    places: int
    tenant: TenantId | None
    standing: Standing
    due_ms: Millis
    """Its timer: join-by, or when its silence is too long."""
    draining: bool = False
    offered_epoch: int = 0
    """Under this owner its free places are start requests that stand; 0 for none."""


class PoolRow(msgspec.Struct, array_like=True, gc=False):
    """Member slots taken in a pool, or by a tenant in pool self."""

    members: int = 0


class LifeRow(msgspec.Struct, array_like=True, gc=False, kw_only=True):
    """The leases of one life of a member together; a row while there is something to look at."""

    due_ms: Millis
    """When time alone may have something to say about one of them."""
    renewed_ms: Millis = Millis(0)
    """Up to when the renewed ones last, in lease time."""
    renewals: int = 0
    """How often they were renewed: what was claimed before the last time follows it."""


NOBODY = MemberId("")
"""The member that a grant of an open pool names, until somebody has claimed it."""


def place_of(pool: PoolId, member: MemberId | None, tenant: TenantId | None) -> str:
    """Where an operation queues: its pool, or its own member in pool self.

    Each member of pool self is a queue of its own, so that a busy process holds up nobody else's;
    and whoever takes the name of a member that is gone gets no work of another tenant. Names are
    printable, so that none holds what stands between them.
    """
    return f"{SELF_POOL}:{tenant}\x1f{member}" if pool == SELF_POOL else pool


def is_own(place: str) -> bool:
    """Whether it is a member of pool self, not a pool."""
    return place.startswith(f"{SELF_POOL}:")


_NONE: frozenset[OperationId] = frozenset()


class Pools:
    """All members of a cell, with free places by pool."""

    def __init__(self, rows: Overlay) -> None:
        self._rows = rows
        self.members: dict[MemberId, MemberRow] = {}
        self._holds: dict[MemberId, dict[MemberEpoch, set[OperationId]]] = {}
        self._over: dict[tuple[MemberId, MemberEpoch], int] = {}
        """Lives that are over, each with its number; in order, the latest `LIVES_OVER_MAX`."""
        self._room: dict[MemberId, tuple[str, int]] = {}
        """Where each member is found, and how many free places it has there."""
        self._free: dict[str, list[tuple[int, MemberId]]] = {}
        self._unclaimed: dict[PoolId, set[OperationId]] = {}
        """Grants of open pools that nobody has claimed yet."""
        self._waiting: dict[str, dict[Queue, Callable[[str], None]]] = {}
        """Whom to tell of a place of pool self: the lanes of the queues that wait for it."""

    # -- what a decision asks ----------------------------------------------------------------

    def current(self, member: MemberId, member_epoch: MemberEpoch) -> MemberRow | None:
        """The member, if this life of it is the newest and not lost."""
        row = self.members.get(member)
        if row is None or row.member_epoch != member_epoch or row.standing is Standing.LOST:
            return None
        return row

    def taken(self, pool: PoolId, tenant: TenantId | None) -> int:
        """Member slots taken in the pool; for pool self by that tenant."""
        row = self._rows.get(Table.POOL, self._slot_key(pool, tenant))
        return row.members if row else 0

    def free_member(self, place: str) -> MemberId | None:
        """The member with the most free places, ties by name; None if there is no free place."""
        heap = self._free.get(place)
        while heap:
            free, member = heap[0]
            if self._room.get(member) == (place, -free):
                return member
            heappop(heap)
        return None

    def is_served(self, place: str) -> bool:
        """Whether a living member may have a free place sooner or later."""
        return any(
            place_of(row.pool, member, row.tenant) == place
            and row.standing in (Standing.ACTIVE, Standing.SUSPECT)
            and not row.draining
            for member, row in self.members.items()
        )

    def free_places(self, member: MemberId) -> int:
        """Announced places less live grants and leases; none unless active (R169)."""
        room = self._room.get(member)
        return 0 if room is None else room[1]

    def held(self, member: MemberId, member_epoch: MemberEpoch) -> AbstractSet[OperationId]:
        """Operations with a live attempt at that life of the member; not to be changed."""
        return self._holds.get(member, {}).get(member_epoch, _NONE)

    def held_by(self, member: MemberId, member_epoch: MemberEpoch) -> list[OperationId]:
        """Operations with a live attempt at that life of the member, in id order."""
        return sorted(self._holds.get(member, {}).get(member_epoch, ()))

    def held_in_any_life(self, member: MemberId) -> list[OperationId]:
        """Operations with a live attempt at the member, started in this life or an earlier one."""
        return sorted(one for held in self._holds.get(member, {}).values() for one in held)

    def unclaimed(self, pool: PoolId) -> int:
        """How many grants of an open pool nobody has claimed yet."""
        return len(self._unclaimed.get(pool, ()))

    def is_over(self, member: MemberId, member_epoch: MemberEpoch) -> bool:
        """Whether this life is known to be over; of all lives the latest are remembered."""
        return (member, member_epoch) in self._over

    # -- what the fold does ------------------------------------------------------------------

    def wait(self, queue: Queue, tell: Callable[[str], None]) -> None:
        """Tell now and with each change whether the queue's place in pool self is `FREE`."""
        self._waiting.setdefault(queue.pool, {})[queue] = tell
        tell(self._turned(queue.pool))

    def wait_no_longer(self, queue: Queue) -> None:
        """Nothing waits in the queue any more."""
        waiting = self._waiting[queue.pool]
        del waiting[queue]
        if not waiting:
            del self._waiting[queue.pool]

    def load(self, member: MemberId, row: MemberRow) -> None:
        """Remember a stored member, at opening."""
        self.members[member] = row

    def load_over(self, number: int, life: tuple[MemberId, MemberEpoch]) -> None:
        """Remember a stored life that is over, at opening; in order of the numbers."""
        self._over[life] = number

    def put(self, member: MemberId, row: MemberRow) -> None:
        """A new life or a new standing."""
        self.members[member] = row
        self._rows.put(Table.MEMBER, pack(member), row)
        self.offer(member)

    def remove(self, member: MemberId) -> None:
        """Its slot is returned."""
        row = self.members.pop(member)
        self.end_life(member, row.member_epoch)
        del self._room[member]
        if row.pool == SELF_POOL:
            place = place_of(row.pool, member, row.tenant)
            self._free.pop(place, None)
            self._tell(place)
        self._rows.delete(Table.MEMBER, pack(member))

    def end_life(self, member: MemberId, member_epoch: MemberEpoch) -> None:
        """It may not join again."""
        life, over = (member, member_epoch), self._over
        number = over[next(reversed(over))] + 1 if over else 0
        over[life] = number
        self._rows.put(Table.LIFE, pack(number), life)
        if len(over) > LIVES_OVER_MAX:
            first = next(iter(over))
            self._rows.delete(Table.LIFE, pack(over.pop(first)))

    def take_slot(self, pool: PoolId, tenant: TenantId | None, change: int) -> None:
        """Count member slots."""
        key = self._slot_key(pool, tenant)
        count = self.taken(pool, tenant) + change
        if count:
            self._rows.put(Table.POOL, key, PoolRow(count))
        else:
            self._rows.delete(Table.POOL, key)

    def occupy(self, member: MemberId, member_epoch: MemberEpoch, operation: OperationId) -> None:
        """A grant takes a place."""
        self._holds.setdefault(member, {}).setdefault(member_epoch, set()).add(operation)
        self.offer(member)

    def offer_to_all(self, pool: PoolId, operation: OperationId) -> None:
        """A grant of an open pool waits for its claim."""
        self._unclaimed.setdefault(pool, set()).add(operation)

    def withdraw(self, pool: PoolId, operation: OperationId) -> None:
        """It was claimed, or it ended."""
        self._unclaimed[pool].discard(operation)

    def vacate(self, member: MemberId, member_epoch: MemberEpoch, operation: OperationId) -> None:
        """A grant or lease ended."""
        lives = self._holds[member]
        lives[member_epoch].discard(operation)
        if not lives[member_epoch]:
            del lives[member_epoch]
            if not lives:
                del self._holds[member]
        self.offer(member)

    def offer(self, member: MemberId) -> None:
        """Put the member where its free places can be found."""
        row = self.members[member]
        place, free = place_of(row.pool, member, row.tenant), 0
        if row.standing is Standing.ACTIVE:
            free = row.places - len(self.held(member, row.member_epoch))
        self._room[member] = place, free
        if free > 0:
            heap = self._free.setdefault(place, [])
            heappush(heap, (-free, member))
            if len(heap) > 4 * len(self.members) + STALE_MAX:
                heap[:] = sorted(
                    {one for one in heap if self._room.get(one[1]) == (place, -one[0])}
                )
        if row.pool == SELF_POOL:
            self._tell(place)

    def _tell(self, place: str) -> None:
        for tell in self._waiting.get(place, {}).values():
            tell(self._turned(place))

    def _turned(self, place: str) -> str:
        return TAKEN if self.free_member(place) is None else FREE

    def _slot_key(self, pool: PoolId, tenant: TenantId | None) -> bytes:
        return pack(pool, tenant or "")
