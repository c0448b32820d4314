"""All programs of the demo, each a process of its own, and which of them owns the cell."""

import re
import secrets
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx

from api.auth import add_key
from evenhand._kafka import KafkaSender
from evenhand._transport import Kafka
from evenhand.dev.beginning import begin
from evenhand.dev.demo_cell import (
    CELL,
    OVER_API,
    SPEED_UP,
    USER,
    WEIGHTS,
    WORKERS,
    proposals,
)
from evenhand.dev.judge import Limits
from evenhand.dev.node import free_port
from evenhand.dev.processes import Process, Processes
from schemas import bodies, capacity_bodies
from streams.shell.settings import Settings

READY_S = 60.0
"""Bound of every wait of the set-up: some seconds here, more on a busy machine."""
SCHEDULERS = ("scheduler-1", "scheduler-2")
_OWNS = re.compile(r'^evenhand_role\{[^}]*role="owner"[^}]*\} 1\.0$', re.MULTILINE)


class Unanswered(Exception):
    """A program did not answer in time or not with what was asked; ask again."""


class Programs:
    """Topics, configuration, two schedulers, API, provider and workers around one broker."""

    def __init__(self, processes: Processes, bootstrap: str, *, data: Path, out: Path) -> None:
        """Nothing starts here.

        Args:
            processes: where they start, and stop.
            bootstrap: the broker.
            data: for tables, views and keys; may be removed afterwards.
            out: for what the provider writes.
        """
        self.bootstrap = bootstrap
        self.prefix = f"demo-{secrets.token_hex(4)}"
        self.record, self.verdict = out / "provider.jsonl", out / "verdict.json"
        self._processes = processes
        self._data = data
        self._ports = {name: free_port() for name in (*SCHEDULERS, "api", "provider")}
        self._running: dict[str, Process] = {}
        self._http = httpx.Client(timeout=2.0)
        keys_file = data / "keys.jsonl"
        self.tenant_keys = {
            tenant: add_key(keys_file, role=bodies.Role.TENANT, tenant=tenant, user=USER)
            for tenant in OVER_API
        }
        self._auditor_key = add_key(keys_file, role=bodies.Role.AUDITOR)

    @property
    def kafka(self) -> Kafka:
        """The cell's topics."""
        return Kafka(bootstrap=self.bootstrap, prefix=self.prefix, cell=CELL)

    def url(self, name: str) -> str:
        """Where a program answers over HTTP."""
        return f"http://127.0.0.1:{self._ports[name]}"

    def start(self, limits: Limits) -> None:
        """Start everything and wait until all of it is ready.

        Args:
            limits: of the provider; what Evenhand believes they are stands in `demo_cell`.
        """
        settings = Settings(bootstrap=self.bootstrap, prefix=self.prefix)
        begin(settings, self._processes, READY_S)
        self._start_scheduler(SCHEDULERS[0])
        self._until(lambda: self.owner() == SCHEDULERS[0], "an owner")
        self._start_scheduler(SCHEDULERS[1])
        self._configure()
        self._start_provider(limits)
        self._start("api", "-m", "api", EVENHAND_API_PORT=str(self._ports["api"]))
        self._until(lambda: self._answers("api", "/readyz"), "a ready API")
        self._until(lambda: self._answers("provider", "/verdict"), "a provider")
        self._until(lambda: self._answers(SCHEDULERS[1], "/metrics"), "a standby")
        self._until(self._is_configured, "the configuration to hold")
        for number in range(1, WORKERS + 1):
            name = f"worker-{number}"
            self._start(name, "-m", "evenhand.dev.demo_worker", self.url("provider"), name)
        self._until(lambda: self._members() == ["active"] * WORKERS, "two members")

    def owner(self) -> str | None:
        """The scheduler that owns the cell, by its own metrics; None while nobody does."""
        for name in SCHEDULERS:
            if name in self._running and self._running[name].alive:
                try:
                    metrics = self._http.get(f"{self.url(name)}/metrics").text
                except httpx.HTTPError:
                    continue
                if _OWNS.search(metrics):
                    return name
        return None

    def kill(self, name: str) -> None:
        """SIGKILL."""
        self._running.pop(name).kill()

    def end_work(self) -> None:
        """Let the workers leave and the provider write its verdict; the topics are quiet then."""
        for name in [name for name in self._running if name.startswith("worker")]:
            self._running.pop(name).terminate()
        self._until(lambda: "active" not in self._members(), "the workers to have left")
        self._running.pop("provider").terminate()

    def tenants(self) -> capacity_bodies.Tenants:
        """What the API says of every tenant."""
        return capacity_bodies.Tenants.model_validate(self._ask("/tenants"))

    def queues(self, tenant: str) -> capacity_bodies.Queues:
        """What the API says of a tenant's queues."""
        return capacity_bodies.Queues.model_validate(self._ask(f"/tenants/{tenant}/queue"))

    def budget(self) -> capacity_bodies.Budgets:
        """What the API says of the domain's budget."""
        return capacity_bodies.Budgets.model_validate(self._ask("/budgets"))

    def judgement(self) -> dict[str, Any]:
        """What the provider says so far."""
        found: dict[str, Any] = self._get(f"{self.url('provider')}/verdict")
        return found

    def close(self) -> None:
        """Let go of connections; the processes stop with their stage."""
        self._http.close()

    def _configure(self) -> None:
        sender = KafkaSender(self.kafka)
        for proposal in proposals():
            sender.send(proposal, None)
        assert sender.flush(READY_S), "Expected the broker to take the configuration"

    def _start_scheduler(self, name: str) -> None:
        self._start(
            name,
            "-m",
            "streams",
            EVENHAND_DATA_DIR=str(self._data / name),
            EVENHAND_METRICS_PORT=str(self._ports[name]),
        )

    def _start_provider(self, limits: Limits) -> None:
        options = {
            "port": self._ports["provider"],
            "requests": limits.requests,
            "tokens": limits.tokens,
            "slots": limits.slots,
            "window-ms": limits.window_ms,
            "speed-up": SPEED_UP,
            "record": self.record,
            "verdict": self.verdict,
        }
        arguments = [part for name, value in options.items() for part in (f"--{name}", str(value))]
        self._start("provider", "-m", "evenhand.dev.provider", *arguments)

    def _start(self, name: str, *arguments: str, **settings: str) -> None:
        environment: Mapping[str, str] = {
            "EVENHAND_BOOTSTRAP": self.bootstrap,
            "EVENHAND_PREFIX": self.prefix,
            "EVENHAND_CELL": CELL,
            "EVENHAND_DATA_DIR": str(self._data),
            **settings,
        }
        argv = [sys.executable, *arguments]
        self._running[name] = self._processes.start(name, argv, env=environment)

    def _answers(self, name: str, path: str) -> bool:
        try:
            return self._http.get(f"{self.url(name)}{path}").is_success
        except httpx.HTTPError:
            return False

    def _is_configured(self) -> bool:
        tenants, budgets = self.tenants().items, self.budget().items
        weights = {tenant.tenant: tenant.weight for tenant in tenants}
        return weights == WEIGHTS and bool(budgets)

    def _members(self) -> list[str]:
        found = capacity_bodies.Members.model_validate(self._ask("/members"))
        return [member.state for member in found.items]

    def _ask(self, path: str) -> Any:
        return self._get(f"{self.url('api')}/v1{path}", Authorization=f"Bearer {self._auditor_key}")

    def _get(self, url: str, **headers: str) -> Any:
        try:
            return self._http.get(url, headers=headers).raise_for_status().json()
        except httpx.HTTPError as error:
            raise Unanswered(f"{url}: {error!r}") from error

    def _until(self, probe: Callable[[], bool], what: str) -> None:
        self._processes.wait_until(probe, what, READY_S)
