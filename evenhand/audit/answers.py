"""Every submission has exactly one answer, and it is the right kind of answer (R2, R3, R188).

Admitted, rejected, duplicate, conflict or quarantined: once per record of the `submissions` topic,
in the entry that took it, about the operation that it asked for.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

from schemas import events as e
from schemas.digest import payload_digest
from schemas.ids import operation_id
from schemas.inputs import OperationSubmitted
from schemas.topics import Topic

from .asked import Asked
from .book import Book
from .config import Config
from .cursor import Cursor
from .records import LIVE

CHECK = "answers"
ANSWERS: dict[type, str] = {
    e.OperationAdmitted: "admitted",
    e.OperationRejected: "rejected",
    e.DuplicateObserved: "duplicate",
    e.SubmissionConflicted: "conflict",
    e.InputQuarantined: "quarantined",
}
_REPEATED = (
    "pool",
    "domain",
    "lane",
    "effect",
    "prompt_tokens",
    "runtime_ms",
    "turns_max",
    "tools",
    "parent",
    "output_tokens_max",
)
"""What an admission says as the submission asked for it."""


class Answers:
    """Which inputs of the entry under audit have been answered."""

    def __init__(self, cursor: Cursor, config: Config, book: Book) -> None:
        self._cursor = cursor
        self._config = config
        self._book = book
        self._answered: set[int] = set()
        self.counts: Counter[str] = Counter()

    def handlers(self) -> dict[type, Callable[[Any], None]]:
        """What to call for which event."""
        return {
            e.OperationAdmitted: self._admitted,
            e.OperationRejected: self._rejected,
            e.DuplicateObserved: self._duplicate,
            e.SubmissionConflicted: self._conflict,
            e.InputQuarantined: self._quarantined,
        }

    def end(self) -> None:
        """The entry is over: every submission that it took must have its answer."""
        for ordinal, asked in enumerate(self._cursor.taken):
            unread = asked.word is None and not asked.gone
            if ordinal not in self._answered and (asked.topic is Topic.SUBMISSIONS or unread):
                self._cursor.index = 0
                self._found(f"Expected one answer to {_place(asked)}, but there is none")
        self._answered.clear()

    def _answer(self, event: Any) -> OperationSubmitted | None:
        """The submission that the event answers, if it can be read."""
        cursor = self._cursor
        asked = cursor.asked
        name = type(event).__name__
        if asked is None or asked.topic is not Topic.SUBMISSIONS:
            self._found(
                f"Expected {name} to be caused by a submission, but cause is {cursor.cause}"
            )
            return None
        self.counts[ANSWERS[type(event)]] += 1
        self._once(asked)
        if asked.gone:
            return None
        word = asked.word
        if not isinstance(word, OperationSubmitted):
            self._found(f"Expected {_place(asked)} in quarantine, but it got {name}")
            return None
        operation = operation_id(
            pool=word.pool,
            tenant=word.tenant,
            user=word.user,
            idempotency_key=word.idempotency_key,
        )
        if (event.operation, event.tenant) != (operation, word.tenant):
            asked_for = f"{operation.hex()} of {word.tenant}"
            self._found(f"Expected an answer about {asked_for}, but it names {_about(event)}")
        return word

    def _admitted(self, event: e.OperationAdmitted) -> None:
        word = self._answer(event)
        self._anew(event)
        if word is None:
            return
        if event.payload_digest != payload_digest(word):
            self._found(f"Expected the digest of what was asked for {_about(event)}")
        asked = tuple(getattr(word, name) for name in _REPEATED)
        admitted = tuple(getattr(event, name) for name in _REPEATED)
        if word.turns_max is not None:  # the turns of a run have ceilings of their own
            asked, admitted = asked[:-1], admitted[:-1]
        if asked != admitted:
            self._found(f"Expected {asked} admitted as asked for, but it is {admitted}")

    def _rejected(self, event: e.OperationRejected) -> None:
        self._answer(event)
        if event.binds_key:
            self._anew(event)

    def _anew(self, event: e.OperationAdmitted | e.OperationRejected) -> None:
        """A key is decided anew only if it is unknown, or past the guard horizon."""
        operation = self._book.operations.get(event.operation)
        known = operation or self._book.refused.get(event.operation)
        if known is None:
            return
        horizon_ms = self._config.cell.guard_horizon_ms
        over = operation is None or operation.state not in LIVE
        if not over or self._cursor.time_ms < known.ended_ms + horizon_ms:
            self._found(f"Expected a repeat of {_about(event)} to be answered as one")

    def _duplicate(self, event: e.DuplicateObserved) -> None:
        word = self._answer(event)
        digest = self._known_digest(event)
        if digest is None:
            self._found(f"Expected {_about(event)} known before a duplicate of it")
        elif word is not None and payload_digest(word) != digest:
            self._found(f"Expected a conflict, since {_about(event)} has another digest")

    def _conflict(self, event: e.SubmissionConflicted) -> None:
        word = self._answer(event)
        digest = self._known_digest(event)
        if digest is None:
            self._found(f"Expected {_about(event)} known before a conflict with it")
        elif word is not None and payload_digest(word) == digest:
            self._found(f"Expected a duplicate, since {_about(event)} has the same digest")

    def _quarantined(self, event: e.InputQuarantined) -> None:
        asked = self._cursor.asked
        if asked is None or _place(asked) != f"{event.topic}:{event.partition}:{event.offset}":
            self._found(f"Expected the quarantined input as cause, not {self._cursor.cause}")
            return
        if asked.topic is Topic.SUBMISSIONS:
            self.counts["quarantined"] += 1
        self._once(asked)
        if asked.word is not None and asked.topic is Topic.SUBMISSIONS:
            self._found(f"Expected {_place(asked)} decided: it can be read")

    def _once(self, asked: Asked) -> None:
        if self._cursor.cause in self._answered:
            self._found(f"Expected one answer to {_place(asked)}, but this is a second")
        self._answered.add(self._cursor.cause)

    def _known_digest(self, event: Any) -> bytes | None:
        known = self._book.operations.get(event.operation) or self._book.refused.get(
            event.operation
        )
        return known.digest if known else None

    def _found(self, detail: str) -> None:
        self._cursor.found(CHECK, detail)


def balance(counts: Counter[str], book: Book, submissions: int) -> list[str]:
    """What does not add up at the end (R141), empty if all does.

    Args:
        counts: answers by kind.
        book: every operation that was admitted.
        submissions: records of the topic taken in all, whatever became of them.
    """
    residues = []
    if submissions != counts.total():
        residues.append(f"Expected {submissions} answers to submissions, not {counts.total()}")
    ended = sum(operation.state not in LIVE for operation in book.operations.values())
    known = len(book.operations) + book.forgotten.total()
    if counts["admitted"] != known:
        live = len(book.operations) - ended
        kinds = f"{live} live and {ended + book.forgotten.total()} terminal"
        residues.append(f"Expected {counts['admitted']} admitted operations, but {kinds}")
    return residues


def _place(asked: Asked) -> str:
    return f"{asked.topic}:{asked.partition}:{asked.offset}"


def _about(event: Any) -> str:
    return f"{event.operation.hex()} of {event.tenant}"
