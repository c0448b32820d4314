"""First in, first out for each (tenant, lane, pool, domain), among what may run (R27).

A grant goes to the smallest admission sequence that waits in its queue and is not past its
deadline. Parked and returned operations stand at their original sequence. In pool `self` only a
member's own operations can use its places, so each member is a queue of its own.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from schemas import events as e
from schemas.ids import SELF_POOL, MemberId, OperationId

from .book import Book
from .cursor import Cursor
from .records import WAITING, Operation, Queue

CHECK = "order"


class Order:
    """A heap of admission sequences for each queue; what no longer waits is dropped lazily."""

    def __init__(self, cursor: Cursor, book: Book) -> None:
        self._cursor = cursor
        self._book = book
        self._queues: dict[tuple[Queue, MemberId | None], list[tuple[int, OperationId]]] = {}

    def handlers(self) -> dict[type, Callable[[Any], None]]:
        """What to call for which event."""
        return {e.GrantIssued: self._granted}

    def returns(self) -> dict[type, Callable[[Any], None]]:
        """What to call after an event was folded: the operation may wait now."""
        kinds = (
            e.OperationAdmitted,
            e.OperationUnparked,
            e.GrantExpired,
            e.GrantRevoked,
            e.ResultRecorded,
            e.OutcomeReconciled,
            e.ManualRetryAccepted,
        )
        return dict.fromkeys(kinds, self._waits)

    def _waits(self, event: Any) -> None:
        operation = self._book.operations.get(event.operation)
        if operation is not None and operation.state == WAITING:
            queue = self._queues.setdefault(_queue(operation), [])
            heappush(queue, (operation.sequence, event.operation))

    def _granted(self, event: e.GrantIssued) -> None:
        operation = self._book.operations.get(event.operation)
        if operation is None or operation.state != WAITING:
            return
        queue = self._queues[_queue(operation)]
        while queue and not self._may_run(*queue[0]):
            heappop(queue)
        if queue and queue[0][0] < operation.sequence:
            sequence, head = queue[0]
            detail = f"Expected {head.hex()} (sequence {sequence}) first in its queue"
            self._cursor.found(CHECK, f"{detail}, but {operation.sequence} was granted")

    def _may_run(self, sequence: int, operation_id: OperationId) -> bool:
        """Whether the row stands for an operation that can run now; what cannot never can again."""
        operation = self._book.operations.get(operation_id)
        return (
            operation is not None
            and operation.sequence == sequence
            and operation.state == WAITING
            and operation.deadline_ms > self._cursor.time_ms
        )


def _queue(operation: Operation) -> tuple[Queue, MemberId | None]:
    own = operation.queue[2] == SELF_POOL
    return operation.queue, operation.member if own else None
