"""Views over a journal told step by step, without a broker."""

from pathlib import Path
from typing import Any

from projections.follower import Follower
from projections.queries import Queries
from projections.rocks import RocksViews
from schemas.ids import CellId
from tests.support.told import START_MS, Told, ToldJournal, began, configured


class Fold:
    """A journal told step by step, and what may be asked of it."""

    def __init__(self, path: Path) -> None:
        self.journal = ToldJournal()
        self.journal.tell(began(), *configured())
        self.store = RocksViews(path)
        self.follower = Follower(
            cell=CellId("main"), entries=self.journal, store=self.store, done=lambda _: None
        )

    def tell(self, *events: Any, **more: Any) -> Queries:
        self.journal.tell(*events, **more)
        while self.follower.step(0):
            pass
        return Queries(CellId("main"), self.store.snapshot())

    def admit(self, *operations: Told) -> Queries:
        return self.tell(
            *((n, told.admitted()) for n, told in enumerate(operations)),
            inputs=[(0, 0, len(operations))],
        )

    def start(self, told: Told) -> Queries:
        self.admit(told)
        return self.tell(told.granted(), *told.started(START_MS + 200))
