"""Work that a configuration change made too large for a limit waits outside its queue."""

from collections.abc import Sequence

from schemas.codes import Code
from schemas.events import Event, OperationParked, OperationUnparked
from schemas.phase import Phase

from . import waiting
from .budgets import never_fits
from .configured import Domain
from .limits import PARKED_PER_ENTRY_MAX
from .state import State
from .tables import Table, after, pack


def review(state: State, domain: Domain) -> Sequence[Event]:
    """After a configuration change: each parked operation fits again, or stays parked.

    A bounded part an entry; what was looked at is recorded, so that the next part goes on from it.
    """
    if not domain.review_due or domain.row.review_from is None:
        return []
    first = pack(domain.name, domain.row.review_from)
    found = state.rows.scan(Table.PARKED, first, after(pack(domain.name)), PARKED_PER_ENTRY_MAX)
    domain.review_due = bool(found)
    events: list[Event] = []
    for _, operation in found:
        row = state.operation(operation)
        assert row is not None
        never = never_fits(domain.levels(row.tenant), domain.cost_of(row))
        if never is None:
            events.append(OperationUnparked(tenant=row.tenant, operation=operation))
        else:
            events.append(
                OperationParked(
                    tenant=row.tenant,
                    operation=operation,
                    reason=Code.NEVER_FITS,
                    level=never.level,
                    dimension=never.dimension,
                )
            )
    return events


# -- folds --------------------------------------------------------------------------------------


def parked(state: State, event: OperationParked) -> None:
    """Out of its queue. A review has passed it, or is complete, since dispatch comes after it."""
    row = state.operation(event.operation)
    assert row is not None
    domain = state.config.domains[row.domain]
    domain.row.review_from = max(domain.row.review_from or 0, row.sequence + 1)
    state.put_domain(domain)
    if row.phase is Phase.PARKED:
        return
    waiting.unqueue(state, row)
    row.phase = Phase.PARKED
    state.put(event.operation, row)
    state.rows.put(Table.PARKED, pack(row.domain, row.sequence), event.operation)


def unparked(state: State, event: OperationUnparked) -> None:
    """Back at its original sequence."""
    row = state.operation(event.operation)
    assert row is not None
    if row.more.not_before_ms is None:
        domain = state.config.domains[row.domain]
        domain.row.review_from = row.sequence + 1
        state.put_domain(domain)
    waiting.end_parking(state, event.operation, row)
    waiting.queue_up(state, event.operation, row)
