"""The SDK at a real scheduler: leases are kept whatever blocks, and lost without harm."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from evenhand import AsyncAttempt, AsyncWorker, Attempt, Kafka, Result, Worker
from evenhand._transport import Link
from schemas import events as e
from schemas import inputs as i
from schemas.ids import MemberId
from schemas.topics import Topic
from schemas.units import Millis
from tests.support.asked import POOL, id_of, submission
from tests.support.kafka import Log, until
from tests.support.rig import Rig, Tail

LEASE_MS = Millis(900)
BLOCKED_S = 2.5
"""Nearly three leases."""


@pytest.fixture
def cell(rig: Rig) -> Rig:
    rig.scheduler()
    rig.configure(pool={"lease_ms": LEASE_MS})
    return rig


@pytest.fixture
def told(cell: Rig) -> Callable[[], list[Any]]:
    """What was decided so far."""
    tail, seen = Tail(cell.log, Topic.DECISIONS), list[Any]()

    def read() -> list[Any]:
        seen.extend(tail.new())
        return seen

    return read


def kafka(log: Log) -> Kafka:
    return Kafka(bootstrap=log.bootstrap, prefix=log.prefix, cell=log.cell)


def only(kind: type, told: Sequence[Any]) -> list[Any]:
    return [event for event in told if isinstance(event, kind)]


def nothing_was_lost(told: Sequence[Any]) -> bool:
    return not only(e.LeaseExpired, told) and not only(e.OutcomeMarkedUnknown, told)


def test_a_blocked_event_loop_loses_no_lease(cell: Rig, told: Callable[[], list[Any]]) -> None:
    lost: list[bool] = []

    async def handle(attempt: AsyncAttempt) -> Result:
        time.sleep(BLOCKED_S)  # noqa: ASYNC251 - it is the fault
        lost.append(attempt.lease_lost)
        return Result()

    async def work() -> None:
        async with AsyncWorker(handle, pool=POOL, via=kafka(cell.log)):
            await asyncio.to_thread(until, lambda: bool(only(e.ResultRecorded, told())), "a result")

    cell.submit(1)
    asyncio.run(work())
    assert nothing_was_lost(told())
    assert lost == [False]


def test_a_blocked_reader_loses_no_lease(cell: Rig, told: Callable[[], list[Any]]) -> None:
    lost, blocked = list[bool](), threading.Event()

    def handle(attempt: Attempt) -> Result:
        blocked.wait(2 * BLOCKED_S)
        lost.append(attempt.lease_lost)
        return Result()

    worker = Worker(handle, pool=POOL, via=kafka(cell.log))
    begin = worker._threads._run

    def begin_and_block(attempts: Sequence[Attempt]) -> None:
        begin(attempts)
        time.sleep(BLOCKED_S)
        blocked.set()

    worker._threads._run = begin_and_block
    cell.submit(1)
    with worker:
        until(lambda: bool(only(e.ResultRecorded, told())), "a result")
    assert nothing_was_lost(told())
    assert lost == [False]


class Deaf:
    """A link on which heartbeats are lost while it is told so."""

    def __init__(self, inner: Link, lossy: threading.Event) -> None:
        self._inner, self._lossy = inner, lossy

    def send(self, word: i.Input, durable: Callable[[], None] | None = None) -> None:
        if not (self._lossy.is_set() and isinstance(word, i.HeartbeatReported)):
            self._inner.send(word, durable)

    def receive(self, wait_s: float) -> Sequence[Any]:
        return self._inner.receive(wait_s)

    def close(self, wait_s: float) -> None:
        self._inner.close(wait_s)


class DeafKafka:
    def __init__(self, log: Log, lossy: threading.Event) -> None:
        self._kafka, self._lossy = kafka(log), lossy

    def link(self, member: MemberId) -> Link:
        return Deaf(self._kafka.link(member), self._lossy)


def test_a_lost_lease_shows_itself_and_the_late_result_still_counts(
    cell: Rig, told: Callable[[], list[Any]]
) -> None:
    lossy, calls = threading.Event(), list[str]()

    def handle(attempt: Attempt) -> Result:
        calls.append(attempt.operation)
        lossy.set()
        until(lambda: attempt.lease_lost, "the lease to be lost")
        lossy.clear()
        return Result(result_ref="s3://late")

    cell.submit(1)
    with Worker(handle, pool=POOL, via=DeafKafka(cell.log, lossy)):
        until(lambda: bool(only(e.ResultRecorded, told())), "a result")
    (unknown,) = only(e.OutcomeMarkedUnknown, told())
    (known,) = only(e.OutcomeReconciled, told())
    assert (unknown.cause, known.source) == ("lease_expired", "late_result")
    assert calls == [id_of("t1", 0).hex()]
    cell.until_settled(1)


def test_a_superseded_attempt_cannot_checkpoint_and_the_next_one_resumes(
    cell: Rig, told: Callable[[], list[Any]]
) -> None:
    lossy, resumed = threading.Event(), list[Any]()
    refused = list[BaseException]()

    def handle(attempt: Attempt) -> None:
        resumed.append(attempt.resumed_from)
        if attempt.attempt > 1:
            return
        attempt.checkpoint("s3://state/1")
        lossy.set()
        until(lambda: attempt.lease_lost, "the lease to be lost")
        lossy.clear()
        until(lambda: len(resumed) > 1, "the next attempt")
        try:
            attempt.checkpoint("s3://state/2")
        except Exception as error:
            refused.append(error)
            raise

    cell.log.send(Topic.SUBMISSIONS, submission("t1", 0, effect="keyed"))
    with Worker(handle, pool=POOL, via=DeafKafka(cell.log, lossy), places=2):
        until(lambda: bool(only(e.ResultRecorded, told())), "a result")
        until(lambda: bool(refused), "a refusal")
    assert resumed == [None, (1, "s3://state/1")]
    assert [type(error).__name__ for error in refused] == ["EpochSuperseded"]
