"""The ring of a lane: turns by weight, whoever was passed over keeps its place.

A visit is as many turns in a row as a tenant may take. When it ends, the visitor goes behind all
others; it ends early when another goes instead. So between two visits of a tenant nobody else has
more than one (R29, R30). With weights 2:1:1, where A does not fit for the first two turns:

    ring A B C    B, which goes behind: A C B
         A C B    C                     A B C
         A B C    A A, which fits now   B C A, and so on: B C A A.
"""

from collections import OrderedDict
from collections.abc import Iterator
from heapq import heappop, heappush

from .counters import Counter, LaneRow
from .limits import VISIT_MAX


class Ring:
    """The active tenants of a lane by position; a position is given once."""

    def __init__(self, row: LaneRow) -> None:
        self._row = row
        self._counters: OrderedDict[int, Counter] = OrderedDict()
        self._owing: list[int] = []
        """Positions of all that owe a visit, and of some that do so no longer; a heap."""
        self._watched: set[int] = set()
        """The same positions."""

    def __iter__(self) -> Iterator[Counter]:
        """From the lowest position on."""
        return iter(self._counters.values())

    def __len__(self) -> int:
        return len(self._counters)

    def join(self, counter: Counter) -> None:
        """Enter behind all others; the caller keeps the rows."""
        self._row.positions += 1
        counter.row.position = self._row.positions
        self.restore(counter)

    def restore(self, counter: Counter) -> None:
        """Enter where the row says, behind all others."""
        self._counters[counter.row.position] = counter

    def leave(self, counter: Counter) -> None:
        """Be in the ring no longer."""
        del self._counters[counter.row.position]

    def take_turn(self, counter: Counter, turns_max: int) -> list[Counter]:
        """Count a turn; the caller keeps the rows.

        Returns: another tenant whose visit this turn has ended, if there is one.
        """
        row, ended = self._row, []
        if row.visitor != counter.row.position:
            earlier = self._visitor()
            if earlier is not None:
                self._to_the_end(earlier)
                ended.append(earlier)
            row.visitor, row.turns = counter.row.position, 0
        row.turns += 1
        if row.turns >= turns_max:
            row.visitor = 0
            self._to_the_end(counter)
        return ended

    def owes(self, counter: Counter, quantum: int) -> bool:
        """Whether it owes all that it gets for a visit, so that it comes after all others."""
        return _after_visit(counter, quantum) <= 0

    def watch(self, counter: Counter, quantum: int) -> None:
        """Know it if it owes a visit; whenever its deficit, weight or position is another."""
        position = counter.row.position
        if position not in self._watched and self.owes(counter, quantum):
            self._watched.add(position)
            heappush(self._owing, position)

    def owing(self) -> list[Counter]:
        """All that owe a visit, and some that do so no longer."""
        return [self._counters[position] for position in self._owing if position in self._counters]

    def take_of_deficit(self, counter: Counter, cost: int, quantum: int) -> list[Counter]:
        """Count a turn by its cost; the caller keeps the rows.

        A visit lasts until its cost is used up, and what it takes beyond is owed.

        Returns: others whose visit this turn has ended, and those that owed all of theirs.
        """
        row, ended = self._row, []
        if row.visitor != counter.row.position:
            earlier = self._visitor()
            if earlier is not None:
                earlier.row.deficit = min(earlier.row.deficit, 0)
                ended.append(earlier)
            if not self.owes(counter, quantum):
                for one in self._passed(counter.row.position):
                    if one is not earlier and self.owes(one, quantum):
                        one.row.deficit = _after_visit(one, quantum)
                        ended.append(one)
            for one in ended:
                self._to_the_end(one)
            counter.row.deficit = _after_visit(counter, quantum)
            row.visitor = counter.row.position
        counter.row.deficit -= cost
        if counter.row.deficit <= 0:
            row.visitor = 0
            self._to_the_end(counter)
        return ended

    def _passed(self, position: int) -> Iterator[Counter]:
        """Those before it that may owe a visit, the first in the ring first."""
        while self._owing and self._owing[0] < position:
            passed = heappop(self._owing)
            self._watched.discard(passed)
            if passed in self._counters:
                yield self._counters[passed]

    def visits(self, counter: Counter) -> bool:
        """Whether the tenant may take the next turn too."""
        return self._row.visitor == counter.row.position

    def _to_the_end(self, counter: Counter) -> None:
        self.leave(counter)
        self.join(counter)

    def _visitor(self) -> Counter | None:
        return self._counters.get(self._row.visitor)


def _after_visit(counter: Counter, quantum: int) -> int:
    """What it may be served in its next visit, by its weight and less what it owes."""
    return counter.row.deficit + min(quantum * counter.row.weight, VISIT_MAX)
