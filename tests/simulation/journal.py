"""The journal and the pulses: logs that refuse nothing, and writers that hear late or never."""

from collections.abc import Sequence
from enum import Enum

from streams.shell.journal import AppendFailed, JournalTrimmed, Landing, Record
from tests.simulation.clock import MILLI, BrokerClock
from tests.simulation.host import Host

TOPIC_ID = "journal-1"


class Fate(Enum):
    """What becomes of a record that a writer sent."""

    PLAIN = "lands, and its writer hears of it"
    SLOW_REPORT = "is readable long before its writer knows"
    LOST_REPORT = "lands, and its writer never hears of it"
    LOST_APPEND = "is lost"
    LATE_LANDING = "lands after its writer gave up"


class Log:
    """One partition: dense offsets, the broker's time, and what is readable stays."""

    def __init__(self, broker: BrokerClock, topic_id: str = TOPIC_ID) -> None:
        self._broker = broker
        self.topic_id = topic_id
        self.records: list[Record] = []
        self.start = 0

    def append(self, value: bytes) -> Landing:
        record = Record(len(self.records), self._broker.now_ms(), self._broker.leader_epoch, value)
        self.records.append(record)
        return Landing(record.offset, record.append_ms)


class SimulatedWriter:
    """`Writer`: what becomes of a record is drawn when it is sent."""

    def __init__(self, host: Host, log: Log) -> None:
        self._host, self._log = host, log
        self._process = host.process
        self._report: Landing | AppendFailed | None = None
        self._is_closed = self._is_flying = False

    def send(self, value: bytes) -> None:
        assert not self._is_flying, "Expected one entry in flight"
        assert not self._is_closed, "Expected a writer that was not closed"
        self._host.point()
        self._is_flying, self._report = True, None
        after, random = self._host.clock.after, self._host.random
        lands_us, hears_us = random.randint(50, 900), random.randint(50, 900)
        match self._fate():
            case Fate.PLAIN:
                after(lands_us, lambda: self._land(value, hears_us))
            case Fate.SLOW_REPORT:
                after(lands_us, lambda: self._land(value, random.randint(5, 40) * MILLI))
            case Fate.LOST_REPORT:
                after(lands_us, lambda: self._land(value, None))
                self._fail_later()
            case Fate.LOST_APPEND:
                self._fail_later()
            case Fate.LATE_LANDING:
                late_us = random.randint(20, 250) * MILLI
                after(late_us, lambda: self._land(value, None))
                self._fail_later()
        self._host.point()

    def _fate(self) -> Fate:
        random, faults = self._host.random, self._host.faults
        if self._host.is_cut:
            return random.choice((Fate.LOST_APPEND, Fate.LATE_LANDING))
        drawn = random.random()
        for fate, probability in (
            (Fate.SLOW_REPORT, faults.slow_report),
            (Fate.LOST_REPORT, faults.lost_report),
            (Fate.LOST_APPEND, faults.lost_append),
            (Fate.LATE_LANDING, faults.late_landing),
        ):
            drawn -= probability
            if drawn < 0:
                return fate
        return Fate.PLAIN

    def _land(self, value: bytes, hears_us: int | None) -> None:
        landing = self._log.append(value)
        if hears_us is not None:
            self._host.clock.after(hears_us, lambda: self._hear(landing))

    def _fail_later(self) -> None:
        if self._host.random.random() < 0.7:  # else the loop's own time-out must end the term
            span_us = self._host.random.randint(1, 60) * MILLI
            self._host.clock.after(span_us, lambda: self._hear(AppendFailed("Lost")))

    def _hear(self, report: Landing | AppendFailed) -> None:
        self._report = report

    def landed(self, wait_ms: int) -> Landing | None:
        self._host.point()
        if isinstance(self._report, AppendFailed):
            raise self._report
        if self._report is not None:
            self._is_flying = False
        return self._report

    def close(self) -> None:
        self._is_closed = True


class SimulatedReader:
    """`Reader`: its own prefix of the one order, sometimes late."""

    def __init__(self, host: Host, log: Log, offset: int) -> None:
        self._host, self._log, self._offset = host, log, offset

    def read(self, limit: int, wait_ms: int) -> Sequence[Record]:
        self._host.point()
        if self._offset < self._log.start:
            raise JournalTrimmed(f"Expected {self._offset}, but {self._log.start} is the first")
        random = self._host.random
        if self._host.is_cut or self._offset >= len(self._log.records):
            return ()
        if random.random() < self._host.faults.reader_lag:
            limit = min(limit, random.randint(0, 2))
        found = self._log.records[self._offset : self._offset + limit]
        self._offset += len(found)
        return found

    def close(self) -> None:
        pass


class SimulatedJournal:
    """`Journal` as one host sees it."""

    def __init__(self, host: Host, log: Log) -> None:
        self._host, self._log = host, log

    def topic_id(self) -> str | None:
        return None if self._host.is_cut else self._log.topic_id

    def start(self) -> int | None:
        return None if self._host.is_cut else self._log.start

    def end(self) -> int | None:
        self._host.point()
        return None if self._host.is_cut else len(self._log.records)

    def reader(self, offset: int) -> SimulatedReader:
        return SimulatedReader(self._host, self._log, offset)

    def writer(self) -> SimulatedWriter:
        return SimulatedWriter(self._host, self._log)


class SimulatedPulses:
    """`Pulses` as one host sees them."""

    def __init__(self, host: Host, log: Log) -> None:
        self._host, self._log = host, log
        self._offset: int | None = None

    def send(self, value: bytes) -> None:
        random = self._host.random
        if self._host.is_cut or random.random() < self._host.faults.lost_pulse:
            return
        self._host.clock.after(random.randint(50, 900), lambda: self._arrive(value))

    def _arrive(self, value: bytes) -> None:
        self._log.append(value)

    def read(self, wait_ms: int) -> Sequence[Record]:
        if self._host.is_cut:
            return ()
        if self._offset is None:
            self._offset = len(self._log.records)
        if self._host.random.random() < self._host.faults.reader_lag:
            return ()
        found = self._log.records[self._offset :]
        self._offset += len(found)
        return found

    def caught_up(self) -> bool | None:
        if self._host.is_cut or self._offset is None:
            return None
        return self._offset >= len(self._log.records)

    def close(self) -> None:
        pass


class PatientWriter(SimulatedWriter):
    """For a command that blocks: time passes while it waits."""

    def landed(self, wait_ms: int) -> Landing | None:
        self._host.clock.advance(2 * MILLI)
        return super().landed(wait_ms)


class PatientJournal(SimulatedJournal):
    """For a command that blocks."""

    def writer(self) -> PatientWriter:
        return PatientWriter(self._host, self._log)
