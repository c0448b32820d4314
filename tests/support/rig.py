"""Real scheduler processes around one cell, a worker played by the test, and who judges them."""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from confluent_kafka import Consumer, TopicPartition

from evenhand.audit._kafka import KafkaLogs, partition_of
from evenhand.audit.auditor import audit
from evenhand.audit.findings import Findings
from evenhand.dev.processes import Process, Processes
from schemas import events as e
from schemas import inputs as i
from schemas.codec import decode
from schemas.entry import Entry
from schemas.envelope import Headers, position_of
from schemas.ids import DimensionName, OperationId
from schemas.journal import Position
from schemas.topics import Topic
from schemas.units import Millis, Tokens
from streams.shell.settings import Settings
from streams.shell.wiring import HALTED
from tests.support.asked import DOMAIN, POOL, heartbeat, join, result, start, submission
from tests.support.kafka import DEADLINE_S, Log, until

LONG_MS = Millis(600_000)
"""Members of a test do not age: what a silent member loses has tests of its own."""


class Tail:
    """Words of an output topic as they come, each position once in a partition (R166)."""

    def __init__(self, log: Log, topic: Topic) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": log.bootstrap,
                "group.id": "test",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 10,
            }
        )
        name = log.name(topic)
        partitions = self._consumer.list_topics(name, 10).topics[name].partitions
        self._consumer.assign([TopicPartition(name, number, 0) for number in partitions])
        self._last: dict[int, Position] = {}

    def new(self, wait_s: float = 0.02) -> Iterator[Any]:
        first = self._consumer.poll(wait_s)
        for message in () if first is None else (first, *self._consumer.consume(1_000, 0)):
            if message.error() is not None:
                continue
            position = position_of(cast("Headers", message.headers()))
            assert position is not None, "Expected a position on every public record"
            partition = message.partition() or 0
            last = self._last.get(partition)
            if last is None or position > last:
                self._last[partition] = position
                yield decode(message.value() or b"")

    def close(self) -> None:
        self._consumer.close()


class Worker:
    """A member that starts every grant at once and reports success, unless it is told to hold."""

    def __init__(self, log: Log, name: str = "m1", *, places: int = 4) -> None:
        self._log, self.name = log, name
        self._inbox = Tail(log, Topic.DELIVERIES)
        self.granted: list[e.GrantIssued] = []
        self.calls: list[OperationId] = []
        """What it was allowed to call the provider for."""
        self.refused: list[e.StartRefused] = []
        self.holds = False
        """Whether it keeps results back, as a long job does."""
        self.asks_twice = False
        """Whether it sends every start request a second time."""
        self.is_member = False
        self._attempts: dict[OperationId, e.GrantIssued] = {}
        log.send(Topic.MEMBERS, join(name, places=places))

    def step(self) -> None:
        for word in self._inbox.new():
            match word:
                case e.MemberSlotGranted() if word.member == self.name:
                    self.is_member = True
                    self._log.send(Topic.MEMBERS, heartbeat(self.name))
                case e.GrantIssued() if word.member == self.name:
                    self.granted.append(word)
                    self._attempts[word.operation] = word
                    for _ in range(1 + self.asks_twice):
                        self.ask(word)
                case e.StartAccepted() if word.member == self.name:
                    self.calls.append(word.operation)
                    if not self.holds:
                        self.finish(word.operation)
                case e.StartRefused() if word.member == self.name:
                    self.refused.append(word)
                case _:
                    pass

    def ask(self, grant: e.GrantIssued) -> None:
        self._log.send(Topic.STARTS, start(grant.tenant, **_attempt(grant)))

    def finish(self, operation: OperationId) -> None:
        grant = self._attempts[operation]
        used = {"prompt_tokens": Tokens(100), "output_tokens": Tokens(5)}
        self._log.send(Topic.RESULTS, result(grant.tenant, **_attempt(grant), **used))


def _role(process: Process) -> str | None:
    lines = process.log.read_text().splitlines() if process.log.exists() else ()
    told = [json.loads(line) for line in lines if line.startswith("{")]
    roles = [line["role"] for line in told if line.get("event") == "role"]
    return roles[-1] if roles else None


def _attempt(grant: e.GrantIssued) -> dict[str, Any]:
    names = ("operation", "incarnation", "attempt", "epoch", "member", "member_epoch")
    return {name: getattr(grant, name) for name in names}


