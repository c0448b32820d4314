"""One attempt to own a cell: a takeover entry, its place, and the clock of the term it begins."""

from enum import Enum

from schemas.codec import encode
from schemas.ids import OwnerId
from schemas.journal import Entry
from streams.core.decider import CORE_VERSION
from streams.shell.cell import Cell
from streams.shell.clock import BrokerClock, cold_time_ms
from streams.shell.journal import AppendFailed, JournalRecreated, Landing, Record
from streams.shell.ports import Ports
from streams.shell.restore import Fold
from streams.shell.standby import Standby

WAIT_MS = 5


class Outcome(Enum):
    """What became of a claim."""

    OPEN = "open"
    WON = "won"
    LOST = "lost"


def takeover(fold: Fold, owner: OwnerId) -> Entry:
    """The entry that begins a term after the fold's head.

    It takes no inputs and fires no timers, and copies time, `published` and shift of the entry
    that it extends, since its writer knows nothing newer for certain.
    """
    head = fold.head
    assert head is not None, "Expected a head to extend"
    return Entry(
        generation=head.generation,
        previous=head.offset,
        height=head.height + 1,
        epoch=head.epoch + 1,
        owner=owner,
        takeover=True,
        time_ms=fold.time_ms,
        clock_shift_ms=fold.shift_ms,
        published=fold.published,
        core_version=CORE_VERSION,
        state_hash=fold.state_hash,
        inputs=(),
        events=(),
    )


class Claim:
    """A takeover under way; a second is not sent before this one is reported or given up."""

    def __init__(self, ports: Ports, standby: Standby) -> None:
        fold, gear = standby.fold, standby.gear
        head = fold.head
        assert head is not None, "Expected a head to extend"
        self._ports, self._standby = ports, standby
        self._epoch_before = head.epoch
        self._expected = fold.next_offset
        self._landing: Landing | None = None
        self._sent_ms = self._reported_ms = ports.monotonic.now_ms()
        gear.writer.send(encode(takeover(fold, gear.owner)))

    def step(self) -> Outcome:
        """Wait a little for the report, then read the journal past it and let the chain decide.

        Raises:
            JournalRecreated: it landed before what was read already. Stop.
        """
        if self._landing is None:
            try:
                self._landing = self._standby.gear.writer.landed(WAIT_MS)
            except AppendFailed:
                return Outcome.LOST
            self._reported_ms = self._ports.monotonic.now_ms()
            waited_ms = self._reported_ms - self._sent_ms
            if self._landing is None:
                over = waited_ms > self._ports.timing.append_timeout_ms
                return Outcome.LOST if over else Outcome.OPEN
        offset = self._landing.offset
        if offset < self._expected:
            raise JournalRecreated(
                f"Expected the takeover at {self._expected}, but it landed at {offset}"
            )
        self._standby.read_journal()
        fold = self._standby.fold
        if fold.next_offset <= offset:
            return Outcome.OPEN
        head = fold.head
        assert head is not None, "Expected the head that the takeover extends, or a later one"
        won = head.offset == offset and head.owner == self._standby.gear.owner
        return Outcome.WON if won else Outcome.LOST

    def begin(self) -> Cell:
        """The loop of the term that was won; it goes on with the standby's fold and gear."""
        record = self._standby.head_record
        assert record is not None, "Expected the takeover to have been read back"
        self._standby.close()
        return Cell(
            self._ports,
            self._standby.fold,
            self._standby.gear,
            clock=self._clock(record),
            leader_epoch=record.leader_epoch,
        )

    def _clock(self, taken_over: Record) -> BrokerClock:
        """Warm if a live owner of the epoch before was heard; else from the broker's clock."""
        seen, fold = self._standby.seen, self._standby.fold
        if seen is not None and seen.epoch == self._epoch_before:
            time_ms = seen.time_ms + self._reported_ms - seen.at_ms
        else:
            leader_epoch = taken_over.leader_epoch
            time_ms = cold_time_ms(
                taken_over.append_ms,
                -1 if leader_epoch is None else leader_epoch,
                shift_ms=fold.shift_ms,
                anchor=fold.anchor,
                bound_ms=fold.state.bounds.clock_bound_ms,
            )
        return BrokerClock(
            at_ms=self._reported_ms,
            time_ms=time_ms,
            append_ms=taken_over.append_ms,
            last_ms=fold.time_ms,
        )
