"""The fold of a journal into state and tables: the same for restore, standby, owner and tests."""

import hashlib
from collections.abc import Sequence

from schemas.codec import decode, decode_entry
from schemas.errors import Undecodable, UnknownSchema
from schemas.ids import StateHash
from schemas.journal import Chain, Entry, Head
from schemas.units import Millis
from streams.core.decider import CORE_VERSION
from streams.core.evolution import evolve
from streams.core.opening import open_state
from streams.core.tables import Image, chain_hash
from streams.shell.clock import Anchor
from streams.shell.journal import JournalError, JournalRecreated, JournalTrimmed, Reader, Record
from streams.shell.ports import Ports
from streams.shell.tables import Applied, TableStore, WrongStore

READ_MAX = 500
"""Entries folded in one step: some tens of milliseconds, so that the process stays responsive."""
GENESIS_HASH = StateHash(bytes(32))
"""The running hash before the first entry."""


class StateDiffers(JournalError):
    """The same rules gave another state than the owner's. Stop with an alert; run verify."""


class FutureEntry(JournalError):
    """The journal holds words that this version does not know. Stop with an alert; upgrade (R142).

    Taking such an entry for noise would let an old standby fork the cell.
    """


def entry_in(record: Record) -> Entry | None:
    """The entry in a record of the journal, or None for a stranger's bytes, which are noise.

    Raises:
        FutureEntry: the bytes are a word of ours that no schema here names.
    """
    try:
        return decode_entry(record.value)
    except UnknownSchema as error:
        raise FutureEntry(f"Expected a known schema at {record.offset}, but {error}") from error


class Fold:
    """State, tables, chain and running hash of one cell, at one position of its journal."""

    def __init__(self, store: TableStore, topic_id: str) -> None:
        applied = store.applied()
        if applied is not None and applied.topic_id != topic_id:
            raise WrongStore(
                f"Expected tables folded from topic {topic_id}, but they are of {applied.topic_id}"
            )
        if applied is not None and applied.core_version != CORE_VERSION:
            store.clear()
            applied = None
        self._store = store
        self._topic_id = topic_id
        self.opened = applied
        """What the store already held."""
        self.chain = Chain(applied.head if applied else None)
        self.state = open_state(store)
        self.state_hash = applied.state_hash if applied else GENESIS_HASH
        self.next_offset = applied.next_offset if applied else 0
        self.published = applied.published if applied else -1
        self.time_ms = Millis(applied.time_ms if applied else 0)
        self.anchor = Anchor(0, 0, -1)
        if applied:
            self.anchor = Anchor(
                applied.anchor_append_ms, applied.anchor_time_ms, applied.anchor_leader_epoch
            )
        self.shift_ms = Millis(0)
        self.takeovers = 0
        """Accepted takeovers in a row that no ordinary entry has followed."""

    @property
    def head(self) -> Head | None:
        """The last accepted entry; None before genesis."""
        return self.chain.head

    def resume(self, record: Record) -> None:
        """Compare the head's record with what the store was folded from, on opening.

        Raises:
            JournalRecreated: another record is there. Stop with an alert.
        """
        assert self.opened is not None, "Expected a store that holds a head"
        digest = hashlib.sha256(record.value).digest()
        if record.offset != self.opened.head.offset or digest != self.opened.entry_digest:
            raise JournalRecreated(
                f"Expected the entry at {self.opened.head.offset} that the tables end with, "
                f"but the journal has another record there"
            )
        entry = entry_in(record)
        assert entry is not None, f"Expected an entry at {record.offset}, since its digest is known"
        self.shift_ms = entry.clock_shift_ms
        self.takeovers = int(entry.takeover and entry.height > 0)

    def apply(self, record: Record) -> Entry | None:
        """Fold the next record of the journal.

        Returns: the entry if the chain rule accepts it, None for noise.

        Raises:
            StateDiffers: the owner's hash over all earlier batches is another one.
            FutureEntry: an accepted entry holds an event that this version does not know.
        """
        entry = entry_in(record)
        if entry is None or not self.chain.accept(record.offset, entry):
            self.next_offset = record.offset + 1
            return None
        if entry.core_version == CORE_VERSION and entry.state_hash != self.state_hash:
            raise StateDiffers(
                f"Expected the hash {self.state_hash.hex()} before the entry at {record.offset}, "
                f"but its owner had {entry.state_hash.hex()}"
            )
        self.state.begin(entry)
        try:
            for event in entry.events:
                evolve(self.state, decode(event.body))
        except (UnknownSchema, Undecodable) as error:
            raise FutureEntry(f"Expected known events at {record.offset}, but {error}") from error
        self._keep(entry, record, self.state.drain())
        return entry

    def accept(self, entry: Entry, record: Record, images: Sequence[Image]) -> None:
        """Keep an entry that this process decided and that the journal has accepted.

        `images` are the rows changed when it was decided, so nothing of a later entry leaks in.
        """
        accepted = self.chain.accept(record.offset, entry)
        assert accepted, f"Expected the entry at {record.offset} to extend {self.head}"
        self._keep(entry, record, images)

    def _keep(self, entry: Entry, record: Record, images: Sequence[Image]) -> None:
        head = self.chain.head
        assert head is not None, "Expected a head after an accepted entry"
        self.state_hash = chain_hash(self.state_hash, images)
        self.next_offset = record.offset + 1
        self.published = entry.published
        self.time_ms = entry.time_ms
        self.shift_ms = entry.clock_shift_ms
        is_takeover = entry.takeover and entry.height > 0
        self.takeovers = self.takeovers + 1 if is_takeover else 0
        if not is_takeover:
            leader_epoch = -1 if record.leader_epoch is None else record.leader_epoch
            self.anchor = Anchor(record.append_ms, entry.time_ms, leader_epoch)
        applied = Applied(
            topic_id=self._topic_id,
            core_version=CORE_VERSION,
            head=head,
            next_offset=self.next_offset,
            entry_digest=hashlib.sha256(record.value).digest(),
            state_hash=self.state_hash,
            time_ms=self.time_ms,
            published=self.published,
            anchor_append_ms=self.anchor.append_ms,
            anchor_time_ms=self.anchor.time_ms,
            anchor_leader_epoch=self.anchor.leader_epoch,
        )
        self._store.write(images, applied)

    def close(self) -> None:
        """Let go of the tables; the memory is worthless from here on."""
        self._store.close()


