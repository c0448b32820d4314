"""Whose turn it is: the tenants of one lane of one domain, and five ways to order them.

The virtual counter (scheduling.md section 1; start tags of Goyal et al., SIGCOMM 1996, counters of
Sheng et al., OSDI 2024) serves the smallest `key = base + served // weight` first. With weights
2:1:1 and equal costs of 10 the first turns are

    keys A 0, B 0, C 0    A (ring position decides), its key is now 5
         A 5, B 0, C 0    B, now 10
         A 5, B 10, C 0   C, now 10
         A 5, B 10, C 10  A, now 10, and the round begins again: A B C A.
"""

from bisect import bisect_left, insort
from collections.abc import Generator
from enum import StrEnum
from heapq import heappop, heappush
from typing import assert_never

import msgspec

from schemas.ids import TenantId
from schemas.units import Millis, Nanos

from .limits import HOLD_SHARE
from .queues import Queue
from .tables import Overlay, Table, pack


class Policy(StrEnum):
    """How tenants take turns; interchangeable (R25)."""

    FIFO = "fifo"
    STRICT_PRIORITY = "strict_priority"
    ROUND_ROBIN = "round_robin"
    WEIGHTED_ROUND_ROBIN = "weighted_round_robin"
    VIRTUAL_COUNTER = "virtual_counter"


class CounterRow(msgspec.Struct, array_like=True, gc=False, kw_only=True):
    """What one tenant has been served in one lane of one domain."""

    base: int = 0
    served: int = 0
    weight: int = 1
    lift: int = 0
    """How often idleness or blocking was written off; a reservation names the value it saw."""
    position: int = 0
    """Place in the ring; unique in the lane."""
    round: int = -1
    turns: int = 0
    """Turns taken in that round."""
    hold_ms: Millis = Millis(0)
    """Estimate of how long a call holds its slot; 0 until the first settlement."""


class LaneRow(msgspec.Struct, array_like=True, gc=False, kw_only=True):
    """What the tenants of a lane share."""

    v: int = 0
    """Highest key at a pick; it never falls."""
    cost_max_ns: int = 0
    """Largest cost admitted so far: M, the most credit a blocked tenant keeps, before weight."""
    positions: int = 0
    cursor: int = 0
    """Ring position of the last turn."""
    round: int = 0


class Counter:
    """One tenant's counter, with the queues it has in this lane."""

    def __init__(self, tenant: TenantId, row: CounterRow, key: bytes) -> None:
        self.tenant = tenant
        self.row_key = key
        self.row = row
        self.rank = 0
        self.queues: dict[str, Queue] = {}
        """By pool; only those in which something waits."""

    @property
    def key(self) -> int:
        """Cost served per weight; the smallest goes next."""
        return self.row.base + self.row.served // self.row.weight


