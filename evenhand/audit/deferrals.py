"""What is said to hold a head back must be able to: a limit that it has, and what goes with it."""

from collections.abc import Callable
from typing import Any

from schemas.events import OperationDeferred
from schemas.inputs import DimensionConfig
from schemas.lanes import BULK

from .book import Book
from .config import Config
from .cursor import Cursor
from .pace import is_paced
from .records import WAITING, Operation
from .saving import Saving

CHECK = "deferrals"


class Deferrals:
    """Deferrals are sampled, so that only those that were told can be judged."""

    def __init__(self, cursor: Cursor, config: Config, book: Book, saving: Saving) -> None:
        self._cursor = cursor
        self._config = config
        self._book = book
        self._saving = saving

    def handlers(self) -> dict[type, Callable[[Any], None]]:
        """What to call for which event."""
        return {OperationDeferred: self._deferred}

    def _deferred(self, event: OperationDeferred) -> None:
        operation = self._book.operations.get(event.operation)
        if operation is None or operation.state != WAITING or operation.queue[3] != event.domain:
            self._found(f"Expected {event.operation.hex()} to wait in {event.domain}")
            return
        limits = {
            (level, dimension.name): dimension
            for level, dimension in self._config.dimensions(event.tenant, event.domain)
        }
        limit = limits.get((event.level, event.dimension))
        if limit is None:
            self._found(f"Expected a limit of it, not {event.level} {event.dimension}")
        elif not self._can_hold(event, operation, limit):
            self._found(f"Expected {event.held_by} of {event.dimension} to be able to hold it back")

    def _can_hold(
        self, event: OperationDeferred, operation: Operation, limit: DimensionConfig
    ) -> bool:
        match event.held_by:
            case "budget" | "far":
                return True
            case "pace":
                return is_paced(limit)
            case "reserve":
                return operation.queue[1] == BULK
            case "saver":
                return self._saving.saver(event.domain) not in (None, event.operation)
            case _:
                return False

    def _found(self, detail: str) -> None:
        self._cursor.found(CHECK, detail)
