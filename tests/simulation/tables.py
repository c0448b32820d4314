"""Tables on a simulated disk: batches are atomic, a crash may take a tail of them or all."""

from collections.abc import Callable, Sequence
from random import Random

from streams.core.tables import Image
from streams.shell.tables import Applied
from tests.simulation.faults import Faults
from tests.support.core import MemoryRows

KEPT_MAX = 4
"""Batches that a power loss can take: the journal replays them."""


class Disk:
    """What stays when the process goes."""

    def __init__(self) -> None:
        self.rows = MemoryRows()
        self.applied: Applied | None = None
        self._undo: list[tuple[list[Image], Applied | None]] = []
        self._locked = False

    def lock(self) -> None:
        assert not self._locked, "Expected one open store, but a handle was left open"
        self._locked = True

    def unlock(self) -> None:
        self._locked = False

    def write(self, images: Sequence[Image], applied: Applied) -> None:
        before = [(table, key, self.rows.get(table, key)) for table, key, _ in images]
        self._undo = [*self._undo, (before, self.applied)][-KEPT_MAX:]
        self.rows.write(images)
        self.applied = applied

    def crash(self, random: Random, faults: Faults) -> None:
        """Lose everything, a tail of batches, or nothing; never a middle."""
        if random.random() < faults.wipe:
            self.clear()
        elif random.random() < faults.lose_tail:
            for _ in range(random.randint(1, KEPT_MAX)):
                if self._undo:
                    images, self.applied = self._undo.pop()
                    self.rows.write(images)

    def clear(self) -> None:
        self.rows, self.applied, self._undo = MemoryRows(), None, []


class SimulatedTables:
    """`TableStore` over a disk."""

    def __init__(
        self,
        disk: Disk,
        *,
        point: Callable[[], None] = lambda: None,
        believed: Callable[[Applied], None] = lambda _: None,
    ) -> None:
        disk.lock()
        self._disk, self._point, self._believed = disk, point, believed

    def get(self, table: int, key: bytes) -> bytes | None:
        return self._disk.rows.get(table, key)

    def scan(
        self, table: int, first: bytes, end: bytes, limit: int
    ) -> Sequence[tuple[bytes, bytes]]:
        return self._disk.rows.scan(table, first, end, limit)

    def applied(self) -> Applied | None:
        return self._disk.applied

    def write(self, images: Sequence[Image], applied: Applied) -> None:
        self._point()
        self._disk.write(images, applied)
        self._believed(applied)
        self._point()

    def clear(self) -> None:
        self._disk.clear()

    def close(self) -> None:
        self._disk.unlock()
