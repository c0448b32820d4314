"""The views say of random histories of the core what the core itself knows."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from projections.follower import Follower
from projections.queries import Queries
from projections.rocks import RocksViews
from projections.views.operation import LIVE
from schemas.ids import CellId
from schemas.phase import Phase
from streams.core.tables import Table
from tests.properties.test_histories import Walk
from tests.support.told import ToldJournal

ENTRIES = 150
INPUTS_MAX = 100
"""More than one entry of a walk takes; its causes count from the first of them."""


class Watched:
    """A walk of the core whose entries are told to a follower."""

    def __init__(self, walk: Any, path: Path) -> None:
        self.walk = walk
        self.journal = ToldJournal()
        self.store = RocksViews(path)
        self.follower = Follower(
            cell=CellId("cell"), entries=self.journal, store=self.store, done=lambda _: None
        )
        self._told = 0

    def ask(self) -> Queries:
        for made, decided in self.walk.cell.entries[self._told :]:
            self.journal.time_ms = made.time_ms - 1
            if made.takeover and made.height:
                self.journal.take_over()
            else:
                self.journal.tell(
                    *((one.cause, one.event) for one in decided), inputs=[(0, 0, INPUTS_MAX)]
                )
        self._told = len(self.walk.cell.entries)
        while self.follower.step(0):
            pass
        return Queries(CellId("cell"), self.store.snapshot())


def agree_on_work(cell: Any, asked: Queries) -> None:
    tenants: dict[str, Counter[str]] = {}
    for table, key in cell.rows.values:
        if table == Table.OPERATION:
            known, row = cell.state.operation(key), asked.operation(key)
            assert row is not None
            assert row.phase == known.phase
            tenants.setdefault(known.tenant, Counter())[known.phase] += 1
    for name, (counted, _) in asked.tenants().items():
        assert sum(counted.phases.values()) == counted.admitted
        expected = tenants.get(name, Counter())
        for phase in LIVE:
            assert counted.phases.get(phase, 0) == expected[phase]
        queued = sum(queue.row.waiting for queue in asked.queues(name))
        assert queued == expected[Phase.WAITING]


def agree_on_budgets(cell: Any, asked: Queries) -> None:
    for level in asked.budgets():
        for use in level.dimensions:
            scope = "domain" if level.tenant is None else f"tenant:{level.tenant}"
            window = cell.state.config.windows[scope, level.domain, use.config.name]
            assert use.counted == window.used, (level.domain, level.tenant, use)


@pytest.mark.parametrize("seed", range(12))
def test_views_agree_with_the_core_on_work(seed: int, tmp_path: Path) -> None:
    watched = Watched(Walk(seed), tmp_path)
    for number in range(ENTRIES):
        watched.walk.entry()
        if number % 10 == 9:
            agree_on_work(watched.walk.cell, watched.ask())
    watched.store.close()


class Steady(Walk):
    """Without takeovers, steps of time and changed limits: what the view leaves out."""

    def configuration(self) -> Any:
        return self.membership()

    def entry(self) -> None:
        """Two entries: what a late send report moves into the past leaves with the next."""
        vars(self.cell)["take_over"] = lambda **_: None
        super().entry()
        self.keep(self.cell.run())


@pytest.mark.parametrize("seed", range(12))
def test_views_agree_with_the_core_on_budgets(seed: int, tmp_path: Path) -> None:
    watched = Watched(Steady(seed), tmp_path)
    for _ in range(ENTRIES):
        watched.walk.entry()
        agree_on_budgets(watched.walk.cell, watched.ask())
    watched.store.close()
