"""A warm standby: folds every entry as it arrives, listens for the owner, and knows when to try."""

from schemas.codec import decode_as
from schemas.errors import WordError
from schemas.journal import Pulse
from streams.shell.clock import Seen
from streams.shell.journal import JournalError, Pulses, Reader, Record
from streams.shell.ports import Gear, Ports
from streams.shell.restore import Fold

READ_MAX = 500
"""Entries folded in one step: some tens of milliseconds, so that the process stays responsive."""
WAIT_MS = 5
DOUBLED_MAX = 16
"""The wait doubles up to this factor while takeovers follow each other without ordinary entry."""


class TopicRecreated(JournalError):
    """A topic is not the one that genesis recorded; its offsets mean nothing. Stop: an alert."""


class Standby:
    """One life as a standby, with the gear of the term that may follow.

    Args:
        fold: stands at the journal's end.
        reader: its next record is the one after the fold.
        pulses: read up to the topic's end, since old signs say nothing about now.
    """

    def __init__(self, ports: Ports, fold: Fold, reader: Reader, pulses: Pulses) -> None:
        self._ports, self.fold = ports, fold
        self._reader, self._pulses = reader, pulses
        self.seen: Seen | None = None
        """The last time that a live owner told."""
        self.head_record: Record | None = None
        """The last accepted entry, if it was read in this life."""
        self.gear = self._prime()
        self._wait()

    def read_journal(self) -> None:
        """Fold what has arrived; each accepted entry is a sign of life."""
        for record in self._reader.read(READ_MAX, WAIT_MS):
            entry = self.fold.apply(record)
            if entry is None:
                continue
            self._heard_ms = self._ports.monotonic.now_ms()
            self.head_record = record
            if not entry.takeover:
                self.seen = Seen(entry.epoch, entry.time_ms, self._heard_ms)

    def read_pulses(self) -> None:
        """Listen; a pulse of a lower epoch comes from an owner that was replaced."""
        epoch = 0 if self.fold.head is None else self.fold.head.epoch
        for record in self._pulses.read(0):
            try:
                pulse = decode_as(Pulse, record.value)
            except WordError:
                continue
            if pulse.epoch >= epoch:
                self._heard_ms = self._ports.monotonic.now_ms()
                self.seen = Seen(pulse.epoch, pulse.time_ms, self._heard_ms)

    def may_claim(self) -> bool:
        """Whether a silence stands at a fresh end of both topics, and every input can be read.

        Raises:
            TopicRecreated: stop.
        """
        return (
            self._is_silent()
            and self._ports.journal.end() == self.fold.next_offset
            and self._pulses.caught_up() is True
            and self.gear.inputs.ends() is not None
            and self._topics_are_ours()
        )

    def wait_anew(self) -> None:
        """After a lost or unanswered takeover: fresh gear, and silence counts from now on."""
        self.gear.writer.close()
        self.gear.inputs.close()
        self.gear.outbox.close()
        self.gear = self._prime()
        self._wait()

    def _prime(self) -> Gear:
        return Gear(
            owner=self._ports.owner_id(),
            pulses=self._pulses,
            writer=self._ports.journal.writer(),
            inputs=self._ports.inputs(),
            outbox=self._ports.outbox(),
        )

    def _wait(self) -> None:
        self._heard_ms = self._ports.monotonic.now_ms()
        self._spread_ms = self._ports.chance_ms(self._ports.timing.takeover_spread_ms)

    def _is_silent(self) -> bool:
        """Whether neither entry nor pulse came for long enough; genesis is not ours to write."""
        if self.fold.head is None:
            return False
        doubled = min(1 << self.fold.takeovers, DOUBLED_MAX)
        wait_ms = self._ports.timing.takeover_ms * doubled + self._spread_ms
        return self._ports.monotonic.now_ms() - self._heard_ms > wait_ms

    def _topics_are_ours(self) -> bool:
        ids = self._ports.topic_ids()
        if ids is None:
            return False
        for name, recorded in self.fold.state.topic_ids.items():
            if ids.get(name) != recorded:
                raise TopicRecreated(
                    f"Expected topic {name} with id {recorded}, but it has {ids.get(name)}"
                )
        return True

    def close(self) -> None:
        """Let go of the reader; fold, pulses and gear go on into the term, or are closed apart."""
        self._reader.close()
