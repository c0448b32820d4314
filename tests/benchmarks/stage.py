"""What the benchmarks share: one broker, a cell each, the programs as processes, and their CPU."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from evenhand.dev.processes import Process, Processes

SEED = 7


@dataclass(slots=True)
class Cpu:
    """CPU that processes spent between two instants."""

    seconds: dict[str, float]

    def per(self, units: float) -> dict[str, float]:
        """Core-microseconds of each process for one unit of work."""
        return {name: spent * 1e6 / units for name, spent in self.seconds.items()}


class Stage:
    """Starts programs for one benchmark; all of them end with it."""

    def __init__(
        self, bootstrap: str, broker_pid: int | None, work: Path, *, prefix: str, quick: bool
    ) -> None:
        self.bootstrap = bootstrap
        self.prefix = prefix
        self.quick = quick
        self.work = work / prefix
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

    def stop(self) -> None:
        """End everything that was started here."""
        self._programs.stop()

    @contextmanager
    def cpu(self, **programs: Process | int) -> Iterator[Cpu]:
        """Measure the broker, if it is ours, and these programs for as long as the block runs."""
        pids = {name: p if isinstance(p, int) else p.pid for name, p in programs.items()}
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


def _spent(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
