"""What members over HTTP must hear, and how far back: a bounded memory of the newest deliveries.

    ... forgotten ]   since < kept <= until   [ not folded yet
                  ^410                        ^waits

It is filled from the journal, as every view, so each process of the API has the same deliveries
under the same positions, and a member may read on at any of them.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile, islice
from threading import Lock
from typing import Any, Final, NamedTuple

from schemas import registry
from schemas.codec import HEADER_BYTES, decode
from schemas.events import GrantIssued, MemberLost, MemberSlotGranted, MemberSlotReturned
from schemas.ids import CellId, MemberId, key_of_member
from schemas.journal import Entry, Position
from schemas.topics import TOPICS, Topic

from .waiters import Waiters

KEPT_MAX: Final = 100_000
"""To all members together, some 250 bytes each: minutes, and who reads is milliseconds behind."""
ANSWER_MAX: Final = 500
"""Deliveries given at once."""

_NAMES = frozenset(kind.__name__ for kind in TOPICS[Topic.DELIVERIES].holds)
_DELIVERED = frozenset(one.header for one in registry.published() if one.name in _NAMES)
"""How the bytes of what is delivered begin, in every published version."""


class DeliveriesGone(Exception):
    """What follows that position is not kept any more: something would be missed."""


class Told(NamedTuple):
    """An event with its position."""

    position: Position
    event: Any


class Delivered(NamedTuple):
    """What a member hears next, in order."""

    items: Sequence[Told]
    next: Position
    """Where to read on from; everything to the member up to here has been told."""


class _Kept(NamedTuple):
    place: tuple[int, int, int]
    """Generation, offset and index."""
    body: bytes


class Deliveries:
    """The newest deliveries of one cell to members over HTTP; the others have their inboxes."""

    def __init__(
        self,
        cell: CellId,
        since: Position,
        *,
        pools: Mapping[str, str] | None = None,
        kept_max: int = KEPT_MAX,
    ) -> None:
        """Nothing is known of what lies at or before `since`, but for who is in which pool."""
        self._cell, self._kept_max = cell, kept_max
        self._pools = {m: p for m, p in (pools or {}).items() if key_of_member(m) is not None}
        """For grants of open pools, which name nobody: every member of the pool may claim them."""
        self._since = self._until = _place(since)
        self._kept: dict[str, deque[_Kept]] = defaultdict(deque)
        self._order: deque[str] = deque()
        """Whose each kept delivery is, oldest first."""
        self._waiters: Waiters[str] = Waiters()
        self._lock = Lock()

    def hear(self, entries: Sequence[tuple[int, Entry]]) -> None:
        """Remember the next accepted entries, each with its offset, and wake who waits for them."""
        found = [one for offset, entry in entries for one in self._delivered(offset, entry)]
        offset, entry = entries[-1]
        with self._lock:
            for member, kept in found:
                self._kept[member].append(kept)
                self._order.append(member)
            self._until = entry.generation, offset, max(len(entry.events) - 1, 0)
            self._forget()
        self._waiters.tell({member for member, _ in found})

    def _delivered(self, offset: int, entry: Entry) -> Iterator[tuple[str, _Kept]]:
        for index, raw in enumerate(entry.events):
            if raw.body[:HEADER_BYTES] in _DELIVERED:
                kept = _Kept((entry.generation, offset, index), raw.body)
                for member in self._hearers(decode(raw.body)):
                    yield member, kept

    def _hearers(self, event: Any) -> Sequence[str]:
        member = event.member
        if isinstance(event, GrantIssued) and not member:
            return [one for one, pool in self._pools.items() if pool == event.pool]
        if member is None or key_of_member(member) is None:
            return ()
        if isinstance(event, MemberSlotGranted):
            self._pools[member] = event.pool
        elif isinstance(event, MemberLost | MemberSlotReturned):
            self._pools.pop(member, None)
        return (member,)

    def _forget(self) -> None:
        while len(self._order) > self._kept_max:
            member = self._order.popleft()
            kept = self._kept[member]
            self._since = kept.popleft().place
            if not kept:
                del self._kept[member]

    async def read(self, member: MemberId, after: Position | None, wait_ms: int) -> Delivered:
        """What the member has not heard; waits up to `wait_ms` only if there is nothing.

        Args:
            member: whose deliveries.
            after: the last position that it heard or was given as `next`; None means now.
            wait_ms: 0 answers at once.

        Raises:
            DeliveriesGone: the answer would have a gap.
        """
        with self._lock:
            begin = self._until if after is None else _place(after)
        found = self._after(member, begin)
        if found.items or not wait_ms:
            return found
        await self._waiters.wait(member, wait_ms, lambda: bool(self._after(member, begin).items))
        return self._after(member, begin)

    def _after(self, member: str, begin: tuple[int, int, int]) -> Delivered:
        with self._lock:
            return self._kept_after(member, begin)

    def _kept_after(self, member: str, begin: tuple[int, int, int]) -> Delivered:
        if begin < self._since:
            raise DeliveriesGone(
                f"Expected {self._position(begin)} or what follows it to be kept, "
                f"but deliveries are kept from {self._position(self._since)} on"
            )
        new = dropwhile(lambda one: one.place <= begin, self._kept.get(member, ()))
        found = list(islice(new, ANSWER_MAX))
        end = found[-1].place if len(found) == ANSWER_MAX else max(begin, self._until)
        return Delivered(
            [Told(self._position(one.place), decode(one.body)) for one in found],
            self._position(end),
        )

    def _position(self, place: tuple[int, int, int]) -> Position:
        return Position(self._cell, *place)


def _place(position: Position) -> tuple[int, int, int]:
    return position.generation, position.offset, position.index
