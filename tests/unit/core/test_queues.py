"""A queue is its rows; the front in memory may never show another order."""

from random import Random

import pytest

from streams.core.limits import FRONT_MAX
from streams.core.queues import Queue, Waiting
from streams.core.rows import KINDS
from streams.core.tables import Overlay, Table
from tests.support import core as c


class Line:
    """A queue beside a sorted list of the same sequences."""

    def __init__(self) -> None:
        self.rows = c.MemoryRows()
        self.overlay = Overlay(self.rows, KINDS)
        self.queue = Queue(self.overlay, "d", "interactive", "p", "a")
        self.model: list[int] = []

    def add(self, sequence: int) -> None:
        self.queue.add(Waiting(sequence, bytes([sequence % 251]) * 16, 10, 90, 10**6))
        self.model = sorted([*self.model, sequence])

    def remove(self, sequence: int) -> None:
        self.queue.remove(sequence)
        self.model.remove(sequence)

    def entry_ends(self, *, reopen: bool = False) -> None:
        self.rows.write(self.overlay.drain())
        if reopen:
            self.queue = Queue(self.overlay, "d", "interactive", "p", "a")

    def agrees(self) -> bool:
        head = self.queue.head().sequence if self.model else None
        return (self.queue.count, head) == (len(self.model), min(self.model, default=None))


@pytest.mark.parametrize("count", [1, FRONT_MAX - 1, FRONT_MAX, FRONT_MAX + 1, 3 * FRONT_MAX])
@pytest.mark.parametrize("reopen", [True, False])
def test_operations_leave_in_the_order_of_their_sequence(count, reopen):
    line = Line()
    for sequence in range(count):
        line.add(sequence)
    line.entry_ends(reopen=reopen)
    left = []
    while line.queue.count:
        left.append(line.queue.head().sequence)
        line.remove(left[-1])
    assert left == list(range(count))


@pytest.mark.parametrize("back", [0, FRONT_MAX - 1, FRONT_MAX, FRONT_MAX + 5])
def test_what_comes_back_takes_its_old_place(back):
    line = Line()
    for sequence in range(2 * FRONT_MAX):
        line.add(sequence)
    line.remove(back)
    line.entry_ends()
    line.add(back)
    left = []
    while line.queue.count:
        left.append(line.queue.head().sequence)
        line.remove(left[-1])
    assert left == list(range(2 * FRONT_MAX))


@pytest.mark.parametrize("seed", range(25))
def test_head_and_count_are_those_of_a_sorted_list_over_random_histories(seed):
    chance, line = Random(seed), Line()
    gone: list[int] = []
    for step in range(600):
        roll = chance.random()
        if roll < (0.6 if step < 300 else 0.3):
            line.add(10 * step)
        elif roll < 0.65 and gone:
            line.add(gone.pop(chance.randrange(len(gone))))
        elif line.model:
            index = 0 if chance.random() < 0.6 else chance.randrange(len(line.model))
            gone.append(line.model[index])
            line.remove(line.model[index])
        if chance.random() < 0.3:
            line.entry_ends(reopen=chance.random() < 0.2)
        assert line.agrees(), f"seed {seed}, step {step}"


def test_an_empty_queue_leaves_no_row():
    line = Line()
    line.add(1)
    line.entry_ends()
    line.remove(1)
    line.entry_ends()
    assert not [key for key in line.rows.values if key[0] in (Table.QUEUE, Table.WAITING)]


def test_queues_with_names_that_begin_alike_are_kept_apart():
    rows = c.MemoryRows()
    overlay = Overlay(rows, KINDS)
    names = [("a", "p"), ("ab", "p"), ("a", "pp"), ("ü", "p")]
    for n, (tenant, pool) in enumerate(names):
        Queue(overlay, "d", "interactive", pool, tenant).add(Waiting(n, bytes(16), 1, 1, 1))
    rows.write(overlay.drain())
    for n, (tenant, pool) in enumerate(names):
        queue = Queue(overlay, "d", "interactive", pool, tenant)
        assert (queue.count, queue.head().sequence) == (1, n)
