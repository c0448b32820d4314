"""Proposals to change a limit, weight, policy or bound: the only way in, checked as a whole."""

from collections.abc import Iterable, Iterator, Sequence

from schemas.codes import Code
from schemas.events import CellBegan, ConfigActivated, ConfigRefused, Event
from schemas.ids import SELF_POOL, DomainId, TenantId
from schemas.inputs import (
    CellConfig,
    ConfigProposed,
    DimensionConfig,
    DomainConfig,
    PoolConfig,
    Prices,
    TenantConfig,
)
from schemas.lanes import LANES
from schemas.units import Millis

from . import lanes
from .configured import tenant_scope
from .dimensions import contradictions, price_faults
from .fairness import Policy
from .limits import (
    COUNT_MAX,
    DETAIL_CHARS_MAX,
    DIMENSIONS_MAX,
    GRANTS_PER_ENTRY_MAX,
    LEASE_MS_MIN,
    LIMIT_MAX,
    PLACES_MAX,
    REFERENCE_BYTES_MAX,
    SUBMISSIONS_PER_ENTRY_MAX,
    TIMERS_PER_ENTRY_MAX,
    WEIGHT_MAX,
)
from .outcomes import Unreadable
from .rows import ConfigRow
from .shape import valid_name
from .state import State

ENTRY_BOUNDS = {
    "submissions_per_entry_max": SUBMISSIONS_PER_ENTRY_MAX,
    "grants_per_entry_max": GRANTS_PER_ENTRY_MAX,
    "timers_per_entry_max": TIMERS_PER_ENTRY_MAX,
    "reference_bytes_max": REFERENCE_BYTES_MAX,
}
POSITIVE_BOUNDS = (
    "start_within_ms_max",
    "guard_horizon_ms",
    "member_ttl_ms",
    "join_by_ms",
    "deferral_sample_ms",
    "early_cancel_ms",
    "silence_ms",
)
BOUNDS = (
    "waiting_count_max",
    "waiting_bytes_max",
    "payload_bytes_max",
    "self_members_max",
    "clock_bound_ms",
)


def propose(state: State, asked: ConfigProposed) -> Sequence[Event] | Unreadable:
    """The proposal is active from its position on, or refused with the reason (R156)."""
    if not (valid_name(asked.scope) and valid_name(asked.name) and valid_name(asked.author)):
        return Unreadable(Code.INVALID_FIELD, "Expected scope, name and author to be printable")
    active = state.config.version(asked.scope, asked.name)
    detail = next(_faults(state, asked), None)
    code = Code.INVALID_FIELD
    if detail is None and asked.version is not None and asked.version != active:
        code = Code.VERSION_SUPERSEDED
        detail = f"Expected it to be made from version {active}, but it is from {asked.version}"
    if detail is None:
        return [
            ConfigActivated(
                scope=asked.scope,
                name=asked.name,
                version=active + 1,
                author=asked.author,
                reason=asked.reason,
                cell=asked.cell,
                domain=asked.domain,
                tenant=asked.tenant,
                pool=asked.pool,
            )
        ]
    return [
        ConfigRefused(
            scope=asked.scope,
            name=asked.name,
            version=active,
            author=asked.author,
            code=code,
            detail=detail[:DETAIL_CHARS_MAX],
        )
    ]


def _faults(state: State, asked: ConfigProposed) -> Iterator[str]:
    """Each thing that is wrong, as a sentence; the first is told. One body, that of the scope."""
    bodies = {
        "cell": asked.cell,
        "domain": asked.domain,
        "tenant": asked.tenant,
        "pool": asked.pool,
    }
    given = [scope for scope, body in bodies.items() if body is not None]
    if given != [asked.scope]:
        yield f"Expected one body, for scope {asked.scope!r}, but got {given}"
    if len(asked.reason.encode()) > state.bounds.reference_bytes_max:
        yield "Expected a short reason"
    if asked.cell is not None:
        yield from _cell_faults(state, asked.name, asked.cell)
    if asked.domain is not None:
        yield from _domain_faults(state, DomainId(asked.name), asked.domain)
    if asked.tenant is not None:
        yield from _tenant_faults(state, TenantId(asked.name), asked.tenant)
    if asked.pool is not None:
        yield from _pool_faults(state, asked.name, asked.pool)


