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

In pool self each member is a place of its own. All that are free are one place here, and so are all
others; heads of one tenant that are alike stand there as one (`Heads`).
"""

from collections.abc import Callable, Generator, Iterable
from heapq import heapify, heappop, heappush, heapreplace
from operator import le

from msgspec.structs import astuple

from schemas.ids import TenantId

from .costs import Cost
from .counters import Counter, LaneRow
from .heads import Heads, Stand
from .queues import FREE, TAKEN, Queue, Waiting

OUTDATED_MAX = 64
"""Items that nobody needs, beside three for each queue, until all are put anew."""

Item = tuple[int, int, int, int, Counter, Stand]
"""Key, ring position, admission sequence, a number of its own; whose it is, and where it waits."""
Class = tuple[int, ...]
"""Whether it is a run, and for each varying unit how much it takes."""


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
        self._places: dict[str, dict[Class, _Cell]] = {}
        self._aside: dict[str, _Cell] = {}
        self._heads: dict[Counter, dict[tuple[str, Class], Heads]] = {}
        self._changed: dict[TenantId, Counter] = {}
        self._turned: dict[Queue, Counter] = {}
        """Queues of pool self with another head, or whose place was taken or freed."""
        self._serial = self._items = 0

    def __len__(self) -> int:
        """Items, outdated ones too."""
        return self._items

    def change(self, counter: Counter, queue: Queue | None = None) -> None:
        """Its key or this queue is another; it is put in its place when somebody asks."""
        self._changed[counter.tenant] = counter
        if queue is not None and queue.at != queue.pool:
            if queue.count:
                self._turned[queue] = counter
            else:
                self._turned.pop(queue, None)

    def put_anew(self, counters: Iterable[Counter]) -> None:
        """These and nobody else wait; they are put in their places when somebody asks."""
        self._places.clear()
        self._aside.clear()
        self._heads.clear()
        self._items = 0
        for counter in counters:
            self._changed[counter.tenant] = counter
            if len(counter.queues) > len(counter.shared):
                own = (queue for queue in counter.queues.values() if queue.at != queue.pool)
                self._turned.update(dict.fromkeys(own, counter))

    def set_aside(self, counter: Counter, stand: Stand) -> None:
        """It comes no longer, until something of its tenant changes."""
        self._put_in(self._aside.setdefault(stand.at, _Cell(())), counter, stand)

    def in_order(
        self, is_free: Callable[[str], bool], room: tuple[int, ...] | None
    ) -> Generator[tuple[Counter, Stand], None, None]:
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
        several: dict[Heads, tuple[_Cell, Counter]] = {}
        try:
            while tops:
                item, order, n = tops[0]
                yield item[4], item[5]
                passed.append((order, heappop(order)))  # another is wanted; this one stands aside
                if isinstance(item[5], Heads) and item[5].indexed is passed[-1][1]:
                    several[item[5]] = cells[n], item[4]
                    self._pass_over(cells[n], item[4], item[5])
                top = self._top(cells[n])
                if top is None:
                    heappop(tops)
                else:
                    heapreplace(tops, (*top, n))
        finally:
            for order, item in passed:
                heappush(order, item)
            for heads, (cell, counter) in several.items():
                heads.rewind()
                self._put_in(cell, counter, heads)

    def first(self, is_free: Callable[[str], bool]) -> tuple[Counter, Stand] | None:
        """The head whose turn it is, even if it is set aside."""
        self._follow()
        cells = self._open_cells(is_free, None)
        cells += [cell for at, cell in self._aside.items() if at == FREE or is_free(at)]
        tops = [top[0] for cell in cells if (top := self._top(cell)) is not None]
        return min(tops)[4:] if tops else None

    def oldest(self, counter: Counter, is_free: Callable[[str], bool]) -> Waiting:
        """The tenant's first head with a free place, as of the last look at the order."""
        found = [queue.head() for at, queue in counter.shared.items() if is_free(at)]
        of_members = self._heads.get(counter, {}).values()
        found += [heads.oldest() for heads in of_members if heads.at == FREE]
        return min(found)

    def renew_if_worn(self, counters: Iterable[Counter], count: int) -> None:
        """Put everybody in place anew if most of the items are outdated; `count`: of queues."""
        if self._items > 4 * count + OUTDATED_MAX:
            self.put_anew(counters)

    def _follow(self) -> None:
        """Put whoever has changed where it belongs."""
        if self._turned:
            for queue, counter in self._turned.items():
                self._add_head(counter, queue)
            self._turned.clear()
        for counter in self._changed.values():
            for queue in counter.shared.values():
                self._put(counter, queue)
            if counter in self._heads:
                self._put_heads(counter)
        self._changed.clear()

    def _add_head(self, counter: Counter, queue: Queue) -> None:
        """A head of pool self stands beside those that are like it."""
        head = queue.head()
        cost = self._cost(head)
        name = queue.at, () if queue.at == TAKEN else self._class_of(head, cost)
        own, amounts = self._heads.setdefault(counter, {}), astuple(cost)
        heads = own.get(name)
        if heads is None:
            heads = own[name] = Heads(queue.at, amounts)
        self._serial += 1
        heads.add((head.sequence, self._serial, queue), amounts)
        self._items += 1

    def _put_heads(self, counter: Counter) -> None:
        own = self._heads[counter]
        for name, heads in list(own.items()):
            self._items -= heads.drop_outdated()
            if heads.is_empty:
                heads.indexed = None
                del own[name]
            else:
                self._put(counter, heads)
        if not own:
            del self._heads[counter]

    def _pass_over(self, cell: _Cell, counter: Counter, heads: Heads) -> None:
        """The next of several stands where the first has stood."""
        heads.pass_over()
        self._items -= heads.drop_outdated()
        if not heads.is_empty:
            self._put_in(cell, counter, heads)

    def _class_of(self, head: Waiting, cost: Cost) -> Class:
        return (head.is_run, *[_class(getattr(cost, unit)) for unit in self._varying])

    def _put(self, counter: Counter, stand: Stand) -> None:
        head = stand.head()
        cost = self._cost(head)
        name = self._class_of(head, cost)
        cells, amounts = self._places.setdefault(stand.at, {}), stand.least or astuple(cost)
        cell = cells.get(name)
        if cell is None:
            cell = cells[name] = _Cell(amounts)
        elif cell.least != amounts:
            cell.least = tuple(map(min, cell.least, amounts))
        self._put_in(cell, counter, stand)

    def _put_in(self, cell: _Cell, counter: Counter, stand: Stand) -> None:
        """From here on this is where it stands."""
        self._serial += 1
        head = stand.head()
        key = self._key(counter, head)
        item: Item = (key, counter.row.position, head.sequence, self._serial, counter, stand)
        stand.indexed = item
        heappush(cell.by_key, item)
        self._items += 1

    def _open_cells(
        self, is_free: Callable[[str], bool], room: tuple[int, ...] | None
    ) -> list[_Cell]:
        found = []
        for place, cells in list(self._places.items()):
            if not cells:
                del self._places[place]
            elif place == FREE or is_free(place):
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
        stand = item[5]
        outdated = stand.indexed is not item or not stand.count
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
