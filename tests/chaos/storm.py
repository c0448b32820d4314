"""What goes wrong at random, from one seed: a schedule of faults under load, then healing."""

import time
from collections.abc import Callable, Sequence
from random import Random

from tests.chaos.world import LEASE_MS, World

Fault = Callable[["Storm"], None]
PAUSE_S = LEASE_MS / 1_000 + 0.8
"""Longer than a lease and longer than a takeover takes."""
MEMBERS = ("m1", "m2", "m3")
ASKS = ("", "after_ms=200", "after_ms=1500", "silent", "reset", "after_ms=400&reset")
STEP_MS = 45
"""Any two of them differ by less than a cell's `clock_bound_ms`."""
EFFECTS = ("unsafe", "keyed", "read_only")


class Storm:
    """One seeded run; `told` says what was done, so that a failure can be read."""

    calm_s = 0.2, 1.2
    """How long it is quiet after each fault, at least and at most."""

    def __init__(self, world: World, seed: int, faults: Sequence[Fault] | None = None) -> None:
        self._world, self._chance = world, Random(seed)
        self._faults = FAULTS if faults is None else faults
        self.told: list[str] = []
        self._begun = time.monotonic()
        self._paused: list[tuple[float, Callable[[], None]]] = []
        for member in MEMBERS:
            world.worker(member)

    def rage(self, faults: int) -> None:
        """So many faults, each a little after the one before, while work comes in."""
        for _ in range(faults):
            self._submit()
            self._chance.choice(self._faults)(self)
            self._let_pass(self._chance.uniform(*self.calm_s))
        self.heal()

    def heal(self) -> None:
        """Everything that was stopped or cut goes on; whoever is dead is started again."""
        while self._paused:
            self._let_pass(0.1)
        world = self._world
        for member, worker in world.workers.items():
            if not worker.alive:
                world.worker(member)
        for n, data in enumerate("ab"):
            if not world.schedulers[n].alive:
                world.schedulers[n] = world.scheduler(data)

    def _submit(self) -> None:
        for _ in range(self._chance.randint(1, 3)):
            effect, ask = self._chance.choice(EFFECTS), self._chance.choice(ASKS)
            tenant = self._chance.choice(("t1", "t2"))
            self._world.submit(self._chance.randint(1, 3), effect, ask=ask, tenant=tenant)

    def _let_pass(self, span_s: float) -> None:
        """Time goes by; what was paused long enough goes on."""
        until = time.monotonic() + span_s
        while time.monotonic() < until:
            now = time.monotonic()
            for due in [one for one in self._paused if one[0] <= now]:
                self._paused.remove(due)
                due[1]()
            self._world.look()

    def _tell(self, what: str) -> None:
        self.told.append(f"{time.monotonic() - self._begun:6.2f} s: {what}")

    def _for_a_while(self, what: str, resume: Callable[[], None]) -> None:
        self._tell(what)
        self._paused.append((time.monotonic() + PAUSE_S, resume))

    def kill_worker(self) -> None:
        member = self._chance.choice(MEMBERS)
        worker = self._world.workers[member]
        if worker.alive:
            self._tell(f"kill {member}")
            worker.kill()
        self._world.worker(member)

    def stop_worker(self) -> None:
        member = self._chance.choice(MEMBERS)
        worker = self._world.workers[member]
        if worker.alive:
            worker.pause()
            self._for_a_while(f"stop {member}", worker.resume)

    def kill_scheduler(self) -> None:
        n = self._chance.randrange(2)
        self._tell(f"kill scheduler {n}")
        self._world.schedulers[n].kill()
        self._world.schedulers[n] = self._world.scheduler("ab"[n])

    def stop_scheduler(self) -> None:
        scheduler = self._world.schedulers[self._chance.randrange(2)]
        if scheduler.alive:
            scheduler.pause()
            self._for_a_while(f"stop {scheduler.name}", scheduler.resume)

    def step_clock(self) -> None:
        """The wall clock of the broker is another, as if its leader were another machine."""
        off_ms = self._chance.randint(-STEP_MS, STEP_MS)
        self._tell(f"the broker's clock is {off_ms} ms off")
        self._world.clock.step_to(off_ms)

    def cut(self) -> None:
        kind = self._chance.choice(("workers", "schedulers"))
        port = self._world.ports[kind]
        port.cut()
        self._for_a_while(f"cut {kind}", port.heal)


FAULTS: tuple[Fault, ...] = (
    Storm.kill_worker,
    Storm.stop_worker,
    Storm.kill_scheduler,
    Storm.stop_scheduler,
    Storm.cut,
)
