"""From rows about operations to the bodies that users read."""

from datetime import datetime

from projections.attempts import SlotAnswer, UnknownAnswer
from projections.queries import Queries
from projections.views.doubt import Doubt as DoubtRow
from projections.views.doubt import Evidence as EvidenceRow
from projections.views.operation import Operation as OperationRow
from schemas import bodies as b
from schemas import operator_bodies as o
from schemas.journal import Position

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
        runtime_ms=row.runtime_ms,
        turns_max=row.turns_max,
        turns=asked.turns(operation_id, row),
        tools=row.tools,
        parent=None if row.parent is None else row.parent.hex(),
        attempt=row.attempt,
        checkpoint=row.checkpoint or None,
        checkpoint_ref=row.checkpoint_ref,
        place=asked.place(row),
        admitted_at=_at(row.admitted_ms),
        deadline=_at(row.deadline_ms),
        granted_at=_at(row.granted_ms),
        started_at=_at(row.started_ms),
        lease_expires_at=_at(asked.lease_expires_ms(operation_id, row)),
        not_before=_at(row.not_before_ms),
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
        unknown=None if row.doubt is None else doubt(row.doubt, row.reconciled),
    )


def doubt(row: DoubtRow, reconciled: EvidenceRow | None) -> b.Doubt:
    """Why an outcome is or was unknown."""
    return b.Doubt(
        cause=row.cause,
        since=instant(row.since_ms),
        hold_until=instant(row.hold_until_ms),
        error=row.error,
        evidence=[
            b.Evidence(
                at=instant(one.at_ms),
                source=one.source,
                verdict=one.verdict,
                confidence=one.confidence,
                evidence=one.evidence,
                author=one.author,
                reason=one.reason,
            )
            for one in row.evidence
        ],
        reconciled_by=None if reconciled is None else reconciled.source,
    )


def unknown(asked: Queries, answer: UnknownAnswer) -> o.Unknown:
    """One attempt whose outcome is unknown."""
    attempt, known = answer.row, asked.operation(answer.operation)
    assert attempt.doubt is not None, "Expected an attempt in doubt"
    return o.Unknown(
        operation=answer.operation.hex(),
        tenant=answer.tenant,
        state=None if known is None else known.phase,
        domain=attempt.domain,
        pool=attempt.pool,
        effect=attempt.effect,
        attempt=attempt.attempt,
        epoch=answer.epoch,
        member=attempt.member,
        age_ms=max(0, asked.time_ms - answer.since_ms),
        overdue=attempt.held and asked.time_ms > attempt.doubt.hold_until_ms,
        awaited=attempt.awaited,
        held=attempt.held,
        slots=attempt.slots if attempt.held else 0,
        tokens=attempt.tokens if attempt.held else 0,
        started_at=_at(attempt.started_ms),
        unknown=doubt(attempt.doubt, None),
    )


def slot(asked: Queries, answer: SlotAnswer) -> o.Slot:
    """The slots of one attempt."""
    return o.Slot(
        operation=answer.operation.hex(),
        tenant=answer.tenant,
        domain=answer.row.domain,
        pool=answer.row.pool,
        member=answer.member,
        attempt=answer.row.attempt,
        state=answer.phase,
        slots=answer.row.slots,
        tokens=answer.row.tokens,
        held_since=instant(answer.since_ms),
        held_ms=max(0, asked.time_ms - answer.since_ms),
        until=_at(answer.until_ms),
    )


def history(asked: Queries, operation_id: bytes) -> o.History:
    """What happened to one operation."""
    found = asked.history(operation_id)
    here = asked.position
    return o.History(
        operation=operation_id.hex(),
        items=[
            o.Step(
                position=str(Position(here.cell, here.generation, *step.at)),
                at=instant(step.time_ms),
                type=step.type,
                attempt=step.attempt,
                member=step.member,
                detail=step.detail,
            )
            for step in found.steps
        ],
        dropped=found.dropped,
    )