class Restore:
    """Opens the tables and folds the entries after them up to a fresh end, in short steps."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self.fold: Fold | None = None
        self.reader: Reader | None = None
        self._end = 0
        self._resumed = False

    def step(self) -> bool:
        """Go on by one short step.

        Returns: whether fold and reader stand at the journal's fresh end; both are then the
        caller's, also when the journal is still empty.

        Raises:
            TablesInUse, WrongStore: stop.
            JournalRecreated, JournalTrimmed, StateDiffers, FutureEntry: stop.
        """
        if self.fold is None or self.reader is None:
            return self._open()
        for record in self.reader.read(READ_MAX, 5):
            if not self._resumed:
                self.fold.resume(record)
                self._resumed = True
            elif record.offset >= self.fold.next_offset:
                self.fold.apply(record)
        self._ports.watch.progress(self.fold.next_offset, self._end)
        if not self._resumed or self.fold.next_offset < self._end:
            return False
        end = self._ports.journal.end()
        self._end = self._end if end is None else end
        return end is not None and end <= self.fold.next_offset

    def _open(self) -> bool:
        journal = self._ports.journal
        topic_id, start, end = journal.topic_id(), journal.start(), journal.end()
        if topic_id is None or start is None or end is None:
            return False
        if start > 0:
            raise JournalTrimmed(f"Expected a journal that begins at 0, but it begins at {start}")
        store = self._ports.tables()
        try:
            fold = Fold(store, topic_id)
        except BaseException:
            store.close()
            raise
        self.fold = fold
        if fold.head is not None and end <= fold.head.offset:
            raise JournalRecreated(
                f"Expected the entry at {fold.head.offset}, but the journal ends at {end}"
            )
        self._end = end
        self._resumed = fold.head is None
        self.reader = journal.reader(0 if fold.head is None else fold.head.offset)
        return False

    def close(self) -> None:
        """Let go of what was opened."""
        if self.reader is not None:
            self.reader.close()
        if self.fold is not None:
            self.fold.close()
