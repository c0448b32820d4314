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

    def take_turn(self, counter: Counter, turns_max: int) -> Counter | None:
        """Count a turn; the caller keeps the rows.

        Returns: another tenant whose visit this turn has ended.
        """
        row, earlier = self._row, None
        if row.visitor != counter.row.position:
            earlier = self._visitor()
            if earlier is not None:
                self._to_the_end(earlier)
            row.visitor, row.turns = counter.row.position, 0
        row.turns += 1
        if row.turns >= turns_max:
            row.visitor = 0
            self._to_the_end(counter)
        return earlier

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
