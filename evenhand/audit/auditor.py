"""The audit of one cell: its journal folded once, every check beside it, and what they found.

It shares the words with the owner and nothing else: the accept rule, the state machines and the
windows are written here a second time, so that a mistake has to be made twice to stay unseen.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, get_args

from schemas import events as e
from schemas.codec import decode, decode_entry
from schemas.entry import Entry
from schemas.errors import Undecodable, UnknownSchema
from schemas.ids import CellId
from schemas.topics import Topic

from .answers import Answers, balance
from .asked import Inputs, PartitionOf
from .book import Book
from .budgets import Budgets
from .chain import Chain
from .config import Config
from .cursor import Cursor
from .deferrals import Deferrals
from .findings import Findings
from .folds import Folds
from .grants import Grants
from .lanes import Lanes
from .leases import Leases
from .lives import Lives
from .logs import Logs
from .order import Order
from .places import Places
from .progress import Progress
from .provider import Provider
from .publication import Publication
from .replies import Replies
from .retries import Retries
from .saving import Saving
from .settlements import Settlements
from .standing import Standing
from .starts import Starts
from .told import WhatWasTold
from .unknowns import Unknowns

Handler = Callable[[Any], None]
EVENTS = frozenset(get_args(e.Event))


def audit(
    logs: Logs,
    cell: CellId,
    *,
    partition_of: PartitionOf,
    strict: bool = False,
    provider_record: Iterable[str] | None = None,
) -> Findings:
    """Read the topics of a cell and say what is wrong with them.

    Memory follows the operations that the owner still has to remember, not the journal.

    Args:
        logs: the cell's topics.
        cell: its name.
        partition_of: partition of a key among so many, as murmur2 has it.
        strict: whether what is not yet decided or not yet published is a finding too.
        provider_record: lines of the provider's record of calls, if there is one.

    Raises:
        LogTrimmed: a part of the journal is gone; nothing was judged.
        RecordUnreadable: a line of the provider's record is no JSON object.
    """
    auditor = _Auditor(logs, cell, partition_of)
    for record in logs.read(Topic.JOURNAL, 0, 0):
        if not auditor.record(record.offset, record.value or b""):
            break
    return auditor.finish(strict=strict, provider_record=provider_record)


class _Auditor:
    def __init__(self, logs: Logs, cell: CellId, partition_of: PartitionOf) -> None:
        self._cursor = cursor = Cursor(cell)
        self._chain = Chain(cursor)
        self._inputs = Inputs(logs, partition_of)
        self._config = config = Config(cursor)
        self._book = book = Book()
        self._answers = Answers(cursor, config, book)
        places = Places(cursor, config, book)
        saving = Saving(cursor, config, book, places)
        self._budgets = Budgets(cursor, config, book, saving)
        self._settlements = Settlements(cursor, book)
        self._told = told = WhatWasTold(cursor, book)
        self._provider = Provider(cursor)
        self._replies = Replies(cursor, book)
        self._leases = Leases(cursor, config, book)
        self._standing = Standing(cursor, config)
        self._publication = Publication(cursor, logs, partition_of)
        order, lanes = Order(cursor, book), Lanes(cursor, config, book)
        lives, grants = Lives(cursor, book), Grants(cursor, config, book)
        starts = Starts(cursor, config, book)
        self._handlers: dict[type, list[Handler]] = {}
        for check in (
            self._answers.handlers(),
            lives.handlers(),
            grants.handlers(),
            order.handlers(),
            lanes.handlers(),
            saving.handlers(),
            Deferrals(cursor, config, book, saving).handlers(),
            places.handlers(),
            starts.handlers(),
            self._standing.handlers(),
            self._leases.handlers(),
            Unknowns(cursor, config, book).handlers(),
            Retries(cursor, config, book).handlers(),
            Progress(cursor, config, book).handlers(),
            self._settlements.handlers(),
            told.handlers(),
            {e.ConfigActivated: config.activated},
            self._budgets.handlers(),
            self._provider.handlers(),
            Folds(book, config).handlers(),
            order.returns(),
            lanes.returns(),
            saving.returns(),
        ):
            for kind, handler in check.items():
                self._handlers.setdefault(kind, []).append(handler)
        self._last: Entry | None = None
        self._entries = self._noise = self._events = self._submissions = 0

    def record(self, offset: int, value: bytes) -> bool:
        """Look at the next record of the journal.

        Returns: False if it was written by a newer program: nothing after it can be judged.
        """
        try:
            entry = decode_entry(value)
        except UnknownSchema as error:
            self._halt(offset, str(error))
            return False
        if entry is None or not self._chain.accepts(offset, entry):
            self._noise += 1
            return True
        return self._entry(offset, entry)

    def _entry(self, offset: int, entry: Entry) -> bool:
        cursor = self._cursor
        cursor.generation, cursor.epoch = entry.generation, entry.epoch
        cursor.offset, cursor.index, cursor.cause = offset, 0, 0
        cursor.time_ms = self._book.now_ms = entry.time_ms
        self._entries += 1
        if self._last is not None:
            self._chain.check(self._last, entry)
            self._budgets.begin(entry)
            self._leases.begin(self._last, entry)
            self._standing.begin(entry)
            self._book.step_time(entry.time_step_ms or 0)
        self._last = entry
        cursor.taken = self._inputs.taken(entry, lambda detail: cursor.found("answers", detail))
        self._submissions += sum(asked.topic is Topic.SUBMISSIONS for asked in cursor.taken)
        for cursor.index, recorded in enumerate(entry.events):
            cursor.cause = recorded.cause
            try:
                event = decode(recorded.body)
            except (UnknownSchema, Undecodable) as error:
                self._halt(offset, str(error))
                return False
            if type(event) not in EVENTS:
                self._halt(offset, f"found {type(event).__name__} among the events")
                return False
            self._publication.see(event, recorded.body)
            self._replies.see(event)
            for handler in self._handlers.get(type(event), ()):
                handler(event)
        self._events += len(entry.events)
        self._replies.end()
        self._answers.end()
        self._settlements.end()
        self._told.end()
        self._standing.end()
        return True

    def _halt(self, offset: int, reason: str) -> None:
        self._cursor.offset = offset
        self._cursor.found("chain", f"Expected words that this version knows, but {reason}")

    def finish(self, *, strict: bool, provider_record: Iterable[str] | None) -> Findings:
        """What the whole journal comes to."""
        cursor, book = self._cursor, self._book
        last = self._last
        through = None if last is None else cursor.position
        cursor.index = 0
        for residue in balance(self._answers.counts, book, self._submissions):
            cursor.found("balance", residue)
        pending = {
            "inputs": self._inputs.left(),
            "copies": self._publication.finish(
                -1 if last is None else last.published, strict=strict
            ),
        }
        if strict and pending["inputs"]:
            cursor.found("answers", f"Expected every input taken, but {pending['inputs']} are not")
        if provider_record is not None:
            self._provider.finish(provider_record)
        operations = Counter(operation.state for operation in book.operations.values())
        findings = sorted(cursor.findings, key=lambda finding: finding.position)
        return Findings(
            cell=cursor.cell,
            through=through,
            entries=self._entries,
            noise=self._noise,
            events=self._events,
            submissions=dict(self._answers.counts),
            operations=dict(sorted((operations + book.forgotten).items())),
            reservations={**book.closed, "open": len(book.open)},
            pending=pending,
            findings=tuple(findings),
            found=cursor.found_count,
        )
