"""Heads in the order of their turns, found without a look at everybody (scheduling.md section 7).

The heads of a lane stand in cells: one for each place and each class of what varies between calls,
eight classes for every doubling. In a cell they are in order, so that the next head is the first of
a few cells, however many wait. Where the budget has little room, a cell whose smallest call is too
large is left out as a whole:

    cell of 1,024 to 1,151 tokens    key 5 of A, key 9 of B
    cell of 8,192 to 9,215 tokens    key 2 of C
    C is first; with room for 2,000 tokens A is

A key may rise while nobody looks: that of a tenant that waited blocked is cut to V - M/weight. It
moves to a second order of its cell, by M/weight alone, which V does not change.
"""

from collections.abc import Callable, Generator, Iterable
from heapq import heapify, heappop, heappush, heapreplace
from operator import le

from msgspec.structs import astuple

from schemas.ids import TenantId

from .costs import Cost
from .counters import Counter, LaneRow
from .queues import Queue, Waiting

OUTDATED_MAX = 64
"""Items that nobody needs, beside three for each tenant, until all are put anew."""

Item = tuple[int, int, int, int, Counter, Queue]
"""Key, ring position, admission sequence, a number of its own; whose it is, and where it waits."""


class _Cell:
    """Heads of one class that wait for one place."""

    __slots__ = ("by_key", "by_weight", "least")

    def __init__(self, least: tuple[int, ...]) -> None:
        self.by_key: list[Item] = []
        self.by_weight: list[Item] = []
        """Those whose key is cut, with -M/weight in its place."""
        self.least = least
        """None takes less of any unit; in the order of `Cost`."""


