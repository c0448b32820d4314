"""What is always true after an entry; tests and simulation check all of it, after every step."""

from collections import Counter as Tally
from collections.abc import Iterator

from schemas.ids import TenantId
from schemas.phase import Phase

from .budgets import check, cost_of
from .outcomes import Fits
from .state import State
from .tables import Table


def broken(state: State) -> Iterator[str]:
    """A sentence for each invariant that does not hold; reads tables whole: for tests only."""
    yield from _balances(state)
    yield from _places(state)
    yield from _waiting(state)
    yield from _work_conserving(state)


def _balances(state: State) -> Iterator[str]:
    """What counts in a window is what its buckets and its open reservations say (R44)."""
    open_charges: Tally[int] = Tally()
    for attempt in state.attempts.values():
        for charge, window in state.held(attempt):
            if charge.exit_ms is None:
                open_charges[id(window)] += charge.amount
    for key, window in state.config.windows.items():
        expected = open_charges[id(window)] + window.leaving
        if window.used != expected:
            yield f"Expected {expected} to count in {key}, but {window.used} do"


def _places(state: State) -> Iterator[str]:
    """Live grants and leases never exceed announced places (R169)."""
    for member, row in state.pools.members.items():
        held = state.pools.held_by(member, row.member_epoch)
        if len(held) > row.places:
            yield f"Expected at most {row.places} at {member}, but {len(held)} are"


def _waiting(state: State) -> Iterator[str]:
    """Caps count what waits or is parked, once; each has a live timer for its deadline."""
    by_domain: Tally[str] = Tally()
    by_tenant: Tally[TenantId] = Tally()
    timers = {key[9:] for key, _ in state.rows.load(Table.TIMER)}
    for key, row in state.rows.load(Table.OPERATION):
        if row.phase in (Phase.WAITING, Phase.PARKED):
            by_domain[row.domain] += 1
            by_tenant[row.tenant] += 1
            if key not in timers:
                yield f"Expected a timer for {key.hex()}"
        live = row.phase in (Phase.GRANTED, Phase.STARTED)
        if live != (key in state.attempts):
            yield f"Expected a live attempt of {key.hex()} exactly while it is granted or started"
    for name, domain in state.config.domains.items():
        if domain.row.count != by_domain[name]:
            yield f"Expected {by_domain[name]} to wait in {name}, but {domain.row.count} do"
    for tenant, count in by_tenant.items():
        if state.waiting(tenant).count != count:
            yield f"Expected {count} of {tenant} to wait, but {state.waiting(tenant).count} do"
    if state.cell.waiting != sum(by_domain.values()):
        yield f"Expected {sum(by_domain.values())} to wait, but {state.cell.waiting} do"


def _work_conserving(state: State) -> Iterator[str]:
    """Below the dispatch bound no eligible head with a free place fits (R28)."""
    for name, domain in state.config.domains.items():
        if name in state.dirty:
            continue
        for lane in domain.lanes.values():
            for counter in lane.counters.values():
                for place, queue in counter.queues.items():
                    fit = check(domain.levels(counter.tenant), cost_of(queue.head()))
                    open_place = state.pools.free_member(place) and state.config.runs(place, name)
                    if isinstance(fit, Fits) and open_place:
                        yield f"Expected the head of {counter.tenant} in {name} to be granted"