def _range_faults(
    body: CellConfig | DomainConfig | TenantConfig,
    least: int,
    fields: Iterable[str],
    most: int = LIMIT_MAX,
) -> Iterator[str]:
    for field in fields:
        value = getattr(body, field)
        if not least <= value <= most:
            yield f"Expected {field} from {least} to {most}, but got {value}"


def _cell_faults(state: State, name: str, body: CellConfig) -> Iterator[str]:
    if name != state.cell.cell:
        yield f"Expected the name of the cell, {state.cell.cell!r}, but got {name!r}"
    for field, most in ENTRY_BOUNDS.items():
        yield from _range_faults(body, 1, (field,), most)
    yield from _range_faults(body, 1, POSITIVE_BOUNDS)
    yield from _range_faults(body, 0, BOUNDS)
    yield from _range_faults(body, LEASE_MS_MIN, ("self_lease_ms",))
    yield from _share_faults(body.tenant_defaults)
    if body.tenant_defaults.budgets:
        yield "Expected no budgets in tenant_defaults: a budget belongs to a named tenant"


def _domain_faults(state: State, name: DomainId, body: DomainConfig) -> Iterator[str]:
    if body.policy not in list(Policy):
        yield f"Expected a policy of {[str(one) for one in Policy]}, but got {body.policy!r:.40}"
    yield from _range_faults(body, 0, ("waiting_count_max", "waiting_bytes_max", "transit_ms"))
    yield from _range_faults(body, 1, ("claim_by_ms", "send_within_ms", "hold_initial_ms"))
    yield from _range_faults(body, 1, ("attempts_max", "retry_backoff_ms", "unknown_hold_ms"))
    yield from _range_faults(body, 0, ("throttles_max", "retry_burst", "cooldown_ms"), COUNT_MAX)
    yield from _range_faults(body, 0, ("retry_percent", "bulk_reserve_percent"), 100)
    yield from _range_faults(body, 1, ("skips_max", "age_max_ms", "saving_max_ms"))
    weights = ("interactive_weight", "decision_weight", "bulk_weight")
    yield from _range_faults(body, 1, weights, WEIGHT_MAX)
    if body.call_ms_max is not None and not 0 < body.call_ms_max <= body.unknown_hold_ms:
        yield f"Expected call_ms_max from 1 to unknown_hold_ms, but got {body.call_ms_max}"
    yield from price_faults(state.config.domains.get(name), body.prices)
    yield from _level_faults(state, "domain", name, body.dimensions, body.prices)


def _tenant_faults(state: State, name: TenantId, body: TenantConfig) -> Iterator[str]:
    yield from _share_faults(body)
    domains = [budget.domain for budget in body.budgets]
    if len(set(domains)) != len(domains):
        yield "Expected each budget domain once"
    for budget in body.budgets:
        domain = state.config.domains.get(budget.domain)
        if domain is None:
            yield f"Expected a budget domain, but got {budget.domain!r}"
        prices = domain.config.prices if domain else None
        scope = tenant_scope(name)
        yield from _level_faults(state, scope, budget.domain, budget.dimensions, prices)
    for other in sorted(state.config.domains):
        if other not in domains:
            yield from _still_used(state, tenant_scope(name), other, ())


def _share_faults(body: TenantConfig) -> Iterator[str]:
    if not 1 <= body.weight <= WEIGHT_MAX:
        yield f"Expected a weight from 1 to {WEIGHT_MAX}, but got {body.weight}"
    if not set(body.lanes) <= set(LANES):
        yield f"Expected lanes among {LANES}"
    yield from _range_faults(body, 0, ("waiting_count_max", "waiting_bytes_max"))
    yield from _range_faults(body, 1, ("runtime_ms_max",))
    yield from _range_faults(body, 0, ("turns_max", "context_bytes_max", "artifacts_max"))


