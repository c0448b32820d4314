"""From rows of the views to the bodies that users read."""

from datetime import datetime

from projections.queries import LevelAnswer, Queries, QueueAnswer
from projections.views.members import Member as MemberRow
from projections.views.operation import Operation as OperationRow
from projections.views.tenant import Tenant as TenantRow
from schemas import bodies as b
from schemas.inputs import TenantConfig
from schemas.phase import Phase

from .problems import instant


def _at(at_ms: int | None) -> datetime | None:
    return None if at_ms is None else instant(at_ms)


def operation(asked: Queries, operation_id: bytes, row: OperationRow) -> b.Operation:
    """One operation with its place in its queue."""
    known = row.admitted_ms is not None
    return b.Operation(
        operation=operation_id.hex(),
        tenant=row.tenant,
        user=row.user if known else None,
        state=b.State(row.phase),
        pool=row.pool if known else None,
        domain=row.domain if known else None,
        lane=row.lane if known else None,
        tier=row.tier,
        connection=row.connection,
        effect=row.effect if known else None,
        prompt_tokens=row.prompt_tokens if known else None,
        output_tokens_max=row.output_tokens_max if known else None,
        payload_bytes=row.payload_bytes if known else None,
        payload_ref=row.payload_ref,
        member=row.holder or row.member,
        attempt=row.attempt,
        place=asked.place(row),
        admitted_at=_at(row.admitted_ms),
        deadline=_at(row.deadline_ms),
        granted_at=_at(row.granted_ms),
        started_at=_at(row.started_ms),
        ended_at=_at(row.ended_ms),
        cancel_requested=row.cancel_requested,
        outcome=row.outcome,
        late=row.late,
        used_prompt_tokens=row.used_prompt_tokens,
        used_output_tokens=row.used_output_tokens,
        result_ref=row.result_ref,
        error=row.error,
        code=row.code,
        detail=row.detail,
    )


def tenant(name: str, row: TenantRow, config: TenantConfig) -> b.Tenant:
    """One tenant."""
    rejected = sum(row.refusals.values())
    phases = {phase: row.phases.get(phase, 0) for phase in Phase}
    return b.Tenant(
        tenant=name,
        weight=config.weight,
        offered=row.admitted + rejected + row.duplicates + row.conflicts,
        admitted=row.admitted,
        rejected=rejected,
        duplicates=row.duplicates,
        conflicts=row.conflicts,
        refusals=row.refusals,
        waiting=phases[Phase.WAITING],
        waiting_bytes=row.waiting_bytes,
        waiting_count_max=config.waiting_count_max,
        waiting_bytes_max=config.waiting_bytes_max,
        parked=phases[Phase.PARKED],
        granted=phases[Phase.GRANTED],
        started=phases[Phase.STARTED],
        succeeded=phases[Phase.SUCCEEDED],
        failed=phases[Phase.FAILED],
        cancelled=phases[Phase.CANCELLED],
        expired=phases[Phase.EXPIRED],
        grants=row.grants,
        starts=row.starts,
        settled=row.settled,
        tokens_reserved=row.tokens_reserved,
        tokens_used=row.tokens_used,
        cost_ns=row.cost_ns,
    )


def queue(answer: QueueAnswer) -> b.Queue:
    """One queue of a tenant."""
    head, deferral = answer.head, answer.row.deferral
    return b.Queue(
        lane=answer.lane,
        pool=answer.pool,
        domain=answer.domain,
        waiting=answer.row.waiting,
        waiting_bytes=answer.row.waiting_bytes,
        head=None if head is None else head.operation.hex(),
        head_admitted_at=None if head is None else instant(head.admitted_ms),
        deferred_on=None
        if deferral is None
        else b.Binding(
            domain=answer.domain,
            level=deferral.level,
            dimension=deferral.dimension,
            not_before=_at(deferral.not_before_ms),
        ),
    )


def budget(answer: LevelAnswer) -> b.Budget:
    """One level of a budget domain."""
    return b.Budget(
        domain=answer.domain,
        tenant=answer.tenant,
        policy=answer.policy,
        config_version=answer.version,
        dimensions=[
            b.DimensionUse(
                dimension=use.config.name,
                unit=use.config.unit,
                kind=use.config.kind,
                limit=use.config.limit,
                window_ms=use.config.window_ms,
                held=use.held,
                in_use=use.in_use,
                counted=use.counted,
                free=use.config.limit - use.counted,
            )
            for use in answer.dimensions
        ],
    )


def member(name: str, row: MemberRow) -> b.Member:
    """One member."""
    return b.Member(
        member=name,
        member_epoch=row.member_epoch,
        pool=row.pool,
        tenant=row.tenant,
        state=row.state,
        places=row.places,
        granted=row.granted,
        started=row.started,
        seen_at=instant(row.seen_ms),
    )
