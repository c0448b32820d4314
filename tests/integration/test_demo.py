"""The demo from outside: a slice of the play, a provider that allows less, and rude endings."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import psutil
import pytest

from evenhand.cli.output import Exit
from evenhand.dev.broker import Broker

SETUP_S = 90.0
GONE_S = 20.0
KEYS = {
    "submissions",
    "admitted",
    "rejected",
    "expired",
    "settled",
    "lost",
    "doubled",
    "overshoot",
    "first_grant_after_kill_ms",
    "budget_used",
    "backlogged_ms",
    "tenants",
    "audit",
}
TENANT_KEYS = {
    "weight",
    "share",
    "entitled",
    "wait_ms_p50",
    "wait_ms_p95",
    "fifo_wait_ms_p50",
    "fifo_wait_ms_p95",
}


class Playing:
    """A demo in a process of its own, and everything that it started."""

    def __init__(self, out: Path, *options: str) -> None:
        out.mkdir(parents=True, exist_ok=True)
        self.out = out
        self._log = out / "demo.log"
        argv = [sys.executable, "-m", "evenhand", "demo", "--out", str(out), *options]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True)

    @property
    def said(self) -> str:
        return self._log.read_text()

    def wait_until(self, words: str) -> None:
        ends_at = time.monotonic() + SETUP_S
        while words not in self.said:
            assert self.process.poll() is None, f"Expected a demo, but it ended:\n{self.said}"
            assert time.monotonic() < ends_at, f"Expected {words!r}:\n{self.said}"
            time.sleep(0.1)

    def started(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def summary(self) -> dict:
        return json.loads((self.out / "summary.json").read_text())


@pytest.fixture(autouse=True)
def _java_or_reason(broker: Broker) -> Broker:
    """Where no broker can start, the demo cannot either."""
    return broker


@pytest.fixture
def play(tmp_path: Path) -> Iterator:
    made: list[Playing] = []

    def begin(*options: str) -> Playing:
        made.append(Playing(tmp_path / "demo", *options))
        return made[-1]

    yield begin
    for one in made:
        one.process.kill()
        one.process.wait()


def test_a_slice_of_the_play_loses_nothing_and_stays_within_the_provider_s_limits(play) -> None:
    demo = play("--seconds", "30")
    demo.wait_until("Playing")
    programs = demo.started()
    assert demo.process.wait(240) == Exit.DONE, demo.said
    assert psutil.wait_procs(programs, GONE_S)[1] == []
    found = demo.summary()
    assert found.keys() == KEYS
    assert all(tenant.keys() == TENANT_KEYS for tenant in found["tenants"].values())
    assert found["submissions"] == found["admitted"] == found["settled"] == 2519
    assert (found["rejected"], found["expired"], found["lost"], found["doubled"]) == (0, 0, 0, 0)
    assert found["overshoot"] == {"calls": 0, "tokens": 0}
    assert found["audit"] == []
    assert found["first_grant_after_kill_ms"] is not None
    assert 0 < found["budget_used"] <= 1
    assert sum(t["share"] for t in found["tenants"].values()) == pytest.approx(1, abs=0.001)
    ET.parse(demo.out / "shares.svg")


def test_a_provider_that_allows_half_turns_the_verdict_red(play) -> None:
    demo = play("--seconds", "2", "--provider-percent", "50")
    assert demo.process.wait(180) == Exit.DIFFERENCE, demo.said
    assert demo.summary()["overshoot"]["calls"] > 0
    assert not json.loads((demo.out / "verdict.json").read_text())["clean"]
    assert "OVERSHOOT" in demo.said


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, Exit.INTERRUPTED), (signal.SIGKILL, -9)]
)
def test_a_demo_that_is_ended_in_the_middle_leaves_no_process_behind(play, number, code) -> None:
    demo = play("--seconds", "30")
    demo.wait_until("Playing")
    programs = demo.started()
    assert len(programs) >= 7
    demo.process.send_signal(number)
    assert demo.process.wait(GONE_S * 2) == code, demo.said
    assert psutil.wait_procs(programs, GONE_S)[1] == []
