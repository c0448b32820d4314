"""Everything that a cell consists of, as real processes, and who judges it in the end.

Two schedulers, workers of the shipped SDK, a provider with a record of its own, a reconciler that
asks it. Schedulers and workers reach the broker through ports that can be cut.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from evenhand.audit.findings import Findings
from evenhand.dev.node import LOOPBACK, free_port
from evenhand.dev.play import prompts
from evenhand.dev.processes import Process, Processes
from schemas import events as e
from schemas.codec import decode
from schemas.ids import OperationId, provider_key
from schemas.topics import Topic
from schemas.units import Millis
from streams.shell.settings import Settings
from streams.shell.wiring import apply_topics
from tests.chaos.cut_broker import CutBroker
from tests.chaos.in_time import late
from tests.chaos.proxy import Port
from tests.support.asked import DOMAIN, id_of, submission
from tests.support.kafka import PARTITIONS, Log, until
from tests.support.rig import Rig, Tail

SLOTS = 6
LEASE_MS = Millis(1_200)
SEND_WITHIN_MS = 1_000
HOLD_MS = Millis(12_000)
"""Longer than the provider's slowest call by far: it must not be what resolves anything."""
SPEED_UP = 10
PROMPTS = 50
"""Recorded requests that are played again and again."""
SETTLED_IN_S = 60.0
ENDS = (
    e.OperationCancelled,
    e.OperationExpired,
    e.OperationDeadLettered,
    e.OperatorActionNeeded,
)
KNOWN_ENDS = frozenset(("success", "terminal", "completed", "failed"))


