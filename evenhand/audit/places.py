"""A grant names a living member with a free place, and pools stay within their size (R169, C5).

Live grants and leases of one life of a member never exceed the places that it announced, and its
member slot returns only when none of them is left (R117).
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from schemas import events as e
from schemas.ids import SELF_POOL, MemberEpoch, MemberId, PoolId, TenantId

from .book import Book
from .config import Config
from .cursor import Cursor
from .records import NOBODY, key_of

CHECK = "places"


@dataclass(slots=True)
class _Member:
    member_epoch: MemberEpoch
    pool: PoolId
    tenant: TenantId | None
    places: int
    active: bool = False
    draining: bool = False
    living: bool = False
    """Active, or silent for not too long."""


class Places:
    """Members as the journal has them, and how many places of each are taken."""

    def __init__(self, cursor: Cursor, config: Config, book: Book) -> None:
        self._cursor = cursor
        self._config = config
        self._book = book
        self._members: dict[MemberId, _Member] = {}
        self._slots: Counter[tuple[PoolId, TenantId | None]] = Counter()

    def handlers(self) -> dict[type, Callable[[Any], None]]:
        """What to call for which event."""
        return {
            e.GrantIssued: self._granted,
            e.LeaseClaimed: self._claimed,
            e.MemberSlotGranted: self._joined,
            e.MemberActivated: self._activated,
            e.MemberRestored: self._activated,
            e.MemberSuspected: self._silent,
            e.MemberLost: self._lost,
            e.MemberDrainRequested: self._drained,
            e.MemberSlotReturned: self._left,
        }

    def are_served(self, pool: PoolId, member: MemberId | None) -> bool:
        """Whether anybody may run what waits in the pool; in pool self, for this member."""
        if self._unclaimed_max(pool) is not None:
            return True
        return any(
            one.pool == pool and one.living and not one.draining
            for name, one in self._members.items()
            if member in (None, name)
        )

    def _granted(self, event: e.GrantIssued) -> None:
        operation = self._book.operations.get(event.operation)
        if event.pool == SELF_POOL:
            member = self._members.get(event.member)
            named = None if operation is None else operation.member
            if member is None or (event.member, event.tenant) != (named, member.tenant):
                self._found(f"Expected a grant to {named}, the submitter, not to {event.member}")
        elif not self._runs(event.pool, event.domain):
            self._found(f"Expected pool {event.pool} to run domain {event.domain}")
        unclaimed_max = self._unclaimed_max(event.pool)
        if unclaimed_max is None:
            self._takes_place(event, event.pool)
            return
        if event.member != NOBODY:
            self._found(f"Expected a grant to whoever claims it first, not to {event.member}")
        offered = self._book.held.get((NOBODY, event.member_epoch), {}).values()
        unclaimed = sum(one.grant.pool == event.pool for one in offered)
        if unclaimed >= unclaimed_max:
            self._found(f"Expected at most {unclaimed_max} unclaimed grants, but this is one more")

    def _claimed(self, event: e.LeaseClaimed) -> None:
        reservation = self._book.open.get(key_of(event))
        if reservation is not None and reservation.grant.member == NOBODY:
            self._takes_place(event, reservation.grant.pool)

    def _takes_place(self, event: e.GrantIssued | e.LeaseClaimed, pool: PoolId) -> None:
        taken = 1 + len(self._book.held.get((event.member, event.member_epoch), ()))
        member = self._members.get(event.member)
        if member is None or member.member_epoch != event.member_epoch:
            self._found(f"Expected a member {event.member} of epoch {event.member_epoch}")
            return
        if not member.active or member.draining:
            self._found(f"Expected an active member, but {event.member} is not")
        if member.pool != pool:
            self._found(f"Expected a member of pool {pool}, not of {member.pool}")
        if taken > member.places:
            self._found(f"Expected at most {member.places} places, but {taken} are taken")

    def _joined(self, event: e.MemberSlotGranted) -> None:
        before = self._members.get(event.member)
        if before is not None and before.member_epoch == event.member_epoch:
            return  # the same life asked again
        if before is not None:
            self._slots[before.pool, before.tenant] -= 1
        slot = (event.pool, event.tenant)
        self._slots[slot] += 1
        size = self._size(event.pool)
        if size is None or self._slots[slot] > size:
            self._found(f"Expected at most {size or 0} members, but {event.member} is one more")
        pool = self._config.pools.get(event.pool)
        if pool is not None and event.places > pool.places_max:
            self._found(f"Expected at most {pool.places_max} places at {event.member}")
        self._members[event.member] = _Member(
            event.member_epoch, event.pool, event.tenant, event.places
        )

    def _activated(self, event: Any) -> None:
        if (member := self._current(event)) is not None:
            member.active = member.living = True

    def _silent(self, event: Any) -> None:
        if (member := self._current(event)) is not None:
            member.active = False

    def _lost(self, event: Any) -> None:
        if (member := self._current(event)) is not None:
            member.active = member.living = False

    def _drained(self, event: Any) -> None:
        if (member := self._current(event)) is not None:
            member.draining = True

    def _left(self, event: e.MemberSlotReturned) -> None:
        if (member := self._current(event)) is not None:
            self._slots[member.pool, member.tenant] -= 1
            del self._members[event.member]
        if any(member == event.member for member, _ in self._book.held):
            self._found(f"Expected the slot of {event.member} to wait for what it still holds")

    def _current(self, event: Any) -> _Member | None:
        member = self._members.get(event.member)
        if member is None or member.member_epoch != event.member_epoch:
            self._found(f"Expected {event.member} of epoch {event.member_epoch} to be a member")
            return None
        return member

    def _size(self, pool: PoolId) -> int | None:
        if pool == SELF_POOL:
            return self._config.cell.self_members_max
        config = self._config.pools.get(pool)
        return None if config is None else config.members_max

    def _unclaimed_max(self, pool: PoolId) -> int | None:
        config = self._config.pools.get(pool)
        return None if config is None else config.unclaimed_max

    def _runs(self, pool: PoolId, domain: str) -> bool:
        config = self._config.pools.get(pool)
        return config is not None and (not config.domains or domain in config.domains)

    def _found(self, detail: str) -> None:
        self._cursor.found(CHECK, detail)
