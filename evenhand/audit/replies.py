"""Every input is answered, or has said nothing new (R2, R20, R53, R81).

An input that repeats what is known already changes nothing and may stay without an answer; every
other one is decided by at least one event of a kind that answers it. Causes are told in order, so
that the book is, when an input is judged, as the owner found it.
"""

from collections.abc import Callable
from typing import Any

from schemas import events as e
from schemas import inputs as i
from schemas.journal import CAUSE_TIME

from .asked import Asked
from .book import Book
from .cursor import Cursor
from .records import LIVE, key_of, said_of
from .unknowns import EVIDENCE_MAX

CHECK = "answers"
_ANSWERS: dict[type, tuple[type, ...]] = {
    i.CancellationRequested: (
        e.OperationCancelled,
        e.CancelSignalled,
        e.CancellationRemembered,
    ),
    i.CheckpointReported: (e.CheckpointRecorded, e.CheckpointRefused),
    i.ClaimRequested: (e.LeaseClaimed, e.ClaimRefused),
    i.ConfigProposed: (e.ConfigActivated, e.ConfigRefused),
    i.HeartbeatReported: (
        e.HeartbeatRecorded,
        e.MemberActivated,
        e.MemberRestored,
        e.JoinRefused,
    ),
    i.JoinRequested: (e.MemberSlotGranted, e.JoinRefused),
    i.LeaveAnnounced: (e.MemberDrainRequested,),
    i.OutcomeEvidence: (e.OutcomeReconciled, e.EvidenceRecorded),
    i.ReconcileRequested: (e.OutcomeReconciled, e.ManualActionRefused),
    i.ResultReported: (
        e.ResultRecorded,
        e.ResultRefusedStale,
        e.OutcomeMarkedUnknown,
        e.OutcomeReconciled,
    ),
    i.RetryRequested: (e.ManualRetryAccepted, e.ManualActionRefused),
    i.SendReported: (e.SendObserved,),
    i.StartRequested: (e.StartAccepted, e.StartRefused),
    i.UsageReported: (e.UsageCorrected, e.UsageRefused, e.OutcomeReconciled),
}
"""Which events answer an input; what cannot be decided goes to quarantine. Submissions have a check
of their own."""


class Replies:
    """Judges each input once the next one, or time, has something to say."""

    def __init__(self, cursor: Cursor, book: Book) -> None:
        self._cursor = cursor
        self._book = book
        self._judged = 0
        self._kinds: set[type] = set()
        self._cancelled_early: set[bytes] = set()

    def see(self, event: Any) -> None:
        """The next event of the entry, before it is folded."""
        cause, kind = self._cursor.cause, type(event)
        if kind is e.LeasesExtended and cause == CAUSE_TIME:
            return  # a silence ended before the inputs were taken
        due = cause if cause >= 0 else len(self._cursor.taken)
        if cause >= 0 and due < self._judged:
            self._found(f"Expected the answers in order, but {kind.__name__} comes late")
        self._judge(due)
        self._kinds.add(kind)
        if isinstance(event, e.CancellationRemembered):
            self._cancelled_early.add(event.operation)
        elif isinstance(event, e.CancellationForgotten | e.OperationCancelled):
            self._cancelled_early.discard(event.operation)

    def end(self) -> None:
        """The entry is over."""
        self._judge(len(self._cursor.taken))
        self._judged = 0
        self._kinds.clear()

    def _judge(self, due: int) -> None:
        while self._judged < due:
            asked = self._cursor.taken[self._judged]
            expected = _ANSWERS.get(type(asked.word))
            answered = e.InputQuarantined in self._kinds or self._kinds & {*(expected or ())}
            if expected and not answered and not self._may_be_silent(asked.word):
                self._cursor.index = 0
                self._found(f"Expected an answer to {_place(asked)}, but there is none")
            self._kinds.clear()
            self._judged += 1

    def _may_be_silent(self, word: Any) -> bool:
        """Whether nothing new was said."""
        reasons: dict[type, Callable[[Any], bool]] = {
            i.CancellationRequested: self._nothing_to_cancel,
            i.CheckpointReported: self._repeats_checkpoint,
            i.ClaimRequested: self._holds_it,
            i.LeaveAnnounced: lambda _: True,
            i.OutcomeEvidence: self._is_known,
            i.ResultReported: self._repeats_result,
            i.SendReported: lambda _: True,
            i.UsageReported: self._repeats_usage,
        }
        silent = reasons.get(type(word))
        return silent is not None and silent(word)

    def _nothing_to_cancel(self, word: i.CancellationRequested) -> bool:
        operation = self._book.operations.get(word.operation)
        if operation is None:
            known = word.operation in self._book.refused
            return known or word.operation in self._cancelled_early
        return operation.state not in LIVE or operation.cancelling

    def _repeats_checkpoint(self, word: i.CheckpointReported) -> bool:
        operation = self._book.newest(word)
        return operation is not None and (operation.checkpoint, operation.checkpoint_ref) == (
            word.number,
            word.state_ref,
        )

    def _holds_it(self, word: i.ClaimRequested) -> bool:
        reservation = self._book.find(word)
        return reservation is not None and reservation.claimed

    def _is_known(self, word: i.OutcomeEvidence) -> bool:
        reservation = self._book.find(word)
        if reservation is None or not reservation.is_uncertain:
            return True
        told = word.evidence in reservation.evidence
        return told or (
            word.verdict == "inconclusive" and len(reservation.evidence) >= EVIDENCE_MAX
        )

    def _repeats_result(self, word: i.ResultReported) -> bool:
        if word.outcome == "unknown":
            reservation = self._book.find(word)
            return reservation is not None and reservation.is_uncertain
        operation = self._book.operations.get(word.operation)
        said = None if operation is None else operation.said
        return said is not None and said[:-1] == said_of(word)[:-1]

    def _repeats_usage(self, word: i.UsageReported) -> bool:
        operation = self._book.operations.get(word.operation)
        if operation is None or key_of(word) in self._book.open:
            return False
        told = word.evidence in operation.usage
        same = operation.charged[:2] == (word.prompt_tokens, word.output_tokens)
        return operation.charged_epoch == word.epoch and (same or told)

    def _found(self, detail: str) -> None:
        self._cursor.found(CHECK, detail)


def _place(asked: Asked) -> str:
    return f"{asked.topic}:{asked.partition}:{asked.offset}"
