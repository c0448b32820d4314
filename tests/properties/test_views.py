"""The views say of random histories of the core what the core itself knows."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from projections.follower import Follower
from projections.queries import Queries
from projections.rocks import RocksViews
from projections.views.ledger import total
from projections.views.phases import AWAITING_A_PERSON, LIVE
from schemas import events as e
from schemas import inputs as i
from schemas.ids import CellId, DomainId
from schemas.phase import Phase
from streams.core import leases
from streams.core.tables import Table
from tests.support import core as c
from tests.support.told import ToldJournal
from tests.support.walk import PRICES, Walk

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
    awaiting = set()
    for table, key in cell.rows.values:
        if table == Table.OPERATION:
            known, row = cell.state.operation(key), asked.operation(key)
            assert row is not None
            assert row.phase == known.phase
            tenants.setdefault(known.tenant, Counter())[known.phase] += 1
            assert asked.turns(key, row) in (None, known.more.turns)
            if known.phase in AWAITING_A_PERSON:
                awaiting.add(key)
    dead = asked.dead_letters(tenant=None, begin=None, limit=1_000, keep=lambda _: True)
    assert {operation for operation, _ in dead.items} == awaiting
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
    """Without takeovers, steps of time and changed limits: what the budget view leaves out."""

    def ask(self) -> Any:
        asked = super().ask()
        return self.other_prices() if isinstance(asked, i.ConfigProposed) else asked

    def other_prices(self) -> i.ConfigProposed:
        """Charges of former grants keep theirs."""
        domain = self.cell.state.config.domains[DomainId("d")].config
        prices = replace(PRICES, call_micros=self.chance.choice([0, 200, 2_000]))
        return c.config("domain", "d", replace(domain, prices=prices))

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


@pytest.mark.parametrize("seed", range(16))
def test_views_agree_with_the_core_on_attempts_and_ledgers(seed: int, tmp_path: Path) -> None:
    watched = Watched(Steady(seed), tmp_path)
    cell, silent = watched.walk.cell, False
    for number in range(ENTRIES):
        watched.walk.entry()
        asked = watched.ask()
        agree_on_unknowns(cell, asked)
        agree_on_places(cell, asked)
        silent = silent or cell.state.cell.silent_ms > 0
        if not silent:
            agree_on_leases(cell, asked)
        if number % 10 == 9:
            agree_on_work(cell, asked)
            agree_on_ledgers(watched.walk.events, asked)
    watched.store.close()


def agree_on_unknowns(cell: Any, asked: Queries) -> None:
    """Every attempt that is uncertain, what it holds, and whether its operation waits for it."""
    state = cell.state
    uncertain = [(o, a) for o, a in state.attempts.items() if a.uncertain is not None]
    known = {
        (operation, attempt.incarnation, attempt.epoch): (
            attempt.is_open,
            attempt.uncertain.hold_until_ms,
            awaited,
        )
        for awaited, some in ((True, uncertain), (False, state.holds.all()))
        for operation, attempt in some
    }
    found = {
        (one.operation, one.incarnation, one.epoch): (
            one.row.held,
            one.row.doubt.hold_until_ms,
            one.row.awaited,
        )
        for one in asked.unknowns()
    }
    assert found == known
    for name in ("d", "d2"):
        level = asked.budgets(name)[0]
        slots = next(use for use in level.dimensions if use.config.name == "slots")
        held = (one.row.slots for one in asked.unknowns(domain=name) if one.row.held)
        assert slots.unknown == sum(held)
        assert slots.held + slots.in_use == slots.counted
        shown = sum(one.row.slots for one in asked.held_slots(domain=name))
        assert shown == slots.counted


def agree_on_leases(cell: Any, asked: Queries) -> None:
    for operation, attempt in cell.state.attempts.items():
        row = asked.operation(operation)
        assert row is not None
        ends = None if attempt.lease_ms is None else leases.ends_ms(cell.state, attempt)
        assert asked.lease_expires_ms(operation, row) == ends


def agree_on_places(cell: Any, asked: Queries) -> None:
    state = cell.state
    for name, row in asked.members().items():
        phases = Counter(
            state.operation(operation).phase
            for operation, attempt in state.attempts.items()
            if attempt.member == name
        )
        counted = [row.granted, row.leased, row.started]
        assert counted == [phases[p] for p in (Phase.GRANTED, Phase.LEASED, Phase.STARTED)]


def agree_on_ledgers(events: Sequence[Any], asked: Queries) -> None:
    """Counts over the journal (R134), made another way."""
    granted = {(x.operation, x.incarnation) for x in events if isinstance(x, e.GrantIssued)}
    starts = [x for x in events if isinstance(x, e.StartAccepted)]
    committed = {(x.operation, x.incarnation) for x in starts}
    charged = 0
    for x in events:
        match x:
            case e.ReservationSettled():
                charged += x.tokens_reserved if x.tokens_actual is None else x.tokens_actual
            case e.ReservationForfeited():
                charged += x.tokens_reserved
            case e.UsageCorrected():
                charged += x.tokens_actual - x.tokens_before
            case _:
                pass
    tenants = asked.tenants()
    rows = [ledger for name in tenants for ledger in asked.ledgers(name).values()]
    assert sum(row.starts for row in rows) == len(starts)
    assert sum(row.committed for row in rows) == len(committed)
    assert sum(row.held + row.committed + row.released + row.expired for row in rows) == len(
        granted
    )
    assert sum(row.tokens_charged for row in rows) == charged
    assert total(rows).tokens_charged == charged
    assert asked.balance([row for row, _ in tenants.values()]).admitted == 0
    domains = asked.domains().values()
    results = Counter(x.outcome for x in events if isinstance(x, e.ResultRecorded))
    results["unknown"] = sum(isinstance(x, e.OutcomeMarkedUnknown) for x in events)
    assert sum((Counter(row.outcomes) for row in domains), Counter()) == +results
