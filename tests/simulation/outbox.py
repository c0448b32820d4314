"""The public topics: partitions apart from each other, some slow, some refusing."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

from schemas.journal import Position
from schemas.topics import OUTPUT_TOPICS, Topic
from streams.shell.outbox import Outgoing, PublishFailed
from tests.simulation.clock import MILLI
from tests.simulation.host import Host

PARTITIONS = 2
Lane = tuple[Topic, int]


class Published(NamedTuple):
    """One public record as readers find it."""

    position: Position
    key: str
    value: bytes


def lane_of(topic: Topic, key: str) -> Lane:
    return topic, crc32(key.encode()) % PARTITIONS


class PublicTopics:
    """What is out, for everyone."""

    def __init__(self) -> None:
        self.records: dict[Lane, list[Published]] = {
            (topic, partition): [] for topic in OUTPUT_TOPICS for partition in range(PARTITIONS)
        }


class SimulatedOutbox:
    """`Outbox` for one term: a partition keeps its order, and ends with a refused record."""

    def __init__(self, host: Host, topics: PublicTopics) -> None:
        self._host, self._topics = host, topics
        self._process = host.process
        self._waiting: dict[Lane, deque[tuple[int, Published]]] = {
            lane: deque() for lane in topics.records
        }
        self._rest: deque[tuple[int, Outgoing]] = deque()
        self._moving: dict[Lane, bool] = {}
        self._ended: dict[Lane, bool] = {}
        self._open: deque[list[int]] = deque()  # offset, records not out, bytes
        self._published = -1
        self._has_failed = False
        self._purged_us: int | None = None

    def publish(self, offset: int, records: Sequence[Outgoing]) -> None:
        size = sum(len(record.value) for record in records)
        self._open.append([offset, len(records), size])
        for record in records:
            if record.topic is Topic.DELIVERIES:
                self._send(offset, record)
            else:
                self._rest.append((offset, record))
        self._count()

    def send_rest(self) -> None:
        while self._rest:
            self._send(*self._rest.popleft())

    def _send(self, offset: int, record: Outgoing) -> None:
        self._host.point()  # a crash leaves some topics ahead of others
        position = Position.parse(str(dict(record.headers)["position"]))
        lane = lane_of(record.topic, record.key)
        self._waiting[lane].append((offset, Published(position, record.key, record.value)))
        self._move(lane)

    def _move(self, lane: Lane) -> None:
        if not self._waiting[lane] or self._moving.get(lane) or self._ended.get(lane):
            return
        random, faults = self._host.random, self._host.faults
        span_us = random.randint(50, 1_500)
        if random.random() < faults.slow_partition:
            span_us = random.randint(20, 400) * MILLI
        self._moving[lane] = True
        self._host.clock.after(span_us, lambda: self._arrive(lane))

    def _arrive(self, lane: Lane) -> None:
        self._moving[lane] = False
        if not self._process.alive:  # its last packets were under way; the rest is gone
            self._purge_soon()
        if self._purged_us is not None and self._host.clock.now_us > self._purged_us:
            return
        if self._host.random.random() < self._host.faults.failed_publish:
            self._has_failed = self._ended[lane] = True
            return
        if not self._host.is_cut:
            offset, record = self._waiting[lane].popleft()
            self._topics.records[lane].append(record)
            next(entry for entry in self._open if entry[0] == offset)[1] -= 1
            self._count()
        self._move(lane)

    def _purge_soon(self) -> None:
        if self._purged_us is None:
            self._purged_us = self._host.clock.now_us + self._host.random.randint(0, 3) * MILLI

    def _count(self) -> None:
        while self._open and self._open[0][1] == 0:
            self._published = self._open.popleft()[0]

    def published(self, wait_ms: int) -> int:
        if self._has_failed:
            raise PublishFailed("A public record was refused")
        return self._published

    def lag(self) -> tuple[int, int]:
        return len(self._open), sum(entry[2] for entry in self._open)

    def close(self) -> None:
        self._purge_soon()