class World:
    """A begun and configured cell with all its programs."""

    def __init__(self, broker: CutBroker, processes: Processes, home: Path) -> None:
        self._broker, self._processes, self._home = broker, processes, home
        self._prefix = f"c{uuid4().hex[:12]}"
        self.log = Log(broker.bootstrap, prefix=self._prefix)
        settings = Settings(
            bootstrap=broker.bootstrap, prefix=self._prefix, data_dir=home, partitions=PARTITIONS
        )
        assert apply_topics(settings)
        self.rig = Rig(self.log, settings, processes, home)
        self.ports, self.clock = broker.ports, broker.clock
        self.schedulers = [self.scheduler("a"), self.scheduler("b")]
        self.configure()
        self._provider_port = free_port()
        self.way: Port | None = None
        """To the provider, if it is not the short one."""
        self._prompts = prompts()
        self._record = home / "record.jsonl"
        self._provider()
        self._asker = self._reconciler()
        self.workers: dict[str, Process] = {}
        self.worker_env: dict[str, str] = {}
        """What every worker is told beside its own."""
        self.submitted: dict[OperationId, str] = {}
        """Operation -> effect class."""
        self.ended: dict[OperationId, type] = {}
        self._decisions = Tail(self.log, Topic.DECISIONS)
        self._phase: Counter[str] = Counter()

    def configure(self, *, standing: bool = False, **domain: Any) -> None:
        """Short spans, so that every fault has its effect soon; maybe starts that stand."""
        self._call_within_ms = domain.get("send_within_ms", SEND_WITHIN_MS)
        self._call_within_ms += domain.get("transit_ms", 0)
        self.rig.configure(
            slots=SLOTS,
            cell={"member_ttl_ms": Millis(1_500), "join_by_ms": Millis(5_000)},
            domain={
                "claim_by_ms": Millis(4_000),
                "send_within_ms": Millis(SEND_WITHIN_MS),
                "retry_backoff_ms": Millis(200),
                "unknown_hold_ms": HOLD_MS,
                **domain,
            },
            pool={"lease_ms": LEASE_MS, "standing": standing},
        )

    def scheduler(self, data: str) -> Process:
        through = self._broker.through("schedulers")
        return self.rig.scheduler(data, EVENHAND_BOOTSTRAP=through)

    def worker(self, member: str, **env: str) -> Process:
        """A life of a worker; the same name again is a new life."""
        argv = [sys.executable, "-m", "tests.chaos.worker", self.provider_url, member]
        told = self._program_env("workers") | self.worker_env | env
        self.workers[member] = self._processes.start(f"worker-{member}", argv, env=told)
        return self.workers[member]

    def submit(
        self, count: int, effect: str, *, ask: str = "", tenant: str = "t1", **more: Any
    ) -> None:
        """Operations whose provider behaves as `ask` says (evenhand.dev.provider)."""
        words = []
        for n in range(len(self.submitted), len(self.submitted) + count):
            reference = f"code/{n % PROMPTS}"
            said = {"effect": effect, "prompt_tokens": self._prompts[reference].prompt_tokens}
            said |= {"payload_ref": reference + (f"?{ask}" if ask else ""), **more}
            words.append(submission(tenant, n, **said))
            self.submitted[id_of(tenant, n)] = effect
        self.log.send(Topic.SUBMISSIONS, *words)

    @contextmanager
    def slow_way(self, delay_s: Callable[[], float]) -> Iterator[None]:
        """Workers that begin now reach the provider by a way that takes so long for each chunk."""
        with Port(self._provider_port, delay_s=delay_s) as self.way:
            yield
        self.way = None

    @property
    def provider_url(self) -> str:
        """Where workers call it, maybe by a long way."""
        port = self._provider_port if self.way is None else self.way.number
        return f"http://{LOOPBACK}:{port}"

    def record(self) -> list[dict[str, Any]]:
        """The provider's own record, a line for each call that arrived."""
        return [json.loads(line) for line in self._record.read_text().splitlines()]

    def look(self) -> None:
        """Read on in what was decided."""
        for event in self._decisions.new():
            self._phase[type(event).__name__] += 1
            said = getattr(event, "outcome", None) or getattr(event, "verdict", None)
            known = isinstance(event, e.ResultRecorded | e.OutcomeReconciled)
            if isinstance(event, ENDS) or (known and said in KNOWN_ENDS):
                self.ended[event.operation] = type(event)

    def count(self, kind: type) -> int:
        """Decisions of a kind so far."""
        self.look()
        return self._phase[kind.__name__]

    def until_ended(self, timeout_s: float = SETTLED_IN_S) -> None:
        """Every submission has its end."""

        def all_ended() -> bool:
            self.look()
            return len(self.ended) >= len(self.submitted)

        until(all_ended, f"all of {len(self.submitted)} operations to end", timeout_s)

    def judged(self) -> Findings:
        """The audit and the provider's own record agree that nothing went wrong."""
        audited = partial(self.rig.audit, strict=False)
        self.rig.until(
            lambda: audited().reservations["open"] == 0,
            "every reservation to be closed",
            timeout_s=30.0,
        )
        for program in (*self.workers.values(), self._asker):
            program.terminate()  # who says nothing any more leaves no input behind
        self.rig.until(lambda: audited().pending["inputs"] == 0, "every input to be taken")
        found = self.rig.judged()
        assert found.reservations["open"] == 0, found.reservations
        calls = self.calls()
        starts = Counter(
            provider_key(event.operation, event.incarnation)
            for event in self._events()
            if isinstance(event, e.StartAccepted)
        )
        for key, count in calls.items():
            assert count <= starts[key], f"Expected at most {starts[key]} calls of {key}"
        for operation, effect in self.submitted.items():
            key = provider_key(operation, 1)
            several = {k: n for k, n in calls.items() if k.startswith(operation.hex()) and n > 1}
            assert effect != "unsafe" or not several, f"Expected one call of {key}: {several}"
        journal = self.log.read(Topic.JOURNAL)
        assert list(late(journal, self.record(), self._call_within_ms)) == []
        return found

    def calls(self) -> Counter[str]:
        """Calls in the provider's record by idempotency key."""
        lines = self.record()
        assert not any(line["over"] for line in lines), "Expected no call above a limit"
        return Counter(line["idempotency_key"] for line in lines)

    def _events(self) -> list[Any]:
        return [decode(one.body) for entry in self.rig.entries() for one in entry.events]

    def _program_env(self, kind: str) -> dict[str, str]:
        return {
            "EVENHAND_BOOTSTRAP": self._broker.through(kind),
            "EVENHAND_PREFIX": self._prefix,
            "EVENHAND_CELL": "main",
        }

    def _provider(self) -> None:
        options = {"port": self._provider_port, "requests": 10**6, "tokens": 10**9}
        options |= {"slots": SLOTS, "window-ms": 60_000, "speed-up": SPEED_UP}
        argv = [sys.executable, "-m", "evenhand.dev.provider"]
        argv += [f"--{name}={value}" for name, value in options.items()]
        argv += [f"--record={self._record}", f"--verdict={self._home / 'verdict.json'}"]
        self._processes.start("provider", argv)
        until(self._record.exists, "the provider to listen")

    def _reconciler(self) -> Process:
        argv = [sys.executable, "-m", "evenhand.dev.reconciler", self.provider_url, DOMAIN]
        return self._processes.start("reconciler", argv, env=self._program_env("workers"))

    def close(self) -> None:
        self._decisions.close()
        self.rig.close()
