"""Whose turn it is: the tenants of one lane of one domain, and six ways to order them.

The virtual counter (scheduling.md section 1; start tags of Goyal et al., SIGCOMM 1996, counters of
Sheng et al., OSDI 2024) serves the smallest `key = base + served // weight` first. With weights
2:1:1 and equal costs of 10 the first turns are

    keys A 0, B 0, C 0    A (ring position decides), its key is now 5
         A 5, B 0, C 0    B, now 10
         A 5, B 10, C 0   C, now 10
         A 5, B 10, C 10  A, now 10, and the round begins again: A B C A.
"""

from collections.abc import Callable, Generator
from contextlib import closing
from enum import StrEnum
from heapq import heappop, heappush, heapreplace
from itertools import takewhile
from typing import assert_never

from schemas.ids import TenantId
from schemas.inputs import DomainConfig
from schemas.lanes import BULK, DECISION, INTERACTIVE
from schemas.units import NANOS_PER_MILLI, Millis, Nanos

from .counters import Counter, CounterRow, LaneRow, Place, correct, raise_to, reweigh
from .limits import HOLD_SHARE
from .ring import Ring
from .tables import Overlay, Table, pack


class Policy(StrEnum):
    """How tenants take turns; interchangeable (R25)."""

    FIFO = "fifo"
    STRICT_PRIORITY = "strict_priority"
    ROUND_ROBIN = "round_robin"
    WEIGHTED_ROUND_ROBIN = "weighted_round_robin"
    DEFICIT_ROUND_ROBIN = "deficit_round_robin"
    VIRTUAL_COUNTER = "virtual_counter"


