"""What is charged follows from what was told, and what was told is charged (R53 to R55).

A settlement takes the figures of the result, look-up, report or operator that caused it. Of half a
figure the half that is told counts if it is above what was reserved for it; a broken figure is
none, and use that nobody told costs what was reserved, or nothing where the provider did not take
the call. What is told after the reservation was closed, as of a call whose end time has proved,
corrects its charge. A result of the holder of a started attempt is recorded, and usage of its own
unknown or charged attempt is believed: neither is refused, and a stranger's is.
"""

from collections.abc import Callable
from typing import Any

from schemas import events as e
from schemas import inputs as i
from schemas.codes import Code
from schemas.journal import CAUSE_TIME

from .amounts import corrected_by, used_by
from .book import Book
from .cursor import Cursor
from .records import REFUSED, STARTED, UNKNOWN, Key, attempt_of, key_of

CHECK = "told"
TOKENS_MAX = 1_000_000_000
"""More is a mistake, not a figure."""
NAME_BYTES_MAX = 200

Figures = tuple[int | None, int | None]
"""Input and output, as they were told."""
Told = i.ResultReported | i.OutcomeEvidence | i.UsageReported | i.ReconcileRequested
"""Words that tell what a call used."""
NONE: Figures = (None, None)


class WhatWasTold:
    """Looks at each figure of an event beside the word that told it."""

    def __init__(self, cursor: Cursor, book: Book) -> None:
        self._cursor = cursor
        self._book = book
        self._owed: dict[Key, tuple[int, int]] = {}
        """Charges that this entry has to correct."""

    def handlers(self) -> dict[type, Callable[[Any], None]]:
        """What to call for which event."""
        return {
            e.ReservationSettled: self._settled,
            e.ReservationForfeited: self._held,
            e.ResultRecorded: self._recorded,
            e.ResultRefusedStale: self._result_refused,
            e.OutcomeReconciled: self._reconciled,
            e.UsageCorrected: self._corrected,
            e.UsageRefused: self._usage_refused,
        }

    def _settled(self, event: e.ReservationSettled) -> None:
        self._held(event)
        reservation = self._book.open.get(key_of(event))
        if reservation is None or self._cursor.is_gone:
            return
        word = self._word(event)
        if word is None and self._cursor.cause != CAUSE_TIME:
            self._found("Expected a settlement to follow from what somebody told of the call")
            return
        grant = reservation.grant
        expected = charge(word, (grant.prompt_tokens, grant.output_tokens_max))
        used = used_by(event)
        if (None if used is None else (used.input_tokens, used.output_tokens)) != expected:
            self._found(f"Expected {_said(expected)} settled, as told, but it is {_said(used)}")
        if used is None and event.input_tokens_actual:
            self._found(f"Expected no input, not {event.input_tokens_actual}: nobody told any")

    def _held(self, event: e.ReservationSettled | e.ReservationForfeited) -> None:
        reservation = self._book.open.get(key_of(event))
        held_ms = None if reservation is None else self._cursor.time_ms - reservation.granted_ms
        if held_ms not in (None, event.held_ms):
            self._found(f"Expected a slot held for {held_ms} ms, not {event.held_ms}")

    def end(self) -> None:
        """The entry is over: what was told of a closed reservation must be charged."""
        for key, used in self._owed.items():
            self._cursor.index = 0
            about = f"the charge of {key.operation.hex()}, epoch {key.epoch}"
            self._found(f"Expected {about} corrected to {_said(used)}, as told")
        self._owed.clear()

    # -- what is recorded as it was told -----------------------------------------------------------

    def _recorded(self, event: e.ResultRecorded) -> None:
        self._repeated(event)
        word = self._cursor.word
        if isinstance(word, i.ResultReported):
            broken = figures(word) != (word.prompt_tokens, word.output_tokens)
            code = Code.USAGE_OUT_OF_RANGE if broken else None
            if event.usage_code != code:
                self._found(f"Expected usage code {code}, but it is {event.usage_code}")

    def _reconciled(self, event: e.OutcomeReconciled) -> None:
        self._repeated(event)
        word, key = self._word(event), key_of(event)
        operation = self._book.operations.get(event.operation)
        gone = key in self._book.open or event.verdict in ("not_sent", "not_executed")
        if operation is None or gone or word is None:
            return
        if operation.charged_epoch == event.epoch:
            used = charge(word, operation.reserved[:2])
            if used not in (None, operation.charged[:2]):
                self._owed[key] = used

    def _repeated(
        self, event: e.ResultRecorded | e.ResultRefusedStale | e.OutcomeReconciled
    ) -> None:
        word = self._word(event)
        said, expected = (event.prompt_tokens, event.output_tokens), figures(word)
        if said != expected and not self._cursor.is_gone:
            name = type(event).__name__
            self._found(f"Expected {_said(expected)} in {name}, as told, but it is {_said(said)}")

    def _corrected(self, event: e.UsageCorrected) -> None:
        word, operation = self._word(event), self._book.operations.get(event.operation)
        if self._cursor.is_gone or operation is None:
            return
        reported = isinstance(word, i.UsageReported)
        expected = (
            charge(word, operation.reserved[:2]) if reported else self._owed.get(key_of(event))
        )
        self._owed.pop(key_of(event), None)
        if expected is None:
            self._found("Expected a correction to follow from what somebody told of the usage")
            return
        _, actual = corrected_by(event)
        if (actual.input_tokens, actual.output_tokens) != expected:
            self._found(f"Expected {_said(expected)} as told, but it is {_said(actual)}")
        if reported and operation.charged_by not in (None, attempt_of(word)):
            self._found("Expected usage of its own member, not of another")
        report = word.evidence if reported else ""
        if event.evidence != report:
            self._found(f"Expected the report {report!r} named, not {event.evidence!r}")

    # -- what is not believed ----------------------------------------------------------------------

    def _result_refused(self, event: e.ResultRefusedStale) -> None:
        self._repeated(event)
        word = self._cursor.word
        operation, reservation = self._book.newest(event), self._book.find(event)
        if operation is None or reservation is None or reservation.accepted_ms is None:
            return
        of_holder = isinstance(word, i.ResultReported) and (
            attempt_of(word) == attempt_of(reservation.grant)
        )
        if of_holder and operation.state in (STARTED, UNKNOWN):
            self._found("Expected the result of its holder recorded and settled, not refused")

    def _usage_refused(self, event: e.UsageRefused) -> None:
        word = self._cursor.word
        if not isinstance(word, i.UsageReported) or event.code == Code.USAGE_OUT_OF_RANGE:
            return
        if not _makes_sense(word):
            return
        reservation = self._book.find(word)
        if reservation is not None:
            own = attempt_of(word) == attempt_of(reservation.grant)
            believed = own and reservation.is_uncertain
        else:
            operation = self._book.operations.get(word.operation)
            believed = (
                operation is not None
                and operation.queue[0] == word.tenant
                and (operation.incarnation, operation.charged_epoch)
                == (word.incarnation, word.epoch)
                and word.epoch > 0
                and operation.charged_by in (None, attempt_of(word))
            )
        if believed:
            self._found(f"Expected usage of epoch {word.epoch} charged, not refused: {event.code}")

    def _word(self, event: Any) -> Any:
        """The word behind the event, if it tells of this attempt."""
        word = self._cursor.word
        if not isinstance(word, Told) or word.operation != event.operation:
            return None
        return word if word.epoch in (None, event.epoch) else None

    def _found(self, detail: str) -> None:
        self._cursor.found(CHECK, detail)


