"""Programs started as children that cannot outlive their launcher, whatever ends it.

Each child is guarded by a tiny shell in its own process group. The guard waits on a pipe whose
other end, the lifeline, only the launcher holds: when the launcher returns, is interrupted or gets
SIGKILL, the kernel closes the lifeline and the guard kills the group. Nothing has to run in the
launcher for that.

Linux's PR_SET_PDEATHSIG was refused: it fires when the *thread* that forked ends, needs code
between fork and exec, reaches no grandchild and does not exist on macOS.
"""

import contextlib
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

STOP_WAIT_S = 10.0
"""A healthy program of ours ends within a second; a broker with full logs needs a few."""

PROBE_EVERY_S = 0.02
"""Readiness is noticed within one blink, and a probe costs little."""

TAIL_LINES = 40
TAIL_BYTES = 16_384
"""Enough for the head of a stack trace, little enough for an error message."""

# The shell becomes the program (exec), so the program's pid is its group's number too. The guard
# is in that group: as long as it lives, the kernel gives the number to nobody else.
_GUARD = """
last_act=$1; shift; exec 3<&0
{
    read -r _ || { kill -s KILL "$$"; eval "$last_act"; }
    kill -s KILL -- "-$$"
} <&3 >/dev/null 2>&1 &
exec "$@" 3<&- </dev/null
"""


class ProcessError(Exception):
    """A child program is not as its launcher needs it."""


class Died(ProcessError):
    """A program ended by itself while somebody waited for it. Waiting longer cannot help."""


class NotReady(ProcessError):
    """A program lives but did not become ready within its bound."""


