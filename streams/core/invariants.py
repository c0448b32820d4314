"""What is always true after an entry; tests and simulation check all of it, after every step."""

from collections import Counter as Tally
from collections.abc import Iterator

from schemas.ids import OperationId, TenantId
from schemas.phase import Phase

from . import lanes, saving
from .budgets import check
from .holds import hold_key, key_of
from .operations import ATTEMPTED, TERMINAL, AttemptRow, OperationRow
from .outcomes import Fits
from .pools import NOBODY
from .state import State
from .tables import Table, pack
from .timers import Kind
from .waiting import is_free

WAITS = (Phase.WAITING, Phase.PARKED)
UNSTARTED = (Phase.GRANTED, Phase.LEASED)


def broken(state: State) -> Iterator[str]:
    """A sentence for each invariant that does not hold; reads tables whole: for tests only."""
    yield from _balances(state)
    yield from _places(state)
    yield from _waiting(state)
    yield from _attempts(state)
    yield from _timed(state)
    yield from _work_conserving(state)


def _balances(state: State) -> Iterator[str]:
    """What counts in a window is what its buckets and its open reservations say (R44).

    The reservation of an unknown outcome is open, whether its attempt is the newest or not.
    """
    open_charges: Tally[int] = Tally()
    for attempt in (*state.attempts.values(), *(held for _, held in state.holds.all())):
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
        held = state.pools.held(member, row.member_epoch)
        if len(held) > row.places:
            yield f"Expected at most {row.places} at {member}, but {len(held)} are"
    for operation, attempt in state.attempts.items():
        if attempt.member == NOBODY:
            continue
        held = state.pools.held(attempt.member, attempt.member_epoch)
        if (operation in held) != (attempt.uncertain is None):
            yield f"Expected {operation.hex()} to have a place exactly while its call may be live"


def _waiting(state: State) -> Iterator[str]:
    """Caps count what waits or is parked, once; and runs among it."""
    by_domain: Tally[str] = Tally()
    by_tenant: Tally[TenantId] = Tally()
    runs: Tally[str] = Tally()
    for _, row in state.rows.load(Table.OPERATION):
        if row.phase in WAITS:
            by_domain[row.domain] += 1
            by_tenant[row.tenant] += 1
            runs[row.domain] += row.is_run
    for name, domain in state.config.domains.items():
        if (domain.row.count, domain.row.runs) != (by_domain[name], runs[name]):
            yield f"Expected {by_domain[name]} to wait in {name}, but {domain.row} counts others"
    for tenant, count in by_tenant.items():
        if state.waiting(tenant).count != count:
            yield f"Expected {count} of {tenant} to wait, but {state.waiting(tenant).count} do"
    if state.cell.waiting != sum(by_domain.values()):
        yield f"Expected {sum(by_domain.values())} to wait, but {state.cell.waiting} do"


def _attempts(state: State) -> Iterator[str]:
    """The newest attempt lives while its operation does; an older one only while it is held."""
    rows: dict[OperationId, OperationRow] = {
        OperationId(key): row for key, row in state.rows.load(Table.OPERATION)
    }
    for operation, row in rows.items():
        attempt = state.attempts.get(operation)
        if (row.phase in ATTEMPTED) != (attempt is not None):
            yield f"Expected an attempt of {operation.hex()} while {row.phase}, but {attempt}"
        elif attempt and (not row.is_newest(attempt) or row.phase is not _phase(attempt)):
            yield f"Expected {attempt} to be the newest of {operation.hex()}, {row.phase}"
    for operation, held in state.holds.all():
        row_now = rows.get(operation)
        if held.uncertain is None or not held.is_open:
            yield f"Expected an open hold of {operation.hex()}, but {held}"
        elif row_now and row_now.is_newest(held) and row_now.phase in ATTEMPTED:
            yield f"Expected {operation.hex()} to be held once, but its newest attempt is twice"


def _phase(attempt: AttemptRow) -> Phase:
    """Where an operation is with such an attempt."""
    if attempt.uncertain is not None:
        return Phase.UNKNOWN
    if attempt.accepted_ms is not None:
        return Phase.STARTED
    return Phase.GRANTED if attempt.lease_ms is None else Phase.LEASED


def _timed(state: State) -> Iterator[str]:
    """Each timer has its reason, and each reason its timer, so that nothing is stuck (R82, R88)."""
    timers = {(key[8], key[9:]) for key, _ in state.rows.load(Table.TIMER)}
    for key, row in state.rows.load(Table.OPERATION):
        for kind, reason in (
            (Kind.DEADLINE, row.phase in WAITS),
            (Kind.FORGET, row.phase in TERMINAL),
            (Kind.RETRY, row.more.not_before_ms is not None),
            (Kind.CLAIM_BY, row.phase in UNSTARTED),
        ):
            if reason != ((kind, key) in timers):
                yield f"Expected a timer of {kind!r} for {key.hex()} if {reason}"
    for operation, attempt in (*state.attempts.items(), *state.holds.all()):
        name = operation.hex()
        hold = hold_key(key_of(operation, attempt))
        if attempt.uncertain is not None and (Kind.HOLD, hold) not in timers:
            yield f"Expected the hold of {name} to end"
        life = pack(attempt.member, attempt.member_epoch)
        if attempt.lease_ms is not None and (Kind.LEASE, life) not in timers:
            yield f"Expected the lease of {name} to be looked at"
    if sum(kind == Kind.LEASE for kind, _ in timers) != len(state.lives):
        yield f"Expected {len(state.lives)} lives to be looked at, but others are"


def _work_conserving(state: State) -> Iterator[str]:
    """Below the dispatch bound no eligible head with a free place fits (R28).

    A head of lane bulk must leave the reserve, unless its lane is owed its floor (R109, R110), and
    one that the saver holds back must leave all that the saver needs (R36).
    """
    for name, domain in state.config.domains.items():
        if name in state.dirty or domain.row.blocked or domain.row.cooldown_ms is not None:
            continue
        order = lanes.in_order(domain)
        for lane in order:
            for counter in lane.counters.values():
                for place, queue in counter.queues.items():
                    if not is_free(state, domain, place):
                        continue
                    head = queue.head()
                    windows, cost = (
                        domain.levels(counter.tenant),
                        domain.cost_of(head),
                    )
                    keep = saving.to_keep(domain, order, lane, counter, head)
                    fit = check(windows, cost, now_ms=state.window_now_ms, keep=keep)
                    if isinstance(fit, Fits):
                        yield f"Expected the head of {counter.tenant} in {name} to be granted"
