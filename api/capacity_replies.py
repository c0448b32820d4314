"""From rows about what is shared to the bodies that users read: tenants, budgets, members."""

from collections.abc import Mapping
from datetime import datetime

from projections.capacity import LevelAnswer, QueueAnswer, SaverAnswer
from projections.queries import Queries, offered
from projections.views.bound import MINUTE_MS, Minute
from projections.views.config import Config
from projections.views.domain import Domain as DomainRow
from projections.views.ledger import Ledger as LedgerRow
from projections.views.ledger import total
from projections.views.members import Member as MemberRow
from projections.views.tenant import Tenant as TenantRow
from schemas import capacity_bodies as c
from schemas.inputs import TenantConfig
from schemas.phase import Phase

from .auth import Principal
from .problems import instant


def _at(at_ms: int | None) -> datetime | None:
    return None if at_ms is None else instant(at_ms)


def tenant(asked: Queries, name: str, row: TenantRow, config: TenantConfig) -> c.Tenant:
    """One tenant."""
    phases = {phase: row.phases.get(phase, 0) for phase in Phase}
    used = total(asked.ledgers(name).values())
    return c.Tenant(
        tenant=name,
        weight=config.weight,
        offered=offered(row),
        admitted=row.admitted,
        rejected=sum(row.refusals.values()),
        duplicates=row.duplicates,
        conflicts=row.conflicts,
        refusals=row.refusals,
        waiting=phases[Phase.WAITING],
        waiting_bytes=row.waiting_bytes,
        waiting_count_max=config.waiting_count_max,
        waiting_bytes_max=config.waiting_bytes_max,
        parked=phases[Phase.PARKED],
        granted=phases[Phase.GRANTED],
        leased=phases[Phase.LEASED],
        started=phases[Phase.STARTED],
        unknown=phases[Phase.UNKNOWN],
        succeeded=phases[Phase.SUCCEEDED],
        failed=phases[Phase.FAILED],
        cancelled=phases[Phase.CANCELLED],
        expired=phases[Phase.EXPIRED],
        dead=phases[Phase.DEAD],
        unknown_closed=phases[Phase.UNKNOWN_CLOSED],
        grants=used.grants,
        starts=used.starts,
        operations_started=used.committed,
        retry_amplification=used.starts / used.committed if used.committed else None,
        settled=used.settled,
        forfeited=used.forfeited,
        tokens_reserved=used.tokens_reserved,
        tokens_used=used.tokens_charged,
        estimate_error=estimate_error(used),
        cost_ns=used.cost_ns,
        suspected_new_keys=asked.suspected_new_keys(name),
        residue=row.admitted - sum(row.phases.values()),
    )


def estimate_error(used: LedgerRow) -> float | None:
    """How far reservations were above use, as a part of it (R136)."""
    if not used.tokens_observed:
        return None
    return (used.tokens_estimated - used.tokens_observed) / used.tokens_observed


def ledgers(tenant_name: str, rows: Mapping[str, LedgerRow], config: Config) -> c.Ledgers:
    """A tenant's two ledgers in each domain."""
    return c.Ledgers(
        tenant=tenant_name,
        items=[
            c.Ledger(
                domain=domain,
                entitlement=c.Entitlement(
                    held=row.held,
                    committed=row.committed,
                    released=row.released,
                    expired=row.expired,
                ),
                pacing=c.Pacing(
                    grants=row.grants,
                    starts=row.starts,
                    settled=row.settled,
                    returned=row.returned,
                    forfeited=row.forfeited,
                    tokens_reserved=row.tokens_reserved,
                    tokens_charged=row.tokens_charged,
                    tokens_corrected=row.tokens_corrected,
                    overdraft_tokens=row.overdraft_tokens,
                    cost_ns=row.cost_ns,
                    money_micros=row.money_micros,
                    currency=config.currency(domain),
                ),
            )
            for domain, row in rows.items()
        ],
    )


def queue(answer: QueueAnswer) -> c.Queue:
    """One queue of a tenant."""
    head, deferral = answer.head, answer.row.deferral
    return c.Queue(
        lane=answer.lane,
        pool=answer.pool,
        domain=answer.domain,
        waiting=answer.row.waiting,
        waiting_bytes=answer.row.waiting_bytes,
        head=None if head is None else head.operation.hex(),
        head_admitted_at=None if head is None else instant(head.admitted_ms),
        deferred_on=None
        if deferral is None
        else c.Binding(
            domain=answer.domain,
            level=deferral.level,
            dimension=deferral.dimension,
            held_by=deferral.held_by,
            not_before=_at(deferral.not_before_ms),
        ),
    )


def budget(answer: LevelAnswer, *, now_ms: int, asker: Principal) -> c.Budget:
    """One level of a budget domain; what it tells of other tenants only for who sees all."""
    fares, saver, outcomes = answer.fares, answer.saver, asker.sees_all
    pause = fares if fares is not None and fares.is_paused(now_ms) else None
    return c.Budget(
        domain=answer.domain,
        tenant=answer.tenant,
        policy=answer.policy,
        config_version=answer.version,
        paused=None if pause is None else pause.pause_cause,
        paused_until=None if pause is None else _at(pause.paused_until_ms),
        outcomes=fares.outcomes if fares is not None and outcomes else None,
        bulk_reserve=_reserve(fares, answer.bulk_reserve_percent) if outcomes else None,
        saver=_saver(saver) if saver and asker.sees(saver.operation.tenant) else None,
        dimensions=[
            c.DimensionUse(
                dimension=use.config.name,
                unit=use.config.unit,
                kind=use.config.kind,
                limit=use.config.limit,
                window_ms=use.config.window_ms,
                held=use.held,
                in_use=use.in_use,
                unknown=use.unknown,
                counted=use.counted,
                free=use.config.limit - use.counted,
                currency=answer.currency if use.config.unit == "money" else None,
            )
            for use in answer.dimensions
        ],
    )


def _reserve(fares: DomainRow | None, percent: int | None) -> c.Reserve | None:
    if fares is None or percent is None:
        return None
    return c.Reserve(percent=percent, taken=fares.reserve_taken, held_back=fares.reserve_held)


def _saver(answer: SaverAnswer) -> c.Saver:
    saver, operation = answer
    return c.Saver(
        operation=saver.operation.hex(),
        tenant=saver.tenant,
        lane=saver.lane,
        since=instant(saver.since_ms),
        skips=saver.skips,
        tokens=operation.prompt_tokens + operation.output_tokens_max,
    )


def bound(minute: Minute) -> c.BoundMinute:
    """What bound in one minute."""
    return c.BoundMinute(
        minute=instant(minute.number * MINUTE_MS),
        bound=[
            c.Bound(
                level=one.level,
                dimension=one.dimension,
                held_by=one.held_by,
                since=instant(one.since_ms),
                until=instant(one.until_ms),
                samples=one.samples,
                tenants=one.tenants,
            )
            for one in minute.bindings
        ],
        further=minute.further,
    )


def member(name: str, row: MemberRow) -> c.Member:
    """One member."""
    return c.Member(
        member=name,
        member_epoch=row.member_epoch,
        pool=row.pool,
        tenant=row.tenant,
        state=row.state,
        places=row.places,
        granted=row.granted,
        leased=row.leased,
        started=row.started,
        seen_at=instant(row.seen_ms),
    )
