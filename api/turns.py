"""Turns of a run that a worker holds: its key acts in pool `self` for the run's tenant, no further.

A worker's key names no tenant. What it may do for one follows from the run that a member of the key
has started: join pool `self`, submit turns of that run to its own process, speak of those.
"""

from dataclasses import replace

from projections.queries import Queries
from projections.views.operation import Operation as Row
from schemas import bodies as b
from schemas.bodies import Role
from schemas.codes import Code
from schemas.ids import SELF_POOL, TenantId, UserId, key_of_member
from schemas.phase import Phase

from .auth import Principal
from .problems import Refused


def tenant_of(asker: Principal, asked: Queries, named: str | None) -> TenantId:
    """Whose process joins pool `self`: the key's own tenant, or the one whose run it holds.

    Raises:
        Refused: the key may not join for this tenant, or a worker's key names none.
    """
    if asker.tenant is not None and named in (None, asker.tenant):
        return asker.tenant
    if asker.role is Role.WORKER and named is not None:
        held = (asked.operation(one) for one in asked.leases())
        if any(run is not None and run.tenant == named and _holds(asker, run) for run in held):
            return TenantId(named)
    raise Refused(
        Code.FORBIDDEN,
        "Expected a key whose processes may join pool self: the tenant's own, or a worker's that "
        "names the tenant of a run it holds",
    )


def submitter(asker: Principal, asked: Queries, body: b.Submit) -> Principal:
    """Who submits: the tenant whose key it is, or the one whose run takes a turn.

    Raises:
        Refused: a worker's key submits something else than a turn of its own.
    """
    if asker.role is Role.TENANT:
        return asker
    run = None if body.parent is None else asked.operation(bytes.fromhex(body.parent))
    own = body.pool == SELF_POOL and key_of_member(body.member or "") == asker.key_id
    if run is None or not own or not _holds(asker, run):
        raise Refused(
            Code.FORBIDDEN,
            "Expected a tenant's key, or a turn of a run that a member of this worker's key holds",
        )
    return replace(asker, tenant=TenantId(run.tenant), user=UserId(run.user))


def is_own(asker: Principal, row: Row) -> bool:
    """Whether the operation was submitted to a process of this very key."""
    return key_of_member(row.member or "") == asker.key_id


def _holds(asker: Principal, row: Row) -> bool:
    return (
        row.turns_max is not None
        and row.phase is Phase.STARTED
        and key_of_member(row.holder or "") == asker.key_id
    )
