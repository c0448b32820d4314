"""Questions about attempts: which outcomes are unknown, and who holds which slots since when."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import nsmallest
from itertools import chain
from typing import Generic, NamedTuple, TypeVar

from schemas.phase import Phase

from .keys import join
from .views.holding import HOLDINGS, UNCLAIMED
from .views.operation import Operation
from .views.unknown import UNKNOWNS, Unknown, parse_unknown
from .work import WorkQueries


class UnknownAnswer(NamedTuple):
    """One attempt whose outcome is unknown."""

    since_ms: int
    key: bytes
    tenant: str
    operation: bytes
    incarnation: int
    epoch: int
    row: Unknown


class SlotAnswer(NamedTuple):
    """The slots of one attempt: of the newest of its operation, or of an unknown one."""

    since_ms: int
    """When they were given."""
    key: bytes
    tenant: str
    operation: bytes
    member: str
    phase: Phase
    """GRANTED, LEASED, STARTED or UNKNOWN."""
    until_ms: int | None
    """When the claim, the lease or the hold ends, if nothing happens before."""
    row: Operation | Unknown


A = TypeVar("A", UnknownAnswer, SlotAnswer)
Begin = tuple[int, bytes]
"""Since when, and the key."""


@dataclass(frozen=True, slots=True)
class Oldest(Generic[A]):
    """A page, oldest first; `next` is the first of the following one, if any."""

    items: list[A]
    next: A | None


def oldest(found: Iterable[A], *, begin: Begin | None, limit: int) -> Oldest[A]:
    """At most `limit` of what was found, from `begin` on; all of it is looked at."""
    later = (one for one in found if begin is None or _age(one) >= begin)
    first = nsmallest(limit + 1, later, key=_age)
    return Oldest(first[:limit], first[limit] if len(first) > limit else None)


def _age(one: UnknownAnswer | SlotAnswer) -> Begin:
    return one.since_ms, one.key


class AttemptQueries(WorkQueries):
    """Answers about attempts; slots and places bound how many there are."""

    def unknowns(
        self, tenant: str | None = None, domain: str | None = None
    ) -> Iterator[UnknownAnswer]:
        """Every attempt whose outcome is unknown."""
        for one in self._unknowns(b"" if tenant is None else join(tenant)):
            if domain is None or one.row.domain == domain:
                yield one

    def unknowns_of(self, operation: bytes, row: Operation) -> list[UnknownAnswer]:
        """The unknown attempts of one operation, oldest first."""
        return sorted(self._unknowns(join(row.tenant) + operation), key=_age)

    def _unknowns(self, prefix: bytes) -> Iterator[UnknownAnswer]:
        for key, row in self.rows(UNKNOWNS, prefix):
            yield UnknownAnswer(row.doubt.since_ms, key, *parse_unknown(key), row)

    def held_slots(
        self, tenant: str | None = None, domain: str | None = None
    ) -> Iterator[SlotAnswer]:
        """Every attempt that holds slots."""
        for one in (*self._held_by_members(), *self._held_by_unknowns(tenant)):
            if tenant in (None, one.tenant) and domain in (None, one.row.domain) and one.row.slots:
                yield one

    def leases(self) -> Iterator[bytes]:
        """Every operation that a member has a lease on."""
        for _, held in self.rows(HOLDINGS):
            yield from held.expires_ms

    def _held_by_members(self) -> Iterator[SlotAnswer]:
        for _, held in chain(self.rows(HOLDINGS), self.rows(UNCLAIMED)):
            for operation, until_ms in (*held.claim_by_ms.items(), *held.expires_ms.items()):
                row = self.operation(operation)
                assert row is not None, "Expected to know what is held"
                since_ms, holder = row.granted_ms or 0, row.holder or ""
                key = operation + join(row.epoch)
                yield SlotAnswer(
                    since_ms, key, row.tenant, operation, holder, row.phase, until_ms, row
                )

    def _held_by_unknowns(self, tenant: str | None) -> Iterator[SlotAnswer]:
        for one in self.unknowns(tenant):
            if one.row.held:
                doubt = one.row.doubt
                yield SlotAnswer(
                    one.row.granted_ms or one.since_ms,
                    one.operation + join(one.epoch),
                    one.tenant,
                    one.operation,
                    one.row.member,
                    Phase.UNKNOWN,
                    None if doubt is None else doubt.hold_until_ms,
                    one.row,
                )
