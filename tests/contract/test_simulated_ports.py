"""The simulated ports keep the promises that are tested on the real ones."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest

from schemas.topics import Topic
from streams.shell.journal import Journal
from streams.shell.tables import TableStore
from tests.contract.inputs_contract import InputsContract
from tests.contract.journal_contract import JournalContract, Pass
from tests.contract.outbox_contract import OutboxContract
from tests.contract.tables_contract import TablesContract
from tests.simulation.clock import MILLI, BrokerClock, SimulatedClock
from tests.simulation.faults import Faults
from tests.simulation.host import Host
from tests.simulation.inputs import InputTopics, SimulatedInputs
from tests.simulation.journal import Log, SimulatedJournal
from tests.simulation.outbox import PublicTopics, SimulatedOutbox
from tests.simulation.tables import Disk, SimulatedTables

CALM = Faults.none()


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock()


@pytest.fixture
def host(clock: SimulatedClock) -> Host:
    return Host("host", clock, Random(3), CALM)


@pytest.fixture
def pass_time(clock: SimulatedClock) -> Pass:
    return lambda: clock.advance(10 * MILLI)


class TestSimulatedJournal(JournalContract):
    @pytest.fixture
    def journal(self, host: Host, clock: SimulatedClock) -> Journal:
        return SimulatedJournal(host, Log(BrokerClock(clock, drift_ppm=20)))


class InputsWorld:
    def __init__(self, host: Host) -> None:
        self._topics = InputTopics()
        self.inputs = SimulatedInputs(host, self._topics)

    def send(self, topic: Topic, *words: Any) -> Sequence[tuple[int, int]]:
        return [(at.partition, at.offset) for at in map(self._topics.send, words)]


class TestSimulatedInputs(InputsContract):
    @pytest.fixture
    def world(self, host: Host) -> InputsWorld:
        return InputsWorld(host)


class OutboxWorld:
    def __init__(self, host: Host, pass_time: Pass) -> None:
        self._topics = PublicTopics()
        self.outbox = SimulatedOutbox(host, self._topics)
        self.pass_time = pass_time

    def read(self, topic: Topic) -> Sequence[tuple[int, str, bytes]]:
        return [
            (partition, record.key, record.value)
            for (lane, partition), records in self._topics.records.items()
            for record in records
            if lane == topic
        ]


class TestSimulatedOutbox(OutboxContract):
    @pytest.fixture
    def world(self, host: Host, pass_time: Pass) -> OutboxWorld:
        return OutboxWorld(host, pass_time)


class TestSimulatedTables(TablesContract):
    @pytest.fixture
    def reopen(self) -> Callable[[], TableStore]:
        disk, opened = Disk(), list[SimulatedTables]()

        def reopen() -> TableStore:
            if opened:
                opened.pop().close()
            opened.append(SimulatedTables(disk))
            return opened[-1]

        return reopen
