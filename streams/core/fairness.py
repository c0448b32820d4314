"""Whose turn it is: the tenants of one lane of one domain, and six ways to order them.

The virtual counter (scheduling.md section 1; start tags of Goyal et al., SIGCOMM 1996, counters of
Sheng et al., OSDI 2024) serves the smallest `key = base + served // weight` first. With weights
2:1:1 and equal costs of 10 the first turns are

    keys A 0, B 0, C 0    A (ring position decides), its key is now 5
         A 5, B 0, C 0    B, now 10
         A 5, B 10, C 0   C, now 10
         A 5, B 10, C 10  A, now 10, and the round begins again: A B C A.
"""

from collections.abc import Callable, Generator, Iterable
from enum import StrEnum
from functools import partial
from typing import assert_never

from schemas.ids import TenantId
from schemas.inputs import DomainConfig
from schemas.lanes import BULK, DECISION, INTERACTIVE
from schemas.units import Millis, Nanos

from .costs import cost_of
from .counters import Counter, CounterRow, LaneRow, correct, raise_to, reweigh
from .heads import Stand
from .index import Index, roof
from .limits import HOLD_SHARE
from .queues import Queue, Waiting
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


VARYING = ("tokens", "input_tokens", "output_tokens", "money")
"""Units of which one call takes more than another."""


class Lane:
    """The counters of one lane of one domain, active ones in order of the policy in force."""

    def __init__(self, rows: Overlay, domain: str, lane: str, config: DomainConfig) -> None:
        self.name = lane
        self._rows = rows
        self._domain = domain
        self._key = pack(domain, lane)
        self.row: LaneRow = rows.get(Table.LANE, self._key) or LaneRow()
        self.counters: dict[TenantId, Counter] = {}
        self.queues = 0
        """In which something waits."""
        self._ring = Ring(self.row)
        self.configure(config)

    # -- what the fold does ------------------------------------------------------------------

    def configure(self, config: DomainConfig) -> None:
        """The domain's policy and weight from here on."""
        self.policy = Policy(config.policy)
        self.weight = {
            INTERACTIVE: config.interactive_weight,
            DECISION: config.decision_weight,
            BULK: config.bulk_weight,
        }[self.name]
        units = {dimension.unit for dimension in config.dimensions}
        self._index = Index(
            self.row,
            self._turn,
            partial(cost_of, prices=config.prices),
            varying=tuple(unit for unit in VARYING if unit in units),
            cuts=self.policy is Policy.VIRTUAL_COUNTER,
        )
        self._index.put_anew(self._ring)
        self._watch(self._ring)

    def counter(self, tenant: TenantId) -> Counter:
        """The tenant's counter, made at its first operation."""
        found = self.counters.get(tenant)
        if found is None:
            key = pack(self._domain, self.name, tenant)
            row = self._rows.get(Table.COUNTER, key) or CounterRow()
            found = self.counters[tenant] = Counter(tenant, row, key)
        return found

    def admitted(self, cost_ns: Nanos) -> None:
        """Remember the largest cost."""
        if cost_ns > self.row.cost_max_ns:
            self.row.cost_max_ns = cost_ns
            self.put_row()
            credit_ns = roof(cost_ns)
            if credit_ns > self._index.credit_ns:
                self._index.credit_ns = credit_ns
                if self.policy is Policy.VIRTUAL_COUNTER:
                    self._index.put_anew(self._ring)
            for counter in self._ring.owing():  # a visit is worth more than before
                self._index.change(counter)

    def activate(self, counter: Counter) -> None:
        """Its first operation waits: idleness earns nothing, and it joins behind the others."""
        row = counter.row
        if counter.key < self.row.v:
            raise_to(row, self.row.v)
        row.deficit = min(row.deficit, 0)
        self._ring.join(counter)
        self.put_row()
        self._moved(counter)

    def changed(self, counter: Counter, queue: Queue | None = None) -> None:
        """Another operation is the first in this queue, or the tenant's caps have more room."""
        self._index.change(counter, queue)

    def turned(self, counter: Counter, queue: Queue, at: str) -> None:
        """The place of a member of pool self is `FREE` or `TAKEN` now."""
        if queue.at != at:
            queue.at = at
            self._index.change(counter, queue)

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
        self._watch([counter])
        self._index.change(counter)

    def reweigh(self, counter: Counter, weight: int) -> None:
        """Another weight from here on; what was served stays worth what it was."""
        if counter.row.weight != weight:
            reweigh(counter.row, weight)
            self._moved(counter)

    def rank(self, counter: Counter, rank: int) -> None:
        """Another rank from here on."""
        if counter.rank != rank:
            counter.rank = rank
            self._index.change(counter)

    def charge(self, counter: Counter, cost_ns: Nanos) -> None:
        """A turn of an active tenant: move V to the key of this pick, count the estimate."""
        effective = self._effective(counter)
        if effective > counter.key:
            raise_to(counter.row, effective)
        self.row.v = max(self.row.v, effective)
        counter.row.served += cost_ns
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

    def in_order(
        self, is_free: Callable[[str], bool], room: tuple[int, ...] | None = None
    ) -> Generator[tuple[Counter, Stand], None, None]:
        """Heads whose place is free, the one whose turn it is first; see `Index.in_order`."""
        self._index.renew_if_worn(self._ring, self.queues)
        return self._index.in_order(is_free, room)

    def first(self, is_free: Callable[[str], bool]) -> tuple[Counter, Stand] | None:
        """The head whose turn it is, even if it was set aside."""
        return self._index.first(is_free)

    def oldest(self, counter: Counter, is_free: Callable[[str], bool]) -> Waiting:
        """The tenant's oldest head whose place is free, in an order that was looked at before."""
        return self._index.oldest(counter, is_free)

    def set_aside(self, counter: Counter, stand: Stand) -> None:
        """It comes no longer, until the tenant's counter, its heads or its own caps change."""
        self._index.set_aside(counter, stand)

    def _turn(self, counter: Counter, head: Waiting) -> int:
        """What is smallest for whoever goes next; ties go by ring position."""
        match self.policy:
            case Policy.VIRTUAL_COUNTER:
                return counter.key
            case Policy.FIFO:
                return head.sequence
            case Policy.STRICT_PRIORITY:
                return counter.rank
            case Policy.ROUND_ROBIN | Policy.WEIGHTED_ROUND_ROBIN:
                return -self._ring.visits(counter)
            case Policy.DEFICIT_ROUND_ROBIN:
                if self._ring.visits(counter):
                    return -1
                return self._ring.owes(counter, self.row.cost_max_ns)
            case _:
                assert_never(self.policy)

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

    def _effective(self, counter: Counter) -> int:
        """The key after what a blocked tenant has missed is cut to its credit, M/weight.

        M is rounded up to its class here, so that it seldom grows: then all are looked at anew.
        """
        return max(counter.key, self.row.v - self._index.credit_ns // counter.row.weight)

    def _moved(self, counter: Counter) -> None:
        self._put(counter)
        if self.policy is Policy.DEFICIT_ROUND_ROBIN:
            self._ring.watch(counter, self.row.cost_max_ns)
        self._index.change(counter)

    def _watch(self, counters: Iterable[Counter]) -> None:
        if self.policy is Policy.DEFICIT_ROUND_ROBIN:
            for counter in counters:
                self._ring.watch(counter, self.row.cost_max_ns)

    def _put(self, counter: Counter) -> None:
        self._rows.put(Table.COUNTER, counter.row_key, counter.row)