class Rig:
    """One cell with real scheduler processes."""

    def __init__(self, log: Log, settings: Settings, processes: Processes, home: Path) -> None:
        self.log, self._settings = log, settings
        self._processes, self._home = processes, home
        self.capacity = Tail(log, Topic.CAPACITY)
        self.settled: Counter[OperationId] = Counter()
        self._settlements = Tail(log, Topic.SETTLEMENTS)
        self._started = 0

    def scheduler(self, data: str = "a", *, trap: str | None = None, **more: str) -> Process:
        """A process of its own; the same `data` is the same disk."""
        self._started += 1
        module = "streams" if trap is None else "tests.support.scheduler"
        env = {
            "EVENHAND_BOOTSTRAP": self._settings.bootstrap,
            "EVENHAND_PREFIX": self._settings.prefix,
            "EVENHAND_CELL": self._settings.cell,
            "EVENHAND_DATA_DIR": str(self._home / data),
            "TRAP": trap or "",
            **more,
        }
        name = f"scheduler-{self._started}-{data}"
        return self._processes.start(name, [sys.executable, "-m", module], env=env)

    def until_role(self, process: Process, *roles: str) -> None:
        """The role that it last wrote to its log is one of these."""
        until(lambda: _role(process) in roles, f"{process.name} to be {roles}")

    def until_halted(self, process: Process, why: str) -> None:
        """It ends by itself with the exit code of a halt, and says why."""
        until(lambda: not process.alive, f"{process.name} to halt")
        assert process.exit_code == HALTED, process.tail()
        assert why in process.tail(), process.tail()

    def tables(self, data: str = "a") -> Path:
        """Where that scheduler keeps its rows."""
        return self._settings.model_copy(update={"data_dir": self._home / data}).tables_dir

    def configure(
        self,
        *,
        slots: int = 100,
        cell: Mapping[str, Any] | None = None,
        domain: Mapping[str, Any] | None = None,
        pool: Mapping[str, Any] | None = None,
    ) -> None:
        """One domain and one pool; returns when an owner has activated them."""
        by: dict[str, Any] = {"author": "test", "reason": "test"}
        bounds = {"member_ttl_ms": LONG_MS, "join_by_ms": LONG_MS, **(cell or {})}
        dimensions = (
            i.DimensionConfig(
                name=DimensionName("slots"), unit="slots", kind="concurrency", limit=slots
            ),
        )
        wanted: dict[str, Any] = {
            "cell": i.CellConfig(tenant_defaults=i.TenantConfig(), **bounds),
            "domain": i.DomainConfig(**{"dimensions": dimensions, **(domain or {})}),
            "pool": i.PoolConfig(domains=(DOMAIN,), **(pool or {})),
        }
        names = {"cell": self._settings.cell, "domain": DOMAIN, "pool": POOL}
        for scope, body in wanted.items():
            self._propose(i.ConfigProposed(scope=scope, name=names[scope], **{scope: body}, **by))

    def _propose(self, proposal: i.ConfigProposed) -> None:
        self.log.send(Topic.CONTROL, proposal)

        def active() -> bool:
            for event in self.capacity.new():
                assert not isinstance(event, e.ConfigRefused), event
                if isinstance(event, e.ConfigActivated) and event.name == proposal.name:
                    return True
            return False

        until(active, f"{proposal.name} to be configured")

    def submit(self, count: int, *, tenant: str = "t1", first: int = 0) -> None:
        self.log.send(
            Topic.SUBMISSIONS, *(submission(tenant, n) for n in range(first, first + count))
        )

    def until(
        self,
        probe: Callable[[], bool],
        what: str,
        *workers: Worker,
        timeout_s: float = DEADLINE_S,
    ) -> None:
        """Wait while the workers do their work."""

        def stepped() -> bool:
            for worker in workers:
                worker.step()
            return probe()

        until(stepped, what, timeout_s)

    def until_settled(self, count: int, *workers: Worker, timeout_s: float = DEADLINE_S) -> None:
        """So many operations have their settlement, each one only."""

        def enough() -> bool:
            for event in self._settlements.new():
                if isinstance(event, e.ReservationSettled):
                    self.settled[event.operation] += 1
            return len(self.settled) >= count

        self.until(enough, f"{count} settlements", *workers, timeout_s=timeout_s)
        assert set(self.settled.values()) == {1}, "Expected one settlement for each operation"

    def entries(self) -> list[Entry]:
        """Everything on the journal that is an entry by its bytes, accepted or not."""
        words = [decode(record.value or b"") for record in self.log.read(Topic.JOURNAL)]
        return [word for word in words if isinstance(word, Entry)]

    def judged(self) -> Findings:
        """The audit, which shares no code with what it judges; nothing may be wrong or missing."""
        found = self.audit(strict=True)
        assert found.clean, found.findings[:5]
        return found

    def audit(self, *, strict: bool) -> Findings:
        """What the audit says of the cell as it is now."""
        logs = KafkaLogs(
            bootstrap=self.log.bootstrap, prefix=self.log.prefix, cell=self._settings.cell
        )
        return audit(logs, self._settings.cell, partition_of=partition_of, strict=strict)

    def close(self) -> None:
        self.capacity.close()
        self._settlements.close()
