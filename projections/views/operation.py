"""What became of each operation: its submission, its newest attempt, and how it stands."""

from typing import Any

import msgspec

from projections.projection import Projection, Seen
from schemas import events as e
from schemas.phase import Phase

from .doubt import Doubt, Evidence, doubt_of, evidence_of
from .phases import ENDED, MOVES


class Operation(msgspec.Struct, array_like=True, kw_only=True):
    """One operation id; its newest attempt's fields stay until the next grant."""

    phase: Phase = Phase.WAITING
    tenant: str = ""
    user: str = ""
    pool: str = ""
    domain: str = ""
    lane: str = ""
    tier: str | None = None
    connection: str | None = None
    effect: str = ""
    prompt_tokens: int = 0
    output_tokens_max: int = 0
    payload_bytes: int = 0
    payload_ref: str | None = None
    payload_digest: bytes | None = None
    member: str | None = None
    """The submitter's own member, for pool `self`."""
    runtime_ms: int | None = None
    turns_max: int | None = None
    """Set for a run."""
    tools: tuple[str, ...] = ()
    parent: bytes | None = None
    """The run that this turn belongs to."""
    incarnation: int = 0
    sequence: int = 0
    admitted_at: tuple[int, int] | None = None
    """Offset and index of the admission, or of the refusal that is bound to the key."""
    answered: tuple[int, int] | None = None
    """Partition and offset of the submission that was admitted or refused last."""
    admitted_ms: int | None = None
    deadline_ms: int | None = None
    binds_key: bool = True
    code: str | None = None
    detail: str | None = None
    level: str | None = None
    dimension: str | None = None
    retry_at_ms: int | None = None
    cancel_requested: bool = False
    ended_ms: int | None = None
    ended_at: tuple[int, int] | None = None
    """Offset and index of its last end, while that stands."""
    not_before_ms: int | None = None
    """End of the backoff, while it is parked for that."""
    checkpoint: int = 0
    checkpoint_ref: str | None = None
    entitlement: str = ""
    """`held` from its first grant, `committed` from its first start."""
    attempt: int = 0
    epoch: int = 0
    holder: str | None = None
    """The member of the newest attempt."""
    holder_epoch: str | None = None
    """That life of its process."""
    requests: int = 0
    tokens: int = 0
    slots: int = 0
    money_micros: int = 0
    charged_money_micros: int = 0
    """What the attempt that was charged last had reserved; later usage of it is paid at its prices.
    """
    tenant_level: bool = False
    """The tenant had a level of its own in the domain when this attempt was granted."""
    granted_ms: int | None = None
    started_ms: int | None = None
    send_within_ms: int = 0
    latest_arrival_ms: int | None = None
    outcome: str | None = None
    late: bool = False
    used_prompt_tokens: int | None = None
    used_output_tokens: int | None = None
    result_ref: str | None = None
    error: str | None = None
    doubt: Doubt | None = None
    """Set once the outcome of the newest attempt was unknown."""
    reconciled: Evidence | None = None
    """What made it known, or bounded it, last."""


_FROM_SUBMISSION = (
    *("tenant", "user", "pool", "domain", "lane", "tier", "connection", "effect"),
    *("prompt_tokens", "output_tokens_max", "payload_bytes", "payload_ref", "payload_digest"),
    *("member", "incarnation", "sequence", "deadline_ms"),
    *("runtime_ms", "turns_max", "tools", "parent"),
)


def _admitted(event: e.OperationAdmitted, seen: Seen) -> Operation:
    assert seen.source is not None, "Expected an admission to be caused by a submission"
    return Operation(
        **{name: getattr(event, name) for name in _FROM_SUBMISSION},
        admitted_at=(seen.offset, seen.index),
        answered=(seen.source.partition, seen.source.offset),
        admitted_ms=seen.time_ms,
    )


def _rejected(event: e.OperationRejected, seen: Seen) -> Operation:
    assert seen.source is not None, "Expected a refusal to be caused by a submission"
    return Operation(
        phase=Phase.REJECTED,
        tenant=event.tenant,
        payload_digest=event.payload_digest,
        member=event.member,
        admitted_at=(seen.offset, seen.index) if event.binds_key else None,
        answered=(seen.source.partition, seen.source.offset),
        binds_key=event.binds_key,
        code=event.code,
        detail=event.detail,
        level=event.level,
        dimension=event.dimension,
        retry_at_ms=event.retry_at_ms,
        ended_ms=seen.time_ms,
    )


def _granted(row: Operation, event: e.GrantIssued, seen: Seen) -> None:
    row.attempt, row.epoch = event.attempt, event.epoch
    row.holder, row.holder_epoch = event.member, event.member_epoch
    row.requests, row.tokens, row.slots = event.requests, event.tokens, event.slots
    row.money_micros = event.money_micros
    row.tenant_level = bool(seen.config.tenant_level(row.tenant, row.domain).dimensions)
    row.granted_ms = seen.time_ms
    row.started_ms = row.latest_arrival_ms = None
    row.code = row.outcome = row.doubt = row.reconciled = None
    row.entitlement = row.entitlement or "held"


