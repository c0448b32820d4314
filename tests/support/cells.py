"""A cell that is ready for work, and short names for what its entries say."""

from collections.abc import Sequence
from typing import Any

from schemas import events as e
from schemas import inputs as i
from schemas.ids import MemberId, PoolId, TenantId
from streams.core import invariants
from streams.core.opening import open_state
from tests.support import core as c

FOREVER_MS = 10**11
"""Members stay alive without heartbeats, so that only what a test is about happens."""


def bounds(**over: Any) -> i.ConfigProposed:
    defaults = over.pop("tenant_defaults", i.TenantConfig())
    fields = {"member_ttl_ms": FOREVER_MS, "tenant_defaults": defaults, **over}
    return c.config("cell", "cell", i.CellConfig(**fields))


def cell(
    *dimensions: i.DimensionConfig,
    places: int = 100,
    tenants: Sequence[i.ConfigProposed] = (),
    cell_bounds: dict[str, Any] | None = None,
    lease_ms: int = 60_000,
    **domain: Any,
) -> c.Core:
    """Domain d with these dimensions, pool p, and member m with its places free."""
    made = c.Core()
    wanted = dimensions or (c.dimension("slots", 100),)
    events = made.run(
        bounds(**(cell_bounds or {})),
        c.domain(*wanted, **domain),
        c.pool(lease_ms=lease_ms),
        *tenants,
    )
    assert not c.only(e.ConfigRefused, events), events
    made.run(c.join(places=places), c.heartbeat())
    return made


def grants(events: Sequence[e.Event]) -> list[e.GrantIssued]:
    return c.only(e.GrantIssued, events)


def kinds(events: Sequence[e.Event]) -> list[str]:
    return [type(event).__name__ for event in events]


def said(events: Sequence[e.Event]) -> list[str]:
    """Their kinds, but for the note that leases were looked at."""
    return [kind for kind in kinds(events) if kind != "LeasesReviewed"]


def one(kind: type, events: Sequence[e.Event]) -> Any:
    """The only event of its kind."""
    (found,) = c.only(kind, events)
    return found


def granted(made: c.Core, *asked: i.Input, after_ms: int = 0) -> e.GrantIssued:
    """One entry, and the only grant in it."""
    found: e.GrantIssued = one(e.GrantIssued, made.run(*asked, after_ms=after_ms))
    return found


def started(made: c.Core, *asked: i.Input, after_ms: int = 0) -> e.GrantIssued:
    """The only grant of one entry, with its start accepted in the next."""
    grant = granted(made, *asked, after_ms=after_ms)
    one(e.StartAccepted, made.run(c.start(grant)))
    return grant


def used(made: c.Core, dimension: str, scope: str = "domain") -> int:
    """What counts in a window of domain d."""
    return made.state.config.windows[scope, "d", dimension].used


def cancel(asked: i.OperationSubmitted, **over: Any) -> i.CancellationRequested:
    fields = {"tenant": asked.tenant, "operation": c.id_of(asked), "reason": "no", **over}
    return i.CancellationRequested(**fields)


def leave(member: str = "m", member_epoch: str = "e1") -> i.LeaveAnnounced:
    return i.LeaveAnnounced(member=member, member_epoch=member_epoch)


def standing(cell: c.Core, member: str = "m") -> str | None:
    """Where the member is in its life; None if its slot is free."""
    row = cell.state.pools.members.get(MemberId(member))
    return None if row is None else str(row.standing)


def slots(cell: c.Core, pool: str = "p", tenant: str | None = None) -> int:
    """Member slots taken in the pool."""
    return cell.state.pools.taken(PoolId(pool), None if tenant is None else TenantId(tenant))


def phase(cell: c.Core, grant: e.GrantIssued) -> str:
    """Where the operation of the grant is in its life."""
    row = cell.state.operation(grant.operation)
    assert row is not None
    return str(row.phase)


def unknown(cell: c.Core, *asked: i.Input) -> e.GrantIssued:
    """The only grant of one entry, started, and then its member does not know how it ended."""
    grant = started(cell, *asked)
    one(e.OutcomeMarkedUnknown, cell.run(c.result(grant, "unknown")))
    return grant


def same_as_followed(cell: c.Core) -> bool:
    """Whether memory made from the rows alone has the same rows, and every invariant holds."""
    assert list(invariants.broken(cell.state)) == []
    assert list(invariants.broken(open_state(cell.rows))) == []
    return cell.follower().digest() == cell.rows.digest()
