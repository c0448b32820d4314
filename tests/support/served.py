"""One cell with its programs as real processes, asked over HTTP."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from api.auth import add_key
from schemas.bodies import Role
from schemas.codec import decode
from schemas.topics import Topic
from streams.shell.settings import Settings
from tests.support.door import SUBMIT
from tests.support.kafka import Log, until
from tests.support.words import i

STOP_S = 20.0


@dataclass
class Cell:
    """One cell with its programs, and somebody who asks."""

    log: Log
    environment: dict[str, str]
    url: str
    keys: dict[str, str]
    programs: list[subprocess.Popen[bytes]]

    def start(self, module: str, **more: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", module]
        program = subprocess.Popen(command, env={**os.environ, **self.environment, **more})
        self.programs.append(program)
        return program

    def start_api(self) -> subprocess.Popen[bytes]:
        program = self.start("api")
        until(self._ready, "the API to be ready")
        return program

    def _ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz").status_code == 200
        except httpx.TransportError:
            return False

    def ask(self, method: str, path: str, *, key: str = "acme", **more: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.keys[key]}", **more.pop("headers", {})}
        return httpx.request(method, f"{self.url}{path}", headers=headers, timeout=60, **more)

    def submit(self, key: str, *, wait_ms: int = 10_000, **body: Any) -> httpx.Response:
        headers = {"Idempotency-Key": key, "Evenhand-Wait-Admitted": str(wait_ms)}
        return self.ask("POST", "/v1/operations", json={**SUBMIT, **body}, headers=headers)

    def configure(self) -> None:
        """A domain `d`, a pool `p` and a member with two places in it."""
        dimensions = (
            i.DimensionConfig(
                name="tokens",
                unit="tokens",
                kind="sliding",
                limit=1000,
                window_ms=60_000,
                pace_percent=100,
            ),
            i.DimensionConfig(name="slots", unit="slots", kind="concurrency", limit=4),
        )
        common = {"author": "test", "reason": "test"}
        self.log.send(
            Topic.CONTROL,
            i.ConfigProposed(
                scope="domain", name="d", domain=i.DomainConfig(dimensions=dimensions), **common
            ),
            i.ConfigProposed(scope="pool", name="p", pool=i.PoolConfig(), **common),
        )
        until(lambda: self.ask("GET", "/v1/budgets/d").status_code == 200, "the domain to be known")

    def stop(self, program: subprocess.Popen[bytes]) -> int:
        program.send_signal(signal.SIGTERM)
        code = program.wait(STOP_S)
        self.programs.remove(program)
        return code


@contextmanager
def served(begun: Settings, log: Log, path: Path) -> Iterator[Cell]:
    """A begun cell; its programs end with it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    keys = path / "keys.jsonl"
    made = Cell(
        log=log,
        environment={
            "EVENHAND_BOOTSTRAP": begun.bootstrap,
            "EVENHAND_PREFIX": begun.prefix,
            "EVENHAND_DATA_DIR": str(path),
            "EVENHAND_API_PORT": str(port),
        },
        url=f"http://127.0.0.1:{port}",
        keys={
            "acme": add_key(keys, role=Role.TENANT, tenant="acme", user="u"),
            "bolt": add_key(keys, role=Role.TENANT, tenant="bolt", user="u"),
            "operator": add_key(keys, role=Role.OPERATOR),
        },
        programs=[],
    )
    try:
        yield made
    finally:
        for program in made.programs:
            program.kill()
            program.wait(STOP_S)


def attempt_of(log: Log) -> dict[str, Any]:
    """What names the newest attempt that was granted to the member."""
    granted: Any = [decode(got.value or b"") for got in log.read(Topic.GRANTS)][-1]
    names = ("tenant", "operation", "incarnation", "attempt", "epoch", "member", "member_epoch")
    return {name: getattr(granted, name) for name in names}


def join(log: Log) -> None:
    """A member with two places."""
    named = {"member": "m1", "member_epoch": "e1"}
    log.send(Topic.MEMBERS, i.JoinRequested(**named, pool="p", places=2))
    log.send(Topic.MEMBERS, i.HeartbeatReported(**named))