def _pool_faults(state: State, name: str, body: PoolConfig) -> Iterator[str]:
    if name in (SELF_POOL, "open") or ":" in name:
        yield f"Expected a name of its own, but {name!r} is reserved"
    if body.members_max < 0 or not 0 < body.places_max <= PLACES_MAX:
        yield f"Expected members_max of 0 or more and places_max from 1 to {PLACES_MAX}"
    if body.unclaimed_max is not None and not 0 < body.unclaimed_max <= PLACES_MAX:
        yield f"Expected unclaimed_max from 1 to {PLACES_MAX}, but got {body.unclaimed_max}"
    if body.standing and body.unclaimed_max is not None:
        yield "Expected no standing starts in an open pool, whose grants name no member"
    if not LEASE_MS_MIN <= body.lease_ms <= LIMIT_MAX:
        yield f"Expected lease_ms of {LEASE_MS_MIN} or more, but got {body.lease_ms}"
    for domain in body.domains:
        if domain not in state.config.domains:
            yield f"Expected a budget domain, but got {domain!r}"


def _level_faults(
    state: State,
    scope: str,
    domain: DomainId,
    dimensions: Sequence[DimensionConfig],
    prices: Prices | None,
) -> Iterator[str]:
    names = [dimension.name for dimension in dimensions]
    if not 0 < len(names) <= DIMENSIONS_MAX:
        yield f"Expected 1 to {DIMENSIONS_MAX} dimensions, but got {len(names)}"
    for name in names:
        if names.count(name) > 1:
            yield f"Expected a name of its own for each dimension, but {name!r:.40} is there twice"
    for dimension in dimensions:
        yield from contradictions(dimension, prices)
        window = state.config.windows.get((scope, domain, dimension.name))
        if window is not None and (window.config.kind, window.config.unit) != (
            dimension.kind,
            dimension.unit,
        ):
            yield f"Expected {dimension.name} to keep its kind and unit; use another name"
    yield from _still_used(state, scope, domain, names)


def _still_used(state: State, scope: str, domain: DomainId, names: Iterable[str]) -> Iterator[str]:
    """A dimension may be dropped only when nothing counts in it, or its charges would be lost."""
    for (its_scope, its_domain, name), window in sorted(state.config.windows.items()):
        if (its_scope, its_domain) == (scope, domain) and name not in names and window.used:
            yield f"Expected {name} to be empty, but {window.used} still count; pause it first"


# -- folds --------------------------------------------------------------------------------------


def activated(state: State, event: ConfigActivated) -> None:
    """Active from here on; every domain is looked at again, parked work too.

    An operator who configures a domain also ends its pause.
    """
    row = ConfigRow(event.version, event.cell, event.domain, event.tenant, event.pool)
    term_ms = state.config.aging.term_ms
    state.config.configure(event.scope, event.name, row, now_ms=state.window_now_ms)
    if longer_ms := state.config.aging.term_ms - term_ms:
        for window in state.config.windows.values():
            window.age(Millis(longer_ms))
    for name, domain in state.config.domains.items():
        if event.tenant is not None or (event.domain is not None and name == event.name):
            domain.row.review_from, domain.review_due = 0, True
            domain.row.forget_all(TenantId(event.name) if event.tenant is not None else None)
            if event.domain is not None:
                domain.row.cooldown_ms, domain.row.blocked = None, False
                lanes.follow_weights(domain)
            state.put_domain(domain)
        state.touch(name)
    if event.tenant is not None:
        _reweigh(state, [TenantId(event.name)])
    elif event.cell is not None:
        _reweigh(state, None)


def _reweigh(state: State, tenants: Iterable[TenantId] | None) -> None:
    """Where something of the tenants waits; elsewhere the next operation brings the new weight.

    Only active counters are sure to be in memory, and what is in memory may not matter.
    """
    for domain in state.config.domains.values():
        for lane in domain.lanes.values():
            for tenant in lane.counters if tenants is None else tenants:
                counter = lane.counters.get(tenant)
                if counter is not None and counter.queues:
                    config = state.config.tenant(tenant)
                    lane.reweigh(counter, config.weight)
                    lane.rank(counter, config.rank)


def began(state: State, event: CellBegan) -> None:
    """The cell exists, with these topics."""
    state.cell.cell = event.cell
    state.cell.topic_ids = {topic.name: topic.id for topic in event.topics}
