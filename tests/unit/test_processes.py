"""Children start, are watched, and end with their launcher, whatever ends that."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evenhand.dev.processes import Died, NotReady, Process, Processes, run


def python(text: str) -> list[str]:
    return [sys.executable, "-c", text]


SLEEPER = ["sleep", "60"]

DEAF = python("""
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", flush=True)
time.sleep(60)
""")

# Writes when it was asked to leave.
POLITE = python("""
import signal, sys, time
def leave(*_):
    print("asked at", time.monotonic_ns(), flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, leave)
print("here", flush=True)
time.sleep(60)
""")

# Starts a program that never asks whether its parent is still there.
PARENT = python("""
import subprocess
child = subprocess.Popen(["sleep", "60"])
print(child.pid, flush=True)
child.wait()
""")

# Argument 1: a folder for logs. Starts two programs and says who they are.
LAUNCHER = f"""
import sys, time
from pathlib import Path
from evenhand.dev.processes import Processes
logs = Path(sys.argv[1])
with Processes(logs) as stage:
    first = stage.start("first", {POLITE!r})
    second = stage.start("second", {PARENT!r})
    stage.wait_until(lambda: "here" in first.tail() and second.tail() != "", "both", 20)
    print(first.pid, second.pid, second.tail(), flush=True)
    if sys.argv[2] == "pause":
        first.pause()
    time.sleep(60)