class Index:
    """The heads of all queues in one lane; the newest item of each is the valid one."""

    def __init__(
        self,
        row: LaneRow,
        key: Callable[[Counter, Waiting], int],
        cost: Callable[[Waiting], Cost],
        *,
        varying: tuple[str, ...],
        cuts: bool,
    ) -> None:
        """Nothing waits yet.

        Args:
            row: of the lane, for V.
            key: the smallest goes next, ties by ring position.
            cost: what a head takes.
            varying: the units that are limited and of which calls take more or less.
            cuts: whether a key rises to V - M/weight by itself.
        """
        self.credit_ns = roof(row.cost_max_ns)
        """M; when it grows everybody has to be put anew."""
        self._row = row
        self._key = key
        self._cost = cost
        self._varying = varying
        self._cuts = cuts
        self._places: dict[str, dict[tuple[int, ...], _Cell]] = {}
        self._aside: dict[str, _Cell] = {}
        self._changed: dict[TenantId, Counter] = {}
        self._serial = self._items = 0

    def __len__(self) -> int:
        """Items, outdated ones too."""
        return self._items

    def change(self, counter: Counter) -> None:
        """Its key or one of its heads is another; it is put in its place when somebody asks."""
        self._changed[counter.tenant] = counter

    def set_aside(self, counter: Counter, queue: Queue) -> None:
        """It comes no longer, until something of its tenant changes."""
        self._stand(self._aside.setdefault(queue.pool, _Cell(())), counter, queue, queue.head())

    def in_order(
        self, is_free: Callable[[str], bool], room: tuple[int, ...] | None
    ) -> Generator[tuple[Counter, Queue], None, None]:
        """Heads with a free place, the one whose turn it is first.

        Args:
            is_free: of a place.
            room: leaves out the cells in which every head takes more than this of some unit, in the
                order of `Cost`.
        """
        self._follow()
        cells = self._open_cells(is_free, room)
        tops = [(*top, n) for n, cell in enumerate(cells) if (top := self._top(cell)) is not None]
        heapify(tops)
        passed: list[tuple[list[Item], Item]] = []
        try:
            while tops:
                item, order, n = tops[0]
                yield item[4], item[5]
                passed.append((order, heappop(order)))  # another is wanted; this one stands aside
                top = self._top(cells[n])
                if top is None:
                    heappop(tops)
                else:
                    heapreplace(tops, (*top, n))
        finally:
            for order, item in passed:
                heappush(order, item)

    def first(self, is_free: Callable[[str], bool]) -> tuple[Counter, Queue] | None:
        """The head whose turn it is, even if it is set aside."""
        self._follow()
        cells = self._open_cells(is_free, None)
        cells += [cell for place, cell in self._aside.items() if is_free(place)]
        tops = [top[0] for cell in cells if (top := self._top(cell)) is not None]
        return min(tops)[4:] if tops else None

    def renew_if_worn(self, counters: Iterable[Counter], count: int) -> None:
        """Put everybody in place anew if most of the items are outdated."""
        if self._items > 4 * count + OUTDATED_MAX:
            self._places.clear()
            self._aside.clear()
            self._items = 0
            self._changed.update((counter.tenant, counter) for counter in counters)

    def _follow(self) -> None:
        """Put whoever has changed where it belongs."""
        for counter in self._changed.values():
            for queue in counter.queues.values():
                self._put(counter, queue)
        self._changed.clear()

    def _put(self, counter: Counter, queue: Queue) -> None:
        head = queue.head()
        cost = self._cost(head)
        name = (head.is_run, *(_class(getattr(cost, unit)) for unit in self._varying))
        cells, amounts = self._places.setdefault(queue.pool, {}), astuple(cost)
        cell = cells.get(name)
        if cell is None:
            cell = cells[name] = _Cell(amounts)
        elif cell.least != amounts:
            cell.least = tuple(map(min, cell.least, amounts))
        self._stand(cell, counter, queue, head)

    def _stand(self, cell: _Cell, counter: Counter, queue: Queue, head: Waiting) -> None:
        """From here on this is where the head stands."""
        self._serial += 1
        key = self._key(counter, head)
        item: Item = (key, counter.row.position, head.sequence, self._serial, counter, queue)
        queue.indexed = item
        heappush(cell.by_key, item)
        self._items += 1

    def _open_cells(
        self, is_free: Callable[[str], bool], room: tuple[int, ...] | None
    ) -> list[_Cell]:
        found = []
        for place, cells in list(self._places.items()):
            if not cells:
                del self._places[place]
            elif is_free(place):
                for name, cell in list(cells.items()):
                    if not cell.by_key and not cell.by_weight:
                        del cells[name]
                    elif room is None or all(map(le, cell.least, room)):
                        found.append(cell)
        return found

    def _top(self, cell: _Cell) -> tuple[Item, list[Item]] | None:
        """The first of a cell by its key as of now, and the order in which it stands."""
        v, by_key, by_weight = self._row.v, cell.by_key, cell.by_weight
        while by_key:
            item = by_key[0]
            if not self._drop(by_key, item):
                below_v = -(self.credit_ns // item[4].row.weight)
                if not self._cuts or item[0] >= v + below_v:
                    break
                heappop(by_key)
                item[5].indexed = moved = (below_v, *item[1:])
                heappush(by_weight, moved)
        while by_weight and self._drop(by_weight, by_weight[0]):
            pass
        if by_weight:
            item = by_weight[0]
            cut: Item = (v + item[0], *item[1:])
            if not by_key or cut < by_key[0]:
                return cut, by_weight
        return (by_key[0], by_key) if by_key else None

    def _drop(self, order: list[Item], item: Item) -> bool:
        """Drop the first if another is valid in its place, or nothing waits there."""
        queue = item[5]
        outdated = queue.indexed is not item or not queue.count
        if outdated:
            heappop(order)
            self._items -= 1
        return outdated


def _class(amount: int) -> int:
    """Eight for every doubling; up to sixteen each is a class of its own."""
    shift = max(amount.bit_length() - 4, 0)
    return (shift << 3) + (amount >> shift)


def roof(amount: int) -> int:
    """The largest of its class."""
    shift = max(amount.bit_length() - 4, 0)
    return ((amount >> shift) + 1 << shift) - 1