def figures(word: Any) -> Figures:
    """What a word tells of use; a broken figure of a result is none."""
    if word is None:
        return NONE
    if not isinstance(word, i.ResultReported):
        return word.prompt_tokens, word.output_tokens
    return _in_range(word.prompt_tokens), _in_range(word.output_tokens)


def charge(word: Any, reserved: tuple[int, int]) -> tuple[int, int] | None:
    """Input and output to charge for what a word tells; None: as it was reserved."""
    prompt, output = figures(word)
    if prompt is not None and output is not None:
        return prompt, output
    partly = max(prompt or 0, reserved[0]), max(output or 0, reserved[1])
    if partly != reserved:
        return partly
    refused = isinstance(word, i.ResultReported) and word.outcome in REFUSED
    return (0, 0) if refused else None


def _in_range(figure: int | None) -> int | None:
    return figure if figure is not None and 0 <= figure <= TOKENS_MAX else None


def _makes_sense(word: i.UsageReported) -> bool:
    name = word.evidence
    return (
        word.unit == "tokens"
        and None not in (_in_range(word.prompt_tokens), _in_range(word.output_tokens))
        and name.isprintable()
        and 0 < len(name.encode()) <= NAME_BYTES_MAX
    )


def _said(figures: Any) -> str:
    if figures is None:
        return "what was reserved"
    return f"{figures[0]} and {figures[1]} tokens"