class Lane:
    """The counters of one lane of one domain, active ones in order of the policy in force."""

    def __init__(self, rows: Overlay, domain: str, lane: str, policy: Policy) -> None:
        self.policy = policy
        self._rows = rows
        self._domain = domain
        self._lane = lane
        self._key = pack(domain, lane)
        self.row: LaneRow = rows.get(Table.LANE, self._key) or LaneRow()
        self.counters: dict[TenantId, Counter] = {}
        self._heap: list[tuple[int, int, TenantId]] = []
        self._ring: list[tuple[int, TenantId]] = []
        """Active tenants by position."""

    # -- what the fold does ------------------------------------------------------------------

    def counter(self, tenant: TenantId) -> Counter:
        """The tenant's counter, made at its first operation."""
        found = self.counters.get(tenant)
        if found is None:
            key = pack(self._domain, self._lane, tenant)
            row = self._rows.get(Table.COUNTER, key) or CounterRow()
            found = self.counters[tenant] = Counter(tenant, row, key)
        return found

    def admitted(self, cost_ns: Nanos) -> None:
        """Remember the largest cost."""
        if cost_ns > self.row.cost_max_ns:
            self.row.cost_max_ns = cost_ns
            self._put_lane()

    def activate(self, counter: Counter) -> None:
        """Its first operation waits: idleness earns nothing, and it joins behind the others.

        A tenant that was served in this round keeps its place, or emptying the queue after every
        turn would buy a second turn in the round.
        """
        row = counter.row
        if counter.key < self.row.v:
            self._raise_to(row, self.row.v)
        if row.round != self.row.round:
            self.row.positions += 1
            row.position = self.row.positions
            self._put_lane()
        insort(self._ring, (row.position, counter.tenant))
        self._moved(counter)

    def deactivate(self, counter: Counter) -> None:
        """Nothing of it waits any more."""
        del self._ring[bisect_left(self._ring, (counter.row.position, counter.tenant))]

    def restore(self, counter: Counter) -> None:
        """At opening: put an active tenant where its row says."""
        insort(self._ring, (counter.row.position, counter.tenant))
        heappush(self._heap, (counter.key, counter.row.position, counter.tenant))

    def reweigh(self, counter: Counter, weight: int) -> None:
        """Another weight from here on; what was served stays worth what it was."""
        row = counter.row
        if row.weight != weight:
            row.base, row.served, row.weight = counter.key, 0, weight
            self._moved(counter)

    def charge(self, counter: Counter, cost_ns: Nanos) -> None:
        """A turn: lift the blocked, move V to the key of this pick, count the estimate."""
        row = counter.row
        effective = self._effective(counter)
        if effective > counter.key:
            self._raise_to(row, effective)
        self.row.v = max(self.row.v, counter.key)
        row.served += cost_ns
        if self._had_its_turns(counter):
            self.row.round += 1
        if row.round != self.row.round:
            row.round, row.turns = self.row.round, 0
        row.turns += 1
        self.row.cursor = row.position
        self._put_lane()
        self._moved(counter)

    def correct(self, counter: Counter, delta_ns: int, *, weight: int, lift: int) -> None:
        """The cost of a reservation turned out otherwise, or it was returned.

        At the weight of the reservation. A surcharge counts in full; a refund from before the
        last lift lowers the key to no less than V, or refunds would bank credit.
        """
        row = counter.row
        before = counter.key
        if weight == row.weight:
            row.served += delta_ns
        else:
            row.base += -(-delta_ns // weight)
        floor = min(before, self.row.v)
        if lift != row.lift and counter.key < floor:
            row.base, row.served = floor, 0
        self._moved(counter)

    def settled_hold(self, counter: Counter, held_ms: Millis, initial_ms: Millis) -> None:
        """Learn how long a call holds its slot."""
        row = counter.row
        hold = row.hold_ms or initial_ms
        row.hold_ms = max(Millis(1), Millis(hold + (held_ms - hold) // HOLD_SHARE))
        self._put(counter)

    def lift_at_pick(self, counter: Counter) -> int:
        """The lift generation that a pick of this tenant would leave."""
        return counter.row.lift + (self._effective(counter) > counter.key)

    # -- whom to try -------------------------------------------------------------------------

    def in_order(self) -> Generator[Counter, None, None]:
        """Active tenants, the one whose turn it is first; the caller passes over who cannot go."""
        counters = self.counters
        match self.policy:
            case Policy.VIRTUAL_COUNTER:
                yield from self._by_key()
            case Policy.FIFO:  # which head is the oldest depends on places: dispatch compares
                yield from [counters[tenant] for _, tenant in self._ring]
            case Policy.STRICT_PRIORITY:
                active = [counters[tenant] for _, tenant in self._ring]
                yield from sorted(active, key=lambda counter: (counter.rank, counter.row.position))
            case Policy.ROUND_ROBIN | Policy.WEIGHTED_ROUND_ROBIN:
                yield from self._by_turn()
            case _:
                assert_never(self.policy)

    def _by_key(self) -> Generator[Counter, None, None]:
        """Smallest effective key first, ties by ring position; a plain heap with lazy keys."""
        passed: list[tuple[int, int, TenantId]] = []
        seen: set[TenantId] = set()
        heap = self._heap
        try:
            while heap:
                item = heappop(heap)
                key, position, tenant = item
                counter = self.counters[tenant]
                if tenant in seen or not counter.queues or position != counter.row.position:
                    continue
                effective = self._effective(counter)
                if key != effective:
                    if key < effective:
                        heappush(heap, (effective, position, tenant))
                    continue
                seen.add(tenant)
                passed.append(item)
                yield counter
        finally:
            for item in passed:
                heappush(heap, item)

    def _by_turn(self) -> Generator[Counter, None, None]:
        """From the cursor on round the ring: first who has turns left, then the next round."""
        start = bisect_left(self._ring, (self.row.cursor, TenantId("")))
        ring = [self.counters[tenant] for _, tenant in self._ring[start:] + self._ring[:start]]
        later = []
        for counter in ring:
            if self._had_its_turns(counter):
                later.append(counter)
            else:
                yield counter
        yield from sorted(later, key=lambda counter: counter.row.position)

    def _had_its_turns(self, counter: Counter) -> bool:
        turns = 1 if self.policy is Policy.ROUND_ROBIN else counter.row.weight
        return counter.row.round == self.row.round and counter.row.turns >= turns

    def _effective(self, counter: Counter) -> int:
        """The key after the credit of a blocked tenant is cut to M/weight."""
        return max(counter.key, self.row.v - self.row.cost_max_ns // counter.row.weight)

    def _raise_to(self, row: CounterRow, key: int) -> None:
        row.base, row.served = key, 0
        row.lift += 1

    def _moved(self, counter: Counter) -> None:
        self._put(counter)
        if counter.queues:
            heappush(self._heap, (self._effective(counter), counter.row.position, counter.tenant))
            if len(self._heap) > 4 * len(self._ring) + 64:
                self._heap = []
                for _, tenant in self._ring:
                    other = self.counters[tenant]
                    heappush(self._heap, (self._effective(other), other.row.position, tenant))

    def _put(self, counter: Counter) -> None:
        self._rows.put(Table.COUNTER, counter.row_key, counter.row)

    def _put_lane(self) -> None:
        self._rows.put(Table.LANE, self._key, self.row)
