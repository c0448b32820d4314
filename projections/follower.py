"""Folds the accepted entries of one journal into all views, from disk or from nothing.

A batch, in four steps: read what has come, drop noise by the chain rule, show each event to the
views that want it, write all changed rows and the new mark at once. A crash between any two of them
loses nothing, since the next start reads on from the mark.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from typing import Any, get_args

from schemas import registry
from schemas.codec import HEADER_BYTES, decode
from schemas.errors import WordError
from schemas.events import ConfigActivated
from schemas.ids import CellId
from schemas.journal import Chain, Entry, InputRun, Position

from .accepted import entry_in
from .catalogue import PROJECTIONS, VERSIONS
from .ports import Entries, EntryUnreadable, JournalReplaced, Mark, Record, ViewStore
from .projection import Projection, Seen, Source
from .reflected import Reflected
from .rows import DECODE, NUMBERS, Rows
from .views.config import CONFIG, Config, piece_of
from .views.operation import OPERATIONS, names_newest
from .views.phases import OVER, phase_after
from .views.unknown import UNKNOWNS, OfAttempt, unknown_key

RECORDS_PER_BATCH_MAX = 256
"""One batch holds the interpreter for some ten milliseconds at most, and requests wait for it."""

_OPERATION = NUMBERS[OPERATIONS.number]
_UNKNOWN = NUMBERS[UNKNOWNS.number]
_OF_ATTEMPT = frozenset(get_args(OfAttempt))

Accepted = tuple[int, Entry]
"""An accepted entry with its offset."""
Views = tuple[tuple[bytes, Projection[Any]], ...]
"""Each with what its keys begin with."""


@cache
def _wanted() -> dict[bytes, Views]:
    """The views that want an event, by how its bytes begin, in every published version."""
    by_name: dict[str, list[tuple[bytes, Projection[Any]]]] = defaultdict(list)
    for projection in PROJECTIONS:
        for event in projection.wants:
            by_name[event.__name__].append((NUMBERS[projection.number], projection))
    return {
        version.header: tuple(by_name[version.name])
        for version in registry.published()
        if version.name in by_name
    }


def sources_of(runs: Sequence[InputRun]) -> list[Source]:
    """The inputs that an entry took, each at its ordinal over all runs."""
    return [
        Source(run.topic, run.partition, offset)
        for run in runs
        for offset in range(run.first, run.next)
    ]


class Follower:
    """One fold over one journal; `step` is to be called by one thread, in a loop."""

    def __init__(
        self,
        *,
        cell: CellId,
        entries: Entries,
        store: ViewStore,
        done: Callable[[Reflected], None],
        heard: Callable[[Sequence[Accepted]], None] = lambda _: None,
        ended: Callable[[Sequence[bytes]], None] = lambda _: None,
    ) -> None:
        """Open the views and place the reader.

        Args:
            cell: whose journal it is.
            entries: the journal.
            store: the rows, from disk or empty.
            done: told after each batch how far the rows are.
            heard: told before that what the batch had, once the rows are written.
            ended: told as `heard` which operations have come to an end.

        Raises:
            JournalReplaced: the views were folded from another topic of this name.
        """
        self._cell = cell
        self._entries = entries
        self._done = done
        self._heard = heard
        self._ended = ended
        self._just_ended: list[bytes] = []
        self._wanted = _wanted()
        self._topic_id = entries.topic_id()
        mark = store.mark()
        if mark is not None and mark.versions != VERSIONS:
            store.clear()
            mark = None
        if mark is not None and mark.topic_id != self._topic_id:
            raise JournalReplaced(
                f"Expected topic {mark.topic_id}, but the journal is {self._topic_id}"
            )
        self._rows = Rows(store)
        self._chain = Chain(None if mark is None else mark.head)
        self._head: tuple[Record, Entry] | None = None
        self._unproved = mark
        self._taken = {} if mark is None else {(t, p): n for t, p, n in mark.taken}
        self._config = _stored_config(store)
        self.reflected = self._at(mark)
        """How far the rows are; readable from any thread."""
        entries.begin(self.reflected.next_offset)

    def step(self, wait_ms: int) -> int:
        """Fold what has come; waits up to `wait_ms` if nothing has.

        Returns: how many records were read.

        Raises:
            FollowerHalted: its docstring says what to do; nothing of the batch was written.
        """
        records = self._entries.read(RECORDS_PER_BATCH_MAX, wait_ms)
        if records:
            self._fold(records)
        return len(records)

    def _fold(self, records: Sequence[Record]) -> None:
        self._head = None
        accepted: list[Accepted] = []
        for record in records:
            if self._unproved is not None:
                self._prove(record, self._unproved)
                continue
            entry = entry_in(record)
            if entry is None or not self._chain.accept(record.offset, entry):
                continue
            try:
                self._show(record.offset, entry)
                self._head = (record, entry)
                accepted.append((record.offset, entry))
            except WordError as error:
                raise EntryUnreadable(f"Journal offset {record.offset}: {error}") from error
        if self._head is not None:  # else only noise: there is nothing to write
            mark = self._mark(*self._head)
            self._rows.flush(mark)
            self.reflected = self._at(mark)
            self._heard(accepted)
            if self._just_ended:
                self._ended(self._just_ended)
                self._just_ended = []
        self.reflected = replace(self.reflected, next_offset=records[-1].offset + 1)
        self._done(self.reflected)

    def _prove(self, record: Record, mark: Mark) -> None:
        """The first record read is the head of the views, byte for byte, or all is off."""
        found = (record.offset, sha256(record.value).digest())
        if found != (mark.head.offset, mark.head_digest):
            raise JournalReplaced(
                f"Expected the entry at {mark.head.offset} that the views end with, "
                f"but the journal has another at {record.offset}"
            )
        self._unproved = None

    def _show(self, offset: int, entry: Entry) -> None:
        for run in entry.inputs:
            self._taken[run.topic, run.partition] = run.next
        sources = sources_of(entry.inputs)
        for index, raw in enumerate(entry.events):
            views = self._wanted.get(raw.body[:HEADER_BYTES])
            if views is not None:
                source = sources[raw.cause] if raw.cause >= 0 else None
                self._apply(views, decode(raw.body), (offset, index, entry.time_ms), source)

    def _apply(
        self, views: Views, event: Any, at: tuple[int, int, Any], source: Source | None
    ) -> None:
        rows = self._rows
        if isinstance(event, ConfigActivated):
            self._config.put(piece_of(event))
        named = getattr(event, "operation", None)
        operation = reserved = None if named is None else rows.get(_OPERATION + named)
        if type(event) in _OF_ATTEMPT and not (operation and names_newest(operation, event)):
            reserved = rows.get(_UNKNOWN + unknown_key(event))
        seen = Seen(
            event,
            time_ms=at[2],
            offset=at[0],
            index=at[1],
            source=source,
            operation=operation,
            reserved=reserved,
            before=None if operation is None else operation.phase,
            after=phase_after(event, operation),
            config=self._config,
        )
        if seen.after in OVER and seen.after is not seen.before:
            self._just_ended.append(event.operation)
        for number, view in views:
            key = view.key(seen)
            if key is not None:
                full = number + key
                row = rows.get(full)
                rows.put(full, view.apply(view.initial() if row is None else row, seen))

    def _mark(self, record: Record, entry: Entry) -> Mark:
        assert self._chain.head is not None, "Expected a head after an accepted entry"
        return Mark(
            topic_id=self._topic_id,
            versions=VERSIONS,
            head=self._chain.head,
            head_digest=sha256(record.value).digest(),
            head_index=max(len(entry.events) - 1, 0),
            time_ms=entry.time_ms,
            taken=[(topic, partition, n) for (topic, partition), n in self._taken.items()],
        )

    def _at(self, mark: Mark | None) -> Reflected:
        if mark is None:
            return Reflected(Position(self._cell, 0, -1, 0), 0, 0, {})
        position = Position(self._cell, mark.head.generation, mark.head.offset, mark.head_index)
        return Reflected(position, mark.time_ms, mark.head.offset, dict(self._taken))


def _stored_config(store: ViewStore) -> Config:
    config = Config()
    first = NUMBERS[CONFIG.number]
    for _, row in store.scan(first, bytes((CONFIG.number + 1,))):
        config.put(DECODE[CONFIG.number](row))
    return config


def digests(store: ViewStore) -> dict[str, str]:
    """SHA-256 over all rows of each view: equal for equal histories, however they were folded."""
    found = {}
    for projection in PROJECTIONS:
        digest = sha256()
        for key, row in store.scan(NUMBERS[projection.number], bytes((projection.number + 1,))):
            digest.update(len(key).to_bytes(4, "big") + key + len(row).to_bytes(4, "big") + row)
        found[projection.name] = digest.hexdigest()
    return found
