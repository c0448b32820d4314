"""The two ledgers of a tenant in a domain: entitlement and pacing (requirement R57).

*Entitlement* counts an operation once, however often it is tried: held from its first grant,
committed at its first start, released when it is cancelled before, expired when it ends otherwise.
*Pacing* counts every started call, with what it was charged in the end.
"""

from collections.abc import Iterable

import msgspec

from projections.keys import join
from projections.projection import Projection, Seen
from schemas import events as e
from schemas.phase import Phase

from .phases import ENDED


class Ledger(msgspec.Struct, array_like=True):
    """Both ledgers; the figures of entitlement are operations, those of pacing calls."""

    held: int = 0
    committed: int = 0
    """Operations with a start (R138)."""
    released: int = 0
    expired: int = 0
    grants: int = 0
    starts: int = 0
    settled: int = 0
    returned: int = 0
    """Started calls that were never made."""
    forfeited: int = 0
    tokens_reserved: int = 0
    """Of calls that were settled or forfeited."""
    tokens_charged: int = 0
    """What those were charged, corrections included."""
    tokens_corrected: int = 0
    """The part of `tokens_charged` that later usage added or took away."""
    tokens_estimated: int = 0
    """The part of `tokens_reserved` whose use the settlement knew (R136)."""
    tokens_observed: int = 0
    """Used by those calls."""
    overdraft_tokens: int = 0
    """Use above the reservation, as the settlements said."""
    cost_ns: int = 0
    money_micros: int = 0
    """What calls were charged at the prices of their grants, corrections included."""


def total(ledgers: Iterable[Ledger]) -> Ledger:
    """The sum of several."""
    found = Ledger()
    for ledger in ledgers:
        for name in Ledger.__struct_fields__:
            setattr(found, name, getattr(found, name) + getattr(ledger, name))
    return found


def _by_tenant_and_domain(seen: Seen) -> bytes | None:
    known = seen.reserved
    assert known is not None, f"Expected to know the domain of {seen.event}"
    return join(seen.event.tenant, known.domain)


def _apply(row: Ledger, seen: Seen) -> Ledger:
    _entitle(row, seen)
    match event := seen.event:
        case e.StartAccepted():
            row.starts += 1
        case e.ReservationSettled():
            used = event.tokens_reserved if event.tokens_actual is None else event.tokens_actual
            row.settled += 1
            row.tokens_reserved += event.tokens_reserved
            row.tokens_charged += used
            row.overdraft_tokens += event.overdraft_tokens
            if event.tokens_actual is not None:
                row.tokens_estimated += event.tokens_reserved
                row.tokens_observed += event.tokens_actual
            row.cost_ns += event.cost_ns
            row.money_micros += event.money_micros
        case e.ReservationForfeited():
            row.forfeited += 1
            row.tokens_reserved += event.tokens_reserved
            row.tokens_charged += event.tokens_reserved
            row.cost_ns += event.cost_ns
            row.money_micros += seen.reserved.money_micros if seen.reserved else 0
        case e.ReservationReleased() if seen.reserved and seen.reserved.started_ms is not None:
            row.returned += 1
        case e.UsageCorrected():
            row.tokens_corrected += event.tokens_actual - event.tokens_before
            row.tokens_charged += event.tokens_actual - event.tokens_before
            row.money_micros += event.money_actual_micros - event.money_before_micros
        case _:
            pass  # only entitlement
    return row


def _entitle(row: Ledger, seen: Seen) -> None:
    operation = seen.operation
    if operation is None:
        return
    if isinstance(seen.event, e.GrantIssued):
        row.grants += 1
        row.held += not operation.entitlement
    elif operation.entitlement == "held":
        if isinstance(seen.event, e.StartAccepted):
            row.held, row.committed = row.held - 1, row.committed + 1
        elif seen.after in ENDED and seen.before not in ENDED:
            row.held -= 1
            if seen.after is Phase.CANCELLED:
                row.released += 1
            else:
                row.expired += 1


LEDGERS = Projection(
    name="ledger",
    number=14,
    version=2,
    row=Ledger,
    wants=(
        e.GrantIssued,
        e.StartAccepted,
        e.OperationCancelled,
        e.OperationExpired,
        e.ReservationSettled,
        e.ReservationReleased,
        e.ReservationForfeited,
        e.UsageCorrected,
    ),
    key=_by_tenant_and_domain,
    initial=Ledger,
    apply=_apply,
)
