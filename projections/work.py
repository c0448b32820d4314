"""Questions about operations: one, many, their history, and those that await somebody."""

from collections.abc import Callable
from dataclasses import dataclass

from schemas.phase import Phase

from .keys import after, join
from .projection import Projection
from .reading import Reading
from .views.history import HISTORIES, History
from .views.holding import HOLDINGS, Holding, holding_key
from .views.listing import CHILDREN, DEAD_LETTERS, LISTED, listed_at, newest_first
from .views.operation import OPERATIONS, Operation
from .views.queue import QUEUES, WAITING, Queue, queue_of

PLACE_SCAN_MAX = 1_000
"""Waiting rows that are counted for a place, from either end: half a millisecond."""
PAGE_SCAN_MAX = 1_000
"""Operations that are looked at for one page: some five milliseconds."""

Keep = Callable[[Operation], bool]


@dataclass(frozen=True, slots=True)
class Page:
    """Operations, newest first; `next` is where the following page begins, None at the end."""

    items: list[tuple[bytes, Operation]]
    next: bytes | None


class WorkQueries(Reading):
    """Answers about operations."""

    def operation(self, operation: bytes) -> Operation | None:
        """What is known of an operation id."""
        row: Operation | None = self.row(OPERATIONS, operation)
        return row

    def place(self, row: Operation) -> int | None:
        """Place in its queue, 1 for the next; None if it does not wait, or deep in a long queue."""
        if row.phase is not Phase.WAITING:
            return None
        queue = queue_of(row)
        counts: Queue | None = self.row(QUEUES, queue)
        assert counts is not None, "Expected a queue where an operation waits"
        own = queue + join(row.sequence)
        behind = self.count(WAITING, own, after(queue), PLACE_SCAN_MAX + 1) - 1
        if behind < PLACE_SCAN_MAX:
            return counts.waiting - behind
        ahead = self.count(WAITING, queue, own, PLACE_SCAN_MAX + 1)
        return ahead + 1 if ahead < PLACE_SCAN_MAX else None

    def lease_expires_ms(self, operation: bytes, row: Operation) -> int | None:
        """Until when the newest attempt's lease lasts; None without one."""
        if row.holder is None or row.holder_epoch is None:
            return None
        held: Holding | None = self.row(HOLDINGS, holding_key(row.holder, row.holder_epoch))
        return None if held is None else held.expires_ms.get(operation)

    def turns(self, operation: bytes, row: Operation) -> int | None:
        """Provider turns of a run that were admitted; None if it is no run."""
        if row.turns_max is None:
            return None
        return self.count(CHILDREN, operation, after(operation), PAGE_SCAN_MAX)

    def history(self, operation: bytes) -> History:
        """What happened to it, oldest first."""
        found: History | None = self.row(HISTORIES, operation)
        return found or History()

    def page(self, *, tenant: str | None, begin: bytes | None, limit: int, keep: Keep) -> Page:
        """At most `limit` operations that `keep` wants, of one tenant or of all.

        A page ends early, and may be empty, after `PAGE_SCAN_MAX` operations; `begin` from
        elsewhere never leads outside the tenant.
        """
        prefix = b"" if tenant is None else join(tenant)
        return self._page(LISTED, prefix, begin, limit, keep)

    def dead_letters(
        self, *, tenant: str | None, begin: bytes | None, limit: int, keep: Keep
    ) -> Page:
        """As `page`, of those that await a person; who began to last comes first."""
        prefix = b"" if tenant is None else join(tenant)
        return self._page(DEAD_LETTERS, prefix, begin, limit, keep)

    def children(self, parent: bytes, *, begin: bytes | None, limit: int, keep: Keep) -> Page:
        """As `page`, of the turns of a run."""
        return self._page(CHILDREN, parent, begin, limit, keep)

    def _page(
        self,
        index: Projection[bytes],
        prefix: bytes,
        begin: bytes | None,
        limit: int,
        keep: Keep,
    ) -> Page:
        items: list[tuple[bytes, Operation]] = []
        for seen, (key, operation) in enumerate(self.rows(index, prefix, begin or b"")):
            if len(items) == limit or seen == PAGE_SCAN_MAX:
                return Page(items, key)
            row = self.operation(operation)
            # A key that was used again after its horizon is listed at its last admission only.
            if row is not None and key.endswith(_ends(index, row)) and keep(row):
                items.append((operation, row))
        return Page(items, None)


def _ends(index: Projection[bytes], row: Operation) -> bytes:
    return newest_first(row.ended_at) if index is DEAD_LETTERS else listed_at(row)