def _resulted(row: Operation, event: e.ResultRecorded) -> None:
    row.outcome = event.outcome
    row.late = event.late
    row.used_prompt_tokens = event.prompt_tokens
    row.used_output_tokens = event.output_tokens
    row.result_ref = event.result_ref
    row.error = event.error


def _apply(row: Operation, seen: Seen) -> Operation | None:
    match event := seen.event:
        case e.OperationAdmitted():
            return _admitted(event, seen)
        case e.OperationRejected():
            return _rejected(event, seen)
        case e.OperationForgotten():
            return None
        case (
            e.OperationParked()
            | e.OperationCancelled()
            | e.OperationExpired()
            | e.OperationDeadLettered()
            | e.OperatorActionNeeded()
        ):
            row.code = event.reason
        case e.RetryScheduled():
            row.code, row.not_before_ms = event.cause, event.not_before_ms
        case e.OperationUnparked():
            row.code = row.not_before_ms = None
        case e.CancelSignalled():
            row.cancel_requested = True
        case e.ManualRetryAccepted():
            row.deadline_ms, row.cancel_requested, row.code = event.deadline_ms, False, None
        case e.CheckpointRecorded():
            row.checkpoint, row.checkpoint_ref = event.number, event.state_ref
        case _:
            _attempted(row, seen)
    assert seen.after is not None, "Expected an operation that is not forgotten"
    return _moved(row, seen, seen.after)


def _moved(row: Operation, seen: Seen, after: Phase) -> Operation:
    row.phase = after
    if after is not Phase.PARKED:
        row.not_before_ms = None
    if after not in ENDED:
        row.ended_ms = row.ended_at = None
    elif seen.before is not after:
        row.ended_ms, row.ended_at = seen.time_ms, (seen.offset, seen.index)
    return row


def _attempted(row: Operation, seen: Seen) -> None:
    match event := seen.event:
        case e.GrantIssued():
            _granted(row, event, seen)
        case e.LeaseClaimed():  # in an open pool nobody held the grant before
            row.holder, row.holder_epoch = event.member, event.member_epoch
        case e.StartAccepted():
            row.started_ms = seen.time_ms
            row.send_within_ms = event.send_within_ms
            row.latest_arrival_ms = event.latest_arrival_ms
            row.entitlement = "committed"
        case e.SendObserved():
            if names_newest(row, event):
                row.latest_arrival_ms = event.latest_arrival_ms
        case e.ResultRecorded():
            _resulted(row, event)
        case e.OutcomeMarkedUnknown():
            row.doubt, row.error = doubt_of(event, seen.time_ms), event.error
        case e.EvidenceRecorded() | e.OutcomeReconciled() if names_newest(row, event):
            _found(row, event, seen)
        case e.ReservationSettled() | e.ReservationForfeited() | e.ReservationReleased():
            _closed(row, event)
        case _:
            pass  # a grant that ended unstarted only changes the phase


def _closed(
    row: Operation,
    event: e.ReservationSettled | e.ReservationForfeited | e.ReservationReleased,
) -> None:
    is_charged = not isinstance(event, e.ReservationReleased) or event.reason == "not_sent"
    if is_charged and names_newest(row, event):
        row.charged_money_micros = row.money_micros


def _found(row: Operation, event: e.EvidenceRecorded | e.OutcomeReconciled, seen: Seen) -> None:
    found = evidence_of(event, seen.time_ms)
    if row.doubt is not None:
        row.doubt.evidence.append(found)
    if isinstance(event, e.OutcomeReconciled):
        row.reconciled = found
        row.used_prompt_tokens = event.prompt_tokens
        row.used_output_tokens = event.output_tokens
        row.result_ref = event.result_ref
        if seen.after is not seen.before:
            row.code = None


def names_newest(row: Operation, event: Any) -> bool:
    """Whether the event is about the newest attempt of the operation."""
    return (row.incarnation, row.epoch) == (event.incarnation, event.epoch)


def by_operation(seen: Seen) -> bytes | None:
    """The key of rows by operation id."""
    operation: bytes = seen.event.operation
    return operation


OPERATIONS = Projection(
    name="operation",
    number=1,
    version=4,
    row=Operation,
    wants=(
        *MOVES,
        e.OperationForgotten,
        e.SendObserved,
        e.CancelSignalled,
        e.CheckpointRecorded,
        e.EvidenceRecorded,
        e.ReservationSettled,
        e.ReservationForfeited,
        e.ReservationReleased,
    ),
    key=by_operation,
    initial=Operation,
    apply=_apply,
)