"""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Processes]:
    with Processes(tmp_path) as processes:
        yield processes


def until(condition: Callable[[], bool]) -> None:
    ends_at = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < ends_at, "Expected a condition within 10 s"
        time.sleep(0.01)


def state_of(pid: int) -> str:
    """What `ps` calls its state; empty if there is no such process."""
    asked = ["ps", "-o", "stat=", "-p", str(pid)]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def is_gone(pid: int) -> bool:
    return state_of(pid)[:1] in {"", "Z"}  # Z: ended; whoever adopted it has not looked yet


def launch(logs: Path, act: str = "") -> tuple[subprocess.Popen[str], list[int]]:
    argv = [sys.executable, "-c", LAUNCHER, str(logs), act]
    launcher = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert launcher.stdout is not None
    return launcher, [int(pid) for pid in launcher.stdout.readline().split()]


def finish(launcher: subprocess.Popen[str]) -> int:
    with launcher:
        return launcher.wait(20)


def test_a_program_gets_its_environment_and_writes_to_its_own_log(
    stage: Processes, tmp_path: Path
) -> None:
    program = stage.start(
        "teller", ["sh", "-c", "echo $EVENHAND_CELL; echo oops >&2"], env={"EVENHAND_CELL": "blue"}
    )
    assert program.wait(10) == 0
    assert (tmp_path / "teller.log").read_text() == "blue\noops\n"


def test_the_pid_is_the_programs_own_not_its_guards(stage: Processes) -> None:
    program = stage.start("shell", ["sh", "-c", "echo $$"])
    program.wait(10)
    assert program.tail() == str(program.pid)


def test_waiting_ends_when_the_probe_says_yes(stage: Processes) -> None:
    program = stage.start("polite", POLITE)
    stage.wait_until(lambda: "here" in program.tail(), "a greeting", 20)
    assert program.alive


def test_waiting_fails_at_once_with_the_last_words_of_a_program_that_died(
    stage: Processes,
) -> None:
    stage.start("doomed", ["sh", "-c", "echo no such topic; exit 3"])
    begun = time.monotonic()
    with pytest.raises(Died, match=r"(?s)doomed ended with 3, expected a miracle.*no such topic"):
        stage.wait_until(lambda: False, "a miracle", 60)
    assert time.monotonic() - begun < 30


def test_a_program_that_does_not_exist_counts_as_died(stage: Processes) -> None:
    stage.start("typo", ["evenhandd"])
    with pytest.raises(Died, match=r"(?s)typo ended with 127.*evenhandd: not found"):
        stage.wait_until(lambda: False, "an answer", 60)


def test_waiting_fails_after_its_bound_with_what_the_programs_say(stage: Processes) -> None:
    program = stage.start("slow", ["sh", "-c", "echo loading; exec sleep 60"])
    program.wait_until(lambda: program.tail() == "loading", "a word", 10)
    with pytest.raises(NotReady, match=r"(?s)Expected an answer within 0.1 s.*slow.*loading"):
        stage.wait_until(lambda: False, "an answer", 0.1)


def test_a_program_that_was_killed_on_purpose_alarms_nobody(stage: Processes) -> None:
    victim = stage.start("victim", SLEEPER)
    victim.kill()
    assert victim.exit_code == -signal.SIGKILL
    stage.wait_until(lambda: not victim.alive, "its end", 10)
    assert not victim.died


def test_a_program_that_ended_as_expected_alarms_nobody(stage: Processes) -> None:
    once = stage.start("once", ["true"])
    assert once.wait(10) == 0
    assert not once.died


def test_programs_leave_in_reverse_order(tmp_path: Path) -> None:
    names = ["broker", "scheduler", "api"]
    with Processes(tmp_path) as stage:
        programs = [stage.start(name, POLITE) for name in names]
        stage.wait_until(lambda: all("here" in it.tail() for it in programs), "all three", 20)
    asked = {it.name: int(it.tail().split()[-1]) for it in programs}
    assert sorted(names, key=asked.__getitem__) == ["api", "scheduler", "broker"]


def test_an_exception_in_the_block_leaves_no_program_behind(tmp_path: Path) -> None:
    started: list[Process] = []

    def story() -> None:
        with Processes(tmp_path) as stage:
            started.extend([stage.start("one", SLEEPER), stage.start("two", SLEEPER)])
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        story()
    assert [process.alive for process in started] == [False, False]


def test_a_program_that_is_deaf_to_sigterm_is_killed_after_the_bound(stage: Processes) -> None:
    deaf = stage.start("deaf", DEAF)
    stage.wait_until(lambda: "deaf" in deaf.tail(), "its word", 20)
    assert deaf.terminate(0.2) == -signal.SIGKILL


def test_a_paused_program_stands_still_and_goes_on(stage: Processes) -> None:
    program = stage.start("sleeper", SLEEPER)
    program.pause()
    until(lambda: state_of(program.pid).startswith("T"))
    assert program.alive
    program.resume()
    until(lambda: state_of(program.pid).startswith("S"))


def test_a_paused_program_leaves_politely_when_asked(stage: Processes) -> None:
    program = stage.start("polite", POLITE)
    stage.wait_until(lambda: "here" in program.tail(), "it", 20)
    program.pause()
    assert program.terminate() == 0
    assert "asked at" in program.tail()


def test_what_a_program_started_goes_with_it(stage: Processes) -> None:
    parent = stage.start("parent", PARENT)
    stage.wait_until(lambda: parent.tail() != "", "a grandchild", 20)
    parent.kill()
    until(lambda: is_gone(int(parent.tail())))


def test_a_program_outlives_the_thread_that_started_it(stage: Processes) -> None:
    started: list[Process] = []
    thread = threading.Thread(target=lambda: started.append(stage.start("sleeper", SLEEPER)))
    thread.start()
    thread.join()
    with pytest.raises(NotReady):
        started[0].wait(0.3)


@pytest.mark.parametrize("act", ["", "pause"])
def test_nothing_outlives_a_launcher_that_gets_sigkill(tmp_path: Path, act: str) -> None:
    launcher, pids = launch(tmp_path, act)
    assert len(pids) == 3
    assert not any(is_gone(pid) for pid in pids)
    launcher.kill()
    assert finish(launcher) == -signal.SIGKILL
    until(lambda: all(is_gone(pid) for pid in pids))


def test_ctrl_c_ends_the_programs_in_order(tmp_path: Path) -> None:
    launcher, pids = launch(tmp_path)
    launcher.send_signal(signal.SIGINT)
    assert finish(launcher) == -signal.SIGINT
    assert "asked at" in (tmp_path / "first.log").read_text()
    until(lambda: all(is_gone(pid) for pid in pids))


def test_the_last_act_is_due_only_when_the_launcher_is_gone(tmp_path: Path) -> None:
    story = python(f"""
import os, sys
from pathlib import Path
from evenhand.dev.processes import Process
done = Path({str(tmp_path)!r}, sys.argv[1])
touch = ["touch", str(done)]
process = Process("sleeper", {SLEEPER!r}, log=done.with_suffix(".log"), last_act=touch)
if sys.argv[1] == "stopped":
    process.kill()
os._exit(0)
""")
    for how in ("stopped", "vanished"):
        subprocess.run([*story, how], check=True, timeout=20)
    until((tmp_path / "vanished").exists)
    assert not (tmp_path / "stopped").exists()


def test_run_hands_on_how_a_program_failed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    run("fine", ["true"], log=log, timeout_s=10)
    with pytest.raises(Died, match=r"(?s)tool failed with 4.*bad pom"):
        run("tool", ["sh", "-c", "echo bad pom; exit 4"], log=log, timeout_s=10)
    with pytest.raises(NotReady, match="still runs"):
        run("tool", SLEEPER, log=log, timeout_s=0.1)
