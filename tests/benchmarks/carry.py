"""The floor of a lifecycle: its very records carried by processes that look into none of them."""

import gc
import pickle
import time

from schemas.topics import PARTITIONS, Topic, full_name
from tests.benchmarks import carrier, raw
from tests.benchmarks.cell import CELL, Arrived
from tests.benchmarks.crew import AHEAD, IDLE_S, LINGER_MS
from tests.benchmarks.result import Result
from tests.benchmarks.stage import Stage
from tests.benchmarks.tape import Record, Tape, differences, everything, read

READY_S = 60.0
PATIENCE_S = 120.0
GENESIS = 1
"""Entries of a cell that was just founded."""


def carry(stage: Stage, prefix: str, stretch: range) -> tuple[Result, float]:
    """Row `carry`, core-microseconds of a lifecycle, and lifecycles a second.

    Args:
        stage: for a cell that carries; `prefix` is the one whose journal has the stretch.

    Raises:
        AssertionError: a byte of the stretch was not carried, or one that it does not have.
    """
    gc.disable()  # millions of records that stay, and nothing in circles
    tape = read(stage.bootstrap, prefix, stretch)
    stage.found_cell()
    steps = stage.work / "steps"
    steps.write_bytes(pickle.dumps(tape.steps))
    arguments = (stage.bootstrap, stage.prefix, str(steps))
    process = stage.start("carrier", "-m", "tests.benchmarks.carrier", *arguments)
    clients = _Clients(stage, tape)
    process.wait_until(lambda: carrier.READY in process.tail(), "the tape to be read", READY_S)
    with stage.cpu(carrier=process) as cpu:
        seconds = clients.play()
    process.wait_until(lambda: carrier.DONE in process.tail(), "the end of the tape", raw.WAIT_S)
    there = everything(stage.bootstrap, stage.prefix)
    there[Topic.JOURNAL] = there[Topic.JOURNAL][GENESIS:]
    unlike = differences(tape, there)
    assert not unlike, f"Expected to carry what the tape has, but got {unlike}"
    count = len(tape.submissions)
    costs = cpu.per(count)
    sizes = [len(record.value) for record in tape.records()]
    entries = sum(len(step.entry) for step in tape.steps)
    parts = {
        "records": f"{len(sizes) / count:.1f}",
        "their bytes": f"{sum(sizes) / count:,.0f}",
        "bytes of entries": f"{entries / count:,.0f}",
        "lifecycles an entry": f"{count / len(tape.steps):.1f}",
    }
    gc.enable()
    row = Result(name="carry", value=sum(costs.values()), unit="us", core_us=costs, parts=parts)
    return row, count / seconds


class _Clients:
    """Submit ahead, and answer each delivery as on the tape."""

    def __init__(self, stage: Stage, tape: Tape) -> None:
        self._names = {topic: full_name(stage.prefix, CELL, topic) for topic in Topic}
        self._submissions = [self._send(record) for record in tape.submissions]
        self._others = [self._send(record) for record in tape.others]
        self._answers = {value: self._send(record) for value, record in tape.answers.items()}
        self._submitter = raw.producer(stage.bootstrap, **{"linger.ms": LINGER_MS})
        self._crew = raw.producer(stage.bootstrap, **{"linger.ms": LINGER_MS})
        self._inbox = raw.consumer(
            stage.bootstrap, self._names[Topic.DELIVERIES], range(PARTITIONS)
        )
        self._settled = Arrived(stage.bootstrap, stage.prefix, Topic.SETTLEMENTS)

    def _send(self, record: Record) -> tuple[str, bytes, str | None]:
        assert not record.headers, "Expected inputs without headers"
        return self._names[record.topic], record.value, record.key

    def play(self) -> float:
        """From the first submission to the last settlement; seconds."""
        begun, sent, count = time.monotonic(), 0, len(self._submissions)
        for other in self._others:
            self._crew.produce(*other)
        while (done := self._settled.count) < count:
            assert time.monotonic() < begun + PATIENCE_S, f"Expected {count}, got {done}"
            ahead = min(count, done + AHEAD)
            for submission in self._submissions[sent:ahead]:
                self._submitter.produce(*submission)
            sent = ahead
            self._submitter.poll(0)
            self._answer()
            self._settled.look()
        return time.monotonic() - begun

    def _answer(self) -> None:
        first = self._inbox.poll(IDLE_S)
        for message in [] if first is None else [first, *self._inbox.consume(1_000, 0)]:
            answer = self._answers.get(message.value())
            if answer is not None:
                self._crew.produce(*answer)
        self._crew.poll(0)
