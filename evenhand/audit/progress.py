"""Durable execution: checkpoints without a gap, and turns within their run (R74, R75).

A checkpoint is that of the holder of the newest attempt, one after the last, and no larger than its
tenant may make it. A turn is admitted while its run is started, for the same tenant, and no more of
them than the run asked for; a run is no turn.
"""

from collections.abc import Callable
from typing import Any

from schemas import events as e
from schemas import inputs as i

from .book import Book
from .config import Config
from .cursor import Cursor
from .records import STARTED, attempt_of

CHECK = "progress"


class Progress:
    """Looks at checkpoints, and at operations that belong to another one."""

    def __init__(self, cursor: Cursor, config: Config, book: Book) -> None:
        self._cursor = cursor
        self._config = config
        self._book = book

    def handlers(self) -> dict[type, Callable[[Any], None]]:
        """What to call for which event."""
        return {
            e.CheckpointRecorded: self._recorded,
            e.OperationAdmitted: self._admitted,
        }

    def _recorded(self, event: e.CheckpointRecorded) -> None:
        word = self._cursor.word
        told = isinstance(word, i.CheckpointReported) and _told(word) == _told(event)
        if not (told or self._cursor.is_gone):
            self._found("Expected a checkpoint as its holder reported it")
        operation, reservation = self._book.newest(event), self._book.find(event)
        if operation is None or reservation is None:
            self._found(f"Expected a checkpoint of the newest attempt, not of epoch {event.epoch}")
            return
        if attempt_of(event) != attempt_of(reservation.grant):
            self._found("Expected a checkpoint of the holder")
        if event.number != operation.checkpoint + 1:
            self._found(f"Expected checkpoint {operation.checkpoint + 1}, not {event.number}")
        limits = self._config.tenant(event.tenant)
        if (event.context_bytes or 0) > limits.context_bytes_max:
            self._found(f"Expected a context of at most {limits.context_bytes_max} bytes")
        if (event.artifacts or 0) > limits.artifacts_max:
            self._found(f"Expected at most {limits.artifacts_max} artifacts")

    def _admitted(self, event: e.OperationAdmitted) -> None:
        limits = self._config.tenant(event.tenant)
        if event.turns_max is not None and not 0 < event.turns_max <= limits.turns_max:
            self._found(f"Expected a run of at most {limits.turns_max} turns")
        if event.parent is None:
            return
        run = self._book.operations.get(event.parent)
        if run is None or run.state != STARTED or run.turns_max is None:
            self._found(f"Expected {event.parent.hex()} to be a started run")
            return
        if run.queue[0] != event.tenant or event.turns_max is not None:
            self._found(f"Expected a turn of {run.queue[0]}, and no run")
        if run.turns >= run.turns_max:
            self._found(f"Expected at most {run.turns_max} turns, but this is one more")

    def _found(self, detail: str) -> None:
        self._cursor.found(CHECK, detail)


def _told(word: e.CheckpointRecorded | i.CheckpointReported) -> tuple[Any, ...]:
    return (attempt_of(word), word.number, word.state_ref, word.context_bytes, word.artifacts)
