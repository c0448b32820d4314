"""The API as a process, beside a real scheduler on a real broker."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.auth import add_key
from schemas.bodies import Role
from schemas.codec import decode
from schemas.topics import TOPICS, Topic
from streams.shell.settings import Settings
from tests.support.door import SUBMIT
from tests.support.kafka import Log, until
from tests.support.told import Told
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
        return httpx.request(method, f"{self.url}{path}", headers=headers, timeout=30, **more)

    def submit(self, key: str, *, wait_ms: int = 10_000, **body: Any) -> httpx.Response:
        headers = {"Idempotency-Key": key, "Evenhand-Wait-Admitted": str(wait_ms)}
        return self.ask("POST", "/v1/operations", json={**SUBMIT, **body}, headers=headers)

    def configure(self) -> None:
        """A domain `d`, a pool `p` and a member with two places in it."""
        dimensions = (
            i.DimensionConfig(
                name="tokens", unit="tokens", kind="sliding", limit=1000, window_ms=60_000
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


@pytest.fixture
def cell(begun: Settings, log: Log, tmp_path: Path) -> Iterator[Cell]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    keys = tmp_path / "keys.jsonl"
    made = Cell(
        log=log,
        environment={
            "EVENHAND_BOOTSTRAP": begun.bootstrap,
            "EVENHAND_PREFIX": begun.prefix,
            "EVENHAND_DATA_DIR": str(tmp_path),
            "EVENHAND_API_PORT": str(port),
        },
        url=f"http://127.0.0.1:{port}",
        keys={
            "acme": add_key(keys, role=Role.TENANT, tenant="acme", user="u"),
            "bolt": add_key(keys, role=Role.TENANT, tenant="bolt", user="u"),
        },
        programs=[],
    )
    yield made
    for program in made.programs:
        program.kill()
        program.wait(STOP_S)


def join(log: Log) -> None:
    """A member with two places."""
    named = {"member": "m1", "member_epoch": "e1"}
    log.send(Topic.MEMBERS, i.JoinRequested(**named, pool="p", places=2))
    log.send(Topic.MEMBERS, i.HeartbeatReported(**named))


def test_an_operation_is_admitted_granted_and_settled_before_the_readers_eyes(cell: Cell) -> None:
    cell.start("streams")
    cell.start_api()
    cell.configure()
    reply = cell.submit("k")
    assert (reply.status_code, reply.json()["state"]) == (202, "admitted")
    location = reply.headers["Location"]
    position = {"Evenhand-At-Least": reply.headers["Evenhand-Position"]}
    assert cell.ask("GET", location, headers=position).json()["place"] == 1

    join(cell.log)
    until(lambda: cell.ask("GET", location).json()["state"] == "granted", "a grant")
    (granted,) = [decode(got.value or b"") for got in cell.log.read(Topic.GRANTS)]
    (use, slots) = cell.ask("GET", "/v1/budgets/d").json()["items"][0]["dimensions"]
    assert (use["held"], use["counted"], slots["free"]) == (300, 300, 3)

    attempt = {
        name: getattr(granted, name)
        for name in ("tenant", "operation", "incarnation", "attempt", "epoch")
    }
    named = {**attempt, "member": "m1", "member_epoch": "e1"}
    cell.log.send(Topic.STARTS, i.StartRequested(**named))
    until(lambda: cell.ask("GET", location).json()["state"] == "started", "a start")
    cell.log.send(
        Topic.RESULTS,
        i.ResultReported(**named, outcome="success", prompt_tokens=200, output_tokens=40),
    )
    until(lambda: cell.ask("GET", location).json()["state"] == "succeeded", "a result")
    (use, slots) = cell.ask("GET", "/v1/budgets/d").json()["items"][0]["dimensions"]
    assert (use["held"], use["in_use"], use["counted"], slots["free"]) == (0, 0, 300, 4)
    tenant = cell.ask("GET", "/v1/tenants/acme").json()
    assert [tenant[name] for name in ("offered", "succeeded", "tokens_used")] == [1, 1, 240]


def test_repeats_over_http_and_kafka_are_one_admission(cell: Cell) -> None:
    cell.start("streams")
    cell.start_api()
    cell.configure()
    assert cell.submit("k").json()["state"] == "admitted"
    ((partition, offset),) = cell.log.send(Topic.SUBMISSIONS, Told("k").submitted)
    written = {"Evenhand-At-Least": f"submissions:{partition}:{offset}"}
    tenant = cell.ask("GET", "/v1/tenants/acme", headers=written).json()
    assert (tenant["admitted"], tenant["duplicates"]) == (1, 1)
    repeat = cell.submit("k")
    assert (repeat.status_code, repeat.json()["state"]) == (200, "waiting")
    assert cell.submit("k", prompt_tokens=199).json()["code"] == "idempotency-mismatch"


def test_the_owners_refusals_reach_the_client(cell: Cell) -> None:
    cell.start("streams")
    cell.start_api()
    cell.configure()
    for key, body, status, code in (
        ("big", {"prompt_tokens": 5_000}, 413, "never-fits"),
        ("pool", {"pool": "nowhere"}, 422, "unknown-pool"),
        ("none", {"start_within_ms": None}, 422, "deadline-missing"),
        ("open", {"output_tokens_max": None}, 422, "output-ceiling-missing"),
    ):
        reply = cell.submit(key, **body)
        assert (reply.status_code, reply.json()["code"]) == (status, code)


def test_with_no_scheduler_a_submission_is_received_and_admitted_later(cell: Cell) -> None:
    cell.start_api()
    reply = cell.submit("k", wait_ms=100)
    assert (reply.status_code, reply.json()["state"]) == (202, "received")
    assert cell.ask("GET", reply.headers["Location"]).status_code == 404
    written = {"Evenhand-At-Least": reply.headers["Evenhand-Input"]}
    assert cell.ask("GET", "/v1/tenants", headers=written).json()["code"] == "behind"
    cell.start("streams")
    until(lambda: cell.ask("GET", reply.headers["Location"]).status_code == 200, "an answer")


def test_what_was_acknowledged_is_there_after_a_kill(cell: Cell) -> None:
    cell.start("streams")
    api = cell.start_api()
    cell.configure()
    location = cell.submit("k").headers["Location"]
    api.kill()
    api.wait(STOP_S)
    cell.programs.remove(api)
    cell.start_api()
    assert cell.ask("GET", location).json()["state"] == "waiting"


def test_a_second_api_on_the_same_disk_says_so_and_leaves_the_first_alone(
    cell: Cell, capfd: pytest.CaptureFixture[str]
) -> None:
    cell.start_api()
    second = cell.start("api", EVENHAND_API_PORT="0")
    assert second.wait(STOP_S) == 1
    said = capfd.readouterr().err
    assert "not started: ViewsInUse: Expected" in said
    assert "EVENHAND_DATA_DIR" in said
    assert "Traceback" not in said
    assert cell.ask("GET", "/v1/tenants").status_code == 200


def test_a_recreated_journal_stops_the_api_and_keeps_it_from_starting_again(
    cell: Cell, capfd: pytest.CaptureFixture[str]
) -> None:
    api = cell.start_api()
    journal = cell.log.name(Topic.JOURNAL)
    cell.log.delete(journal)
    cell.log.create(journal, TOPICS[Topic.JOURNAL].all_settings)
    assert api.wait(STOP_S) == 1
    assert "halted: JournalTrimmed: Expected" in (said := capfd.readouterr().err)
    assert "Traceback" not in said
    again = cell.start("api")
    assert again.wait(STOP_S) == 1
    assert "not started: JournalReplaced: Expected" in (said := capfd.readouterr().err)
    assert "Traceback" not in said


def test_the_api_stops_when_it_is_asked_to(cell: Cell) -> None:
    api = cell.start_api()
    assert cell.stop(api) == 0


def test_without_a_keys_file_the_api_does_not_start(cell: Cell, tmp_path: Path) -> None:
    api = cell.start("api", EVENHAND_KEYS_FILE=str(tmp_path / "nowhere"))
    assert api.wait(STOP_S) == 1


def test_without_a_journal_the_api_says_what_is_missing(cell: Cell) -> None:
    api = cell.start("api", EVENHAND_CELL="nowhere")
    assert api.wait(STOP_S) == 1
