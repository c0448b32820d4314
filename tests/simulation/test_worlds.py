"""Random worlds hold all promises, a seed reproduces its world, and a planted defect is found."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from streams.shell.backpressure import Backpressure
from streams.shell.cell import Cell
from streams.shell.clock import BrokerClock
from streams.shell.journal import JournalError
from tests.simulation.world import Broken, World

SEEDS = 200
CANARY_SEEDS = 60
BATCH = 25


def failed_once() -> list[int]:
    lines = (Path(__file__).parent / "seeds.txt").read_text().splitlines()
    return [int(line.split()[0]) for line in lines if line and not line.startswith("#")]


def run(seed: int) -> str:
    try:
        return World(Random(seed)).run()
    except Exception as error:  # noqa: BLE001 - whatever ends a world is a finding
        pytest.fail(f"{type(error).__name__}: {error}\nReplay: make sim SEED={seed}")


@pytest.mark.parametrize("first", range(1, SEEDS + 1, BATCH))
def test_all_promises_hold_in_random_worlds(first: int) -> None:
    for seed in range(first, first + BATCH):
        run(seed)


@pytest.mark.parametrize("seed", failed_once())
def test_a_world_that_failed_once_holds(seed: int) -> None:
    run(seed)


def test_a_seed_gives_the_same_journal_under_every_hash_seed() -> None:
    said = {
        subprocess.run(
            [sys.executable, "-m", "tests.simulation", "--seed", "3"],
            env={"PYTHONHASHSEED": hash_seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()[-1]
        for hash_seed in ("0", "1", "4711")
    }
    assert len(said) == 1
    assert said.pop().startswith("journal ")


def believe_any_landing(cell: Cell) -> None:
    cell._close_walk()
    cell._next = cell.flush


def publish_nothing_owed(cell: Cell) -> None:
    cell._close_walk()
    cell._next = cell.take


def publish_before_acceptance(cell: Cell) -> None:
    decided = cell._in_flight()
    offset = cell._fold.next_offset
    cell._gear.outbox.publish(offset, cell._copies(decided.entry, offset, events=decided.events))
    decided.sent_ms = cell._ports.monotonic.now_ms()
    cell._gear.writer.send(decided.value)
    cell._next = cell.wait


def skip_refused_publish(backpressure: Backpressure, at_ms: int) -> bool:
    backpressure._outbox._has_failed = False  # type: ignore[attr-defined]
    backpressure._outbox._ended.clear()  # type: ignore[attr-defined]
    return False


def run_ahead(clock: BrokerClock, at_ms: int) -> int:
    clock._last_ms += 5
    return clock._last_ms


@pytest.mark.parametrize(
    ("owner", "method", "defect"),
    [
        (Cell, "read_to_landing", believe_any_landing),
        (Cell, "publish_owed", publish_nothing_owed),
        (Cell, "append", publish_before_acceptance),
        (Backpressure, "is_on", skip_refused_publish),
        (BrokerClock, "now_ms", run_ahead),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_planted_defect_is_found(
    monkeypatch: pytest.MonkeyPatch, owner: type, method: str, defect: Callable[..., object]
) -> None:
    monkeypatch.setattr(owner, method, defect)
    for seed in range(1, CANARY_SEEDS):
        try:
            World(Random(seed)).run()
        except (Broken, JournalError):
            return
    pytest.fail(f"{CANARY_SEEDS} worlds did not notice")
