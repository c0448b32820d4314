"""What the benchmarks share: one broker, a cell each, the programs as processes, and their CPU."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psutil

from api.auth import add_key
from evenhand.dev.beginning import begin
from evenhand.dev.node import LOOPBACK, free_port
from evenhand.dev.processes import Process, Processes
from schemas.bodies import Role
from streams.shell.settings import Settings

SEED = 7
READY_S = 60.0
RESTORE_S = 400.0
"""A million entries."""


@dataclass(slots=True)
class Cpu:
    """CPU that processes spent between two instants."""

    seconds: dict[str, float]

    def per(self, units: float) -> dict[str, float]:
        """Core-microseconds of each process for one unit of work."""
        return {name: spent * 1e6 / units for name, spent in self.seconds.items()}


class Door(NamedTuple):
    """An API process, where it listens, and who may knock."""

    process: Process
    url: str
    key: str


class Stage:
    """Starts programs for one benchmark; all of them end with it."""

    def __init__(
        self, bootstrap: str, broker_pid: int | None, work: Path, *, prefix: str, quick: bool
    ) -> None:
        self.bootstrap = bootstrap
        self.prefix = prefix
        self.quick = quick
        self.work = work / prefix
        self.known: dict[str, float] = {}
        """Figures of this run so far, by name."""
        self._root = work
        self._broker_pid = broker_pid
        self._programs = Processes(self.work)

    @property
    def settings(self) -> Mapping[str, str]:
        """The environment of every program of the cell."""
        return {"EVENHAND_BOOTSTRAP": self.bootstrap, "EVENHAND_PREFIX": self.prefix}

    def start(self, name: str, *arguments: str, **settings: str) -> Process:
        """A Python program, with the cell's settings and these."""
        return self._programs.start(
            name, [sys.executable, *arguments], env={**self.settings, **settings}
        )

    def beside(self, name: str) -> "Stage":
        """A stage for another cell."""
        prefix = f"{self.prefix}-{name}"
        return Stage(self.bootstrap, self._broker_pid, self._root, prefix=prefix, quick=self.quick)

    def api(self, tenant: str | None = None) -> Door:
        """The door of the cell, following; whoever knocks is this tenant, or an auditor."""
        data, port = self.work / "api", free_port()
        role = Role.AUDITOR if tenant is None else Role.TENANT
        user = None if tenant is None else "bench"
        key = add_key(data / "keys.jsonl", role=role, tenant=tenant, user=user)
        settings = {"EVENHAND_DATA_DIR": str(data), "EVENHAND_API_PORT": str(port)}
        process = self.start("api", "-m", "api", **settings)
        return Door(process, f"http://{LOOPBACK}:{port}", key)

    def wait_for_role(
        self, scheduler: Process, role: str, meanwhile: Callable[[], None] = lambda: None
    ) -> None:
        """Wait until the scheduler's log says that it has this role now."""

        def has_role() -> bool:
            meanwhile()
            lines = [line for line in scheduler.log.read_text().splitlines() if '"role"' in line]
            return bool(lines) and f'"{role}"' in lines[-1]

        self._programs.wait_until(has_role, f"{scheduler.name} to be {role}", RESTORE_S)

    def found_cell(self) -> None:
        """Create the cell's topics and its first entry."""
        settings = Settings(bootstrap=self.bootstrap, prefix=self.prefix)
        begin(settings, self._programs, READY_S)

    def scheduler(self, name: str) -> Process:
        """A process that owns the cell or stands by."""
        return self.start(name, "-m", "streams", EVENHAND_DATA_DIR=str(self.work / name))

    def compilers_s(self) -> float:
        """CPU that Java's compilers have spent in the broker; 0 where threads have no names."""
        return 0.0 if self._broker_pid is None else compilers_s(self._broker_pid)

    def stop(self) -> None:
        """End everything that was started here."""
        self._programs.stop()

    @contextmanager
    def cpu(self, **programs: Process) -> Iterator[Cpu]:
        """Measure broker (if it is ours), programs and this process while the block runs."""
        pids = {name: program.pid for name, program in programs.items()}
        pids["clients"] = os.getpid()
        if self._broker_pid is not None:
            pids = {"broker": self._broker_pid, **pids}
        watched = {name: psutil.Process(pid) for name, pid in pids.items()}
        spent = Cpu({})
        before = {name: _spent(process) for name, process in watched.items()}
        try:
            yield spent
        finally:
            for name, process in watched.items():
                spent.seconds[name] = _spent(process) - before[name]


def compilers_s(pid: int) -> float:
    """CPU that the threads of this process have spent whose name says that they compile."""
    spent = 0.0
    for thread in psutil.Process(pid).threads():
        with suppress(FileNotFoundError):  # the thread has ended, or this is no Linux
            if "CompilerThre" in Path(f"/proc/{pid}/task/{thread.id}/comm").read_text():
                spent += thread.user_time + thread.system_time
    return spent


def _spent(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