class Process:
    """One guarded child. Its log holds all that it writes; it reads nothing and has no terminal.

    A launcher that forks without exec (multiprocessing's `fork`) shares the lifeline with the fork:
    the child then lives as long as either.
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        last_act: Sequence[str] = (),
    ) -> None:
        """Start it at once.

        Args:
            name: what messages call it.
            argv: a program on the path, or its file, and its arguments.
            log: appended to.
            env: added to the launcher's own environment.
            last_act: a command for what is not in the group; the guard runs it only when the
                launcher vanished, after it killed the program.
        """
        self.name = name
        self.log = log
        self._dismissed = False
        self._lifeline: int | None = None
        guarded = ["/bin/sh", "-c", _GUARD, name, shlex.join(last_act), *argv]
        guard_end, lifeline = os.pipe()
        try:
            with log.open("ab") as out:
                self._child = subprocess.Popen(  # noqa: S603 - argv comes from our own callers
                    guarded,
                    stdin=guard_end,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, **(env or {})},
                    start_new_session=True,
                )
        except OSError:
            os.close(lifeline)
            raise
        finally:
            os.close(guard_end)
        self._lifeline = lifeline

    @property
    def pid(self) -> int:
        """The program's own pid, which is also its group's."""
        return self._child.pid

    @property
    def exit_code(self) -> int | None:
        """None while it lives; minus the signal's number if a signal ended it."""
        return self._child.poll()

    @property
    def alive(self) -> bool:
        """Whether it has not ended; a paused program is alive."""
        return self.exit_code is None

    @property
    def died(self) -> bool:
        """Whether it ended without being asked to through this object."""
        return not self.alive and not self._dismissed

    def pause(self) -> None:
        """SIGSTOP, to the program only: its guard stays awake."""
        self._child.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self._child.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL; returns when the program is gone. Harmless when it already is."""
        self._dismissed = True
        self._child.kill()
        self._child.wait()
        self._cut()

    def terminate(self, wait_s: float = STOP_WAIT_S) -> int:
        """SIGTERM, and SIGKILL after `wait_s`; also for a paused program.

        Returns: the exit code. Blocks until the program is gone.
        """
        self._dismissed = True
        self._child.terminate()
        self._child.send_signal(signal.SIGCONT)
        try:
            self._child.wait(wait_s)
        except subprocess.TimeoutExpired:
            self.kill()
        self._cut()
        return self._child.wait()

    def wait(self, timeout_s: float) -> int:
        """Let it end by itself, as is expected of it.

        Returns: the exit code.

        Raises:
            NotReady: it still runs after the bound; nothing was done to it.
        """
        try:
            code = self._child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise NotReady(self.report(f"still runs after {timeout_s:g} s")) from None
        self._dismissed = True
        self._cut()
        return code

    def tail(self) -> str:
        """The last lines of its log."""
        with self.log.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - TAIL_BYTES))
            return "\n".join(log.read().decode(errors="replace").splitlines()[-TAIL_LINES:])

    def report(self, fact: str) -> str:
        """A sentence about this program, with the end of its log as evidence."""
        return f"{self.name} {fact}; its log ends with:\n{self.tail()}"

    def wait_until(self, probe: Callable[[], bool], what: str, timeout_s: float) -> None:
        """Like `Processes.wait_until`, watching this program only."""
        _wait_until(probe, what, timeout_s, [self])

    def _cut(self) -> None:
        """Let the guard end what the program may have left in its group; no last act is due."""
        if self._lifeline is None:
            return
        with contextlib.suppress(BrokenPipeError):  # somebody ended the guard too
            os.write(self._lifeline, b"\n")
        os.close(self._lifeline)
        self._lifeline = None


class Processes:
    """A stage on which programs start in order and leave in reverse order, also after an exception.

    Children have sessions of their own, so Ctrl-C reaches the launcher only, which stops them here.
    """

    def __init__(self, logs: Path) -> None:
        """`logs` is made if missing; each program writes `<name>.log` in it."""
        logs.mkdir(parents=True, exist_ok=True)
        self._logs = logs
        self._started: list[Process] = []
        self._exits = contextlib.ExitStack()

    def __enter__(self) -> Self:
        """Nothing starts here."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop everything. A second Ctrl-C cuts the politeness short, not the clean-up."""
        self.stop()

    def start(
        self, name: str, argv: Sequence[str], *, env: Mapping[str, str] | None = None
    ) -> Process:
        """Start a program; `env` is added to the launcher's own environment. Does not wait."""
        process = Process(name, argv, log=self._logs / f"{name}.log", env=env)
        self._started.append(process)
        self._exits.callback(process.terminate)
        return process

    def wait_until(self, probe: Callable[[], bool], what: str, timeout_s: float) -> None:
        """Block until `probe` says yes.

        Args:
            probe: cheap, without side effects; called many times, and at least once.
            what: completes "expected …" in an error.
            timeout_s: the bound.

        Raises:
            Died: one of the programs ended unasked; raised at once, with the end of its log.
            NotReady: the bound passed.
        """
        _wait_until(probe, what, timeout_s, self._started)

    def stop(self) -> None:
        """Terminate what still lives, last started first; each has STOP_WAIT_S before SIGKILL."""
        self._exits.close()


def run(name: str, argv: Sequence[str], *, log: Path, timeout_s: float) -> None:
    """Run a guarded program to its end.

    Raises:
        Died: it failed; the message has the end of its log.
        NotReady: the bound passed; it was killed.
    """
    process = Process(name, argv, log=log)
    try:
        code = process.wait(timeout_s)
    finally:
        process.kill()
    if code != 0:
        raise Died(process.report(f"failed with {code}"))


def _wait_until(
    probe: Callable[[], bool], what: str, timeout_s: float, watched: Sequence[Process]
) -> None:
    ends_at = time.monotonic() + timeout_s
    while not probe():
        for process in watched:
            if process.died:
                raise Died(process.report(f"ended with {process.exit_code}, expected {what}"))
        if time.monotonic() >= ends_at:
            reports = "\n".join(process.report("lives") for process in watched if process.alive)
            raise NotReady(f"Expected {what} within {timeout_s:g} s.\n{reports}")
        time.sleep(PROBE_EVERY_S)