class Lane:
    """The counters of one lane of one domain, active ones in order of the policy in force."""

    def __init__(self, rows: Overlay, domain: str, lane: str, config: DomainConfig) -> None:
        self.name = lane
        self._rows = rows
        self._domain = domain
        self._key = pack(domain, lane)
        self.row: LaneRow = rows.get(Table.LANE, self._key) or LaneRow()
        self.counters: dict[TenantId, Counter] = {}
        self.places: dict[str, int] = {}
        """Where somebody waits, and how many tenants do."""
        self._heap: list[Place] = []
        self._ring = Ring(self.row)
        self._outdated = False
        """Whether credit may have grown, so that keys in the heap may be too high."""
        self.configure(config)

    # -- what the fold does ------------------------------------------------------------------

    def configure(self, config: DomainConfig) -> None:
        """The domain's policy and windows from here on."""
        self.policy = Policy(config.policy)
        self.weight = {
            INTERACTIVE: config.interactive_weight,
            DECISION: config.decision_weight,
            BULK: config.bulk_weight,
        }[self.name]
        windows_ms = [one.window_ms for one in config.dimensions if one.window_ms is not None]
        self._window_ns = min(windows_ms, default=0) * NANOS_PER_MILLI
        self._outdated = True

    def counter(self, tenant: TenantId) -> Counter:
        """The tenant's counter, made at its first operation."""
        found = self.counters.get(tenant)
        if found is None:
            key = pack(self._domain, self.name, tenant)
            row = self._rows.get(Table.COUNTER, key) or CounterRow()
            found = self.counters[tenant] = Counter(tenant, row, key)
        return found

    def wait_at(self, place: str, change: int) -> None:
        """A tenant more waits at this place, or one less."""
        count = self.places.get(place, 0) + change
        if count:
            self.places[place] = count
        else:
            del self.places[place]

    def admitted(self, cost_ns: Nanos) -> None:
        """Remember the largest cost."""
        if cost_ns > self.row.cost_max_ns:
            self.row.cost_max_ns = cost_ns
            self._outdated = True
            self.put_row()

    def activate(self, counter: Counter) -> None:
        """Its first operation waits: idleness earns nothing, and it joins behind the others."""
        row = counter.row
        if counter.key < self.row.v:
            raise_to(row, self.row.v)
        row.deficit = min(row.deficit, 0)
        self._ring.join(counter)
        self.put_row()
        self._moved(counter)

    def deactivate(self, counter: Counter) -> None:
        """Nothing of it waits any more."""
        self._ring.leave(counter)

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits in it."""
        return not len(self._ring)

    def put_row(self) -> None:
        """Keep what its tenants share."""
        self._rows.put(Table.LANE, self._key, self.row)

    def restore(self, counter: Counter) -> None:
        """At opening: put an active tenant where its row says."""
        self._ring.restore(counter)

    def reweigh(self, counter: Counter, weight: int) -> None:
        """Another weight from here on; what was served stays worth what it was."""
        if counter.row.weight != weight:
            reweigh(counter.row, weight)
            self._moved(counter)

    def charge(
        self, counter: Counter, cost_ns: Nanos, holds_itself_back: Callable[[Counter], bool]
    ) -> None:
        """A turn: move V to the key of this pick, count the estimate.

        Args:
            counter: active, even if its last operation goes now.
            cost_ns: the estimate.
            holds_itself_back: whether a tenant that was passed over could not have gone with the
                whole budget of the domain free.
        """
        if self.policy is Policy.VIRTUAL_COUNTER:
            for other in self._passed_over(counter):
                self._hold(other, held=holds_itself_back(other))
        row = counter.row
        self._cut(counter)
        row.held = False
        self.row.v = max(self.row.v, counter.key)
        row.served += cost_ns
        self._take_turn(counter, cost_ns)
        self.put_row()
        self._moved(counter)

    def correct(self, counter: Counter, delta_ns: int, *, weight: int, lift: int) -> None:
        """The cost of a reservation turned out otherwise, or it was returned."""
        correct(counter.row, delta_ns, weight=weight, lift=lift, v=self.row.v)
        if self.policy is Policy.DEFICIT_ROUND_ROBIN:
            deficit = counter.row.deficit - delta_ns
            counter.row.deficit = deficit if self._ring.visits(counter) else min(deficit, 0)
        self._moved(counter)

    def settled_hold(self, counter: Counter, held_ms: Millis, initial_ms: Millis) -> None:
        """Learn how long a call holds its slot."""
        row = counter.row
        hold = row.hold_ms or initial_ms
        row.hold_ms = max(Millis(1), Millis(hold + (held_ms - hold) // HOLD_SHARE))
        self._put(counter)

    def held_back(self, counter: Counter) -> None:
        """It was recorded that nothing but the reserve held its head back."""
        counter.row.held_back += 1
        self._put(counter)

    def lift_at_pick(self, counter: Counter) -> int:
        """The lift generation that a pick of this tenant would leave."""
        return counter.row.lift + (self._effective(counter) > counter.key)

    # -- whom to try -------------------------------------------------------------------------

    def in_order(self) -> Generator[Counter, None, None]:
        """Active tenants, the one whose turn it is first; the caller passes over who cannot go."""
        match self.policy:
            case Policy.VIRTUAL_COUNTER:
                yield from self._by_key()
            case Policy.FIFO:  # which head is the oldest depends on places: dispatch compares
                yield from self._ring
            case Policy.STRICT_PRIORITY:
                yield from sorted(self._ring, key=lambda counter: counter.rank)
            case Policy.ROUND_ROBIN | Policy.WEIGHTED_ROUND_ROBIN:
                yield from self._ring.by_turn()
            case Policy.DEFICIT_ROUND_ROBIN:
                yield from self._ring.by_deficit(self.row.cost_max_ns)
            case _:
                assert_never(self.policy)

    def first(self) -> Counter | None:
        """The tenant whose turn it is, whether or not it can go."""
        with closing(self.in_order()) as order:
            return next(order, None)

    def _by_key(self) -> Generator[Counter, None, None]:
        """Smallest effective key first, ties by ring position."""
        passed: list[Place] = []
        try:
            while (counter := self._head()) is not None:
                yield counter
                passed.append(heappop(self._heap))  # another is wanted; this one stands aside
        finally:
            for item in passed:
                heappush(self._heap, item)

    def _head(self) -> Counter | None:
        """The smallest effective key; a plain heap with lazy keys, of which outdated ones go."""
        if self._outdated:
            self._index()
        heap = self._heap
        while heap:
            first = heap[0]
            counter = self.counters[first[2]]
            if first is not counter.indexed:
                heappop(heap)
            elif not counter.queues:
                counter.indexed = None
                heappop(heap)
            elif first[0] != self._effective(counter):
                counter.indexed = self._place(counter)
                heapreplace(heap, counter.indexed)
            else:
                return counter
        return None

    def _take_turn(self, counter: Counter, cost_ns: Nanos) -> None:
        match self.policy:
            case Policy.ROUND_ROBIN:
                ended = self._ring.take_turn(counter, 1)
            case Policy.WEIGHTED_ROUND_ROBIN:
                ended = self._ring.take_turn(counter, counter.row.weight)
            case Policy.DEFICIT_ROUND_ROBIN:
                ended = self._ring.take_of_deficit(counter, cost_ns, self.row.cost_max_ns)
            case _:
                return
        for earlier in ended:
            self._moved(earlier)

    def _passed_over(self, counter: Counter) -> list[Counter]:
        """Who comes before this one by key."""
        if self._head() is counter:
            return []
        with closing(self._by_key()) as by_key:
            return list(takewhile(lambda other: other is not counter, by_key))

    def _hold(self, counter: Counter, *, held: bool) -> None:
        if counter.row.held is not held:
            self._cut(counter)
            counter.row.held = held
            self._moved(counter)

    def _cut(self, counter: Counter) -> None:
        """Write off what a blocked tenant has missed beyond its credit."""
        effective = self._effective(counter)
        if effective > counter.key:
            raise_to(counter.row, effective)

    def _effective(self, counter: Counter) -> int:
        """The key after the credit is cut: to M/weight for a tenant that holds itself back.

        One that the shared budget holds back is owed what it missed, up to a whole window.
        """
        row, most_ns = counter.row, self.row.cost_max_ns
        if not row.held:
            most_ns = max(most_ns, self._window_ns)
        return max(counter.key, self.row.v - most_ns // row.weight)

    def _moved(self, counter: Counter) -> None:
        self._put(counter)
        if counter.queues:
            counter.indexed = self._place(counter)
            heappush(self._heap, counter.indexed)
            if len(self._heap) > 4 * len(self._ring) + 64:
                self._index()

    def _place(self, counter: Counter) -> Place:
        return self._effective(counter), counter.row.position, counter.tenant

    def _index(self) -> None:
        self._outdated = False
        self._heap = []
        for counter in self._ring:
            place = counter.indexed = self._place(counter)
            self._heap.append(place)
        self._heap.sort()

    def _put(self, counter: Counter) -> None:
        self._rows.put(Table.COUNTER, counter.row_key, counter.row)
