"""One machine that runs an authority: its clock, disk, network, and how it dies."""

from collections.abc import Callable
from random import Random

from streams.shell.authority import Authority
from streams.shell.ports import Ports
from tests.simulation.clock import HostClock, SimulatedClock
from tests.simulation.faults import Faults, Killed
from tests.simulation.quiet import Quiet
from tests.simulation.tables import Disk

MILLI = 1_000


class Process:
    """One life of the scheduler on a host; what it left in flight may outlive it."""

    def __init__(self) -> None:
        self.alive = True


class Host:
    """Steps its authority; may be paused, cut off, killed and started again."""

    def __init__(self, name: str, clock: SimulatedClock, random: Random, faults: Faults) -> None:
        self.name, self.clock, self.random, self.faults = name, clock, random, faults
        self.monotonic = HostClock(
            clock, base_ms=random.randrange(10**6), drift_ppm=random.randint(-40, 40)
        )
        self.disk = Disk()
        self.watch = Quiet()
        self.process = Process()
        self.authority: Authority | None = None
        self.ports: Callable[[Host], Ports]
        self._paused_until_us = self._cut_until_us = 0

    @property
    def is_cut(self) -> bool:
        return self.clock.now_us < self._cut_until_us

    def start(self) -> None:
        self.process = Process()
        self.disk.unlock()
        self.authority = Authority(self.ports(self))

    def step(self) -> None:
        if self.authority is None or self.clock.now_us < self._paused_until_us:
            return
        try:
            self.authority.step()
        except Killed:
            self.kill()

    def point(self) -> None:
        """A place inside a port at which the process may die."""
        if self.process.alive and self.random.random() < self.faults.die_at_port:
            raise Killed

    def kill(self) -> None:
        """SIGKILL: nothing is closed, memory is gone, disk and records in flight are not."""
        if self.authority is None:
            return
        self.authority = None
        self.process.alive = False
        self.disk.crash(self.random, self.faults)
        self.clock.after(self.random.randint(1, 150) * MILLI, self.start)

    def pause(self, span_ms: int) -> None:
        self._paused_until_us = self.clock.now_us + span_ms * MILLI

    def cut(self, span_ms: int) -> None:
        self._cut_until_us = self.clock.now_us + span_ms * MILLI

    def heal(self, faults: Faults) -> None:
        self.faults = faults
        self._paused_until_us = self._cut_until_us = 0
