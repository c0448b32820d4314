"""API processes of one cell, each with rows of its own, behind one port that tests cut and turn."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx

from api.auth import add_key
from evenhand import Http
from evenhand._transport import Link, Links
from evenhand.dev.node import free_port
from evenhand.dev.processes import Process, Processes
from schemas import inputs as i
from schemas.bodies import Role
from schemas.ids import MemberId
from streams.shell.settings import Settings
from tests.chaos.proxy import Port
from tests.support.kafka import until


class Doors:
    """Whoever asks at `url` reaches the process that was opened last."""

    def __init__(self, settings: Settings, processes: Processes, home: Path) -> None:
        self._settings, self._processes, self._home = settings, processes, home
        self._keys = home / "keys.jsonl"
        self.worker_key = add_key(self._keys, role=Role.WORKER)
        self.tenant_key = add_key(self._keys, role=Role.TENANT, tenant="t1", user="u1")
        self._opened = 0
        self.port = Port(free_port())
        self.open("first")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port.number}"

    @property
    def links(self) -> Http:
        return Http(self.url, self.worker_key)

    def open(self, data: str) -> None:
        """A process of its own; the same `data` is the same disk."""
        self._opened += 1
        number = free_port()
        env = {
            "EVENHAND_BOOTSTRAP": self._settings.bootstrap,
            "EVENHAND_PREFIX": self._settings.prefix,
            "EVENHAND_CELL": self._settings.cell,
            "EVENHAND_DATA_DIR": str(self._home / f"api-{data}"),
            "EVENHAND_KEYS_FILE": str(self._keys),
            "EVENHAND_API_PORT": str(number),
        }
        name = f"api-{self._opened}-{data}"
        self.process: Process = self._processes.start(name, [sys.executable, "-m", "api"], env=env)
        until(lambda: _ready(number), f"{name} to be ready")
        self.port._target = number

    def kill(self) -> None:
        """The process that was opened last gets SIGKILL."""
        self.process.kill()


def _ready(number: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{number}/readyz", timeout=1).is_success
    except httpx.TransportError:
        return False


class Ear:
    """Links that keep what was heard through them, and lose heartbeats while told so."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self.heard: list[Any] = []
        self.lossy = False
        self.member: str | None = None

    def link(self, member: MemberId) -> Link:
        self._link = self._links.link(member)
        self.member = member
        return self

    def send(self, word: i.Input, durable: Callable[[], None] | None = None) -> None:
        if not (self.lossy and isinstance(word, i.HeartbeatReported)):
            self._link.send(word, durable)

    def receive(self, wait_s: float) -> Sequence[Any]:
        found = self._link.receive(wait_s)
        self.heard += found
        return found

    def close(self, wait_s: float) -> None:
        self._link.close(wait_s)
