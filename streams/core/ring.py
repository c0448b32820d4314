"""The ring of a lane: turns by weight, whoever was passed over keeps its place.

A visit is as many turns in a row as a tenant may take. When it ends, the visitor goes behind all
others; it ends early when another goes instead. So between two visits of a tenant nobody else has
more than one (R29, R30). With weights 2:1:1, where A does not fit for the first two turns:

    ring A B C    B, which goes behind: A C B
         A C B    C                     A B C
         A B C    A A, which fits now   B C A, and so on: B C A A.
"""

from bisect import bisect_left
from collections.abc import Iterator

from .counters import Counter, LaneRow
from .limits import VISIT_MAX


class Ring:
    """The active tenants of a lane by position; a position is given once."""

    def __init__(self, row: LaneRow) -> None:
        self._row = row
        self._counters: list[Counter] = []

    def __iter__(self) -> Iterator[Counter]:
        """From the lowest position on."""
        return iter(self._counters)

    def __len__(self) -> int:
        return len(self._counters)

    def join(self, counter: Counter) -> None:
        """Enter behind all others; the caller keeps the rows."""
        self._row.positions += 1
        counter.row.position = self._row.positions
        self._counters.append(counter)

    def restore(self, counter: Counter) -> None:
        """Enter where the row says."""
        self._counters.insert(self._place(counter.row.position), counter)

    def leave(self, counter: Counter) -> None:
        """Be in the ring no longer."""
        del self._counters[self._place(counter.row.position)]

    def by_turn(self) -> Iterator[Counter]:
        """Whoever has turns left of its visit, then from the lowest position on."""
        visitor = self._visitor()
        if visitor is not None:
            yield visitor
        for counter in self._counters:
            if counter is not visitor:
                yield counter

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

    def by_deficit(self, quantum: int) -> Iterator[Counter]:
        """As `by_turn`, but whoever owes more than it gets for a visit comes after all others."""
        visitor, owing = self._visitor(), []
        for counter in self.by_turn():
            if counter is visitor or _after_visit(counter, quantum) > 0:
                yield counter
            else:
                owing.append(counter)
        yield from owing

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
            if _after_visit(counter, quantum) > 0:
                before = self._counters[: self._place(counter.row.position)]
                for one in before:
                    if one is not earlier and _after_visit(one, quantum) <= 0:
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

    def visits(self, counter: Counter) -> bool:
        """Whether the tenant may take the next turn too."""
        return self._row.visitor == counter.row.position

    def _to_the_end(self, counter: Counter) -> None:
        self.leave(counter)
        self.join(counter)

    def _visitor(self) -> Counter | None:
        place = self._place(self._row.visitor)
        if place == len(self._counters):
            return None
        found = self._counters[place]
        return found if found.row.position == self._row.visitor else None

    def _place(self, position: int) -> int:
        return bisect_left(self._counters, position, key=lambda counter: counter.row.position)


def _after_visit(counter: Counter, quantum: int) -> int:
    """What it may be served in its next visit, by its weight and less what it owes."""
    return counter.row.deficit + min(quantum * counter.row.weight, VISIT_MAX)
