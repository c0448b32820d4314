"""What became of each operation, and all operations of a tenant, newest first."""

from typing import Any

import msgspec

from projections.keys import NUMBER_MAX, join
from projections.projection import Projection, Seen
from schemas import events as e
from schemas.phase import Phase

LIVE = frozenset((Phase.WAITING, Phase.PARKED, Phase.GRANTED, Phase.STARTED))
ENDED = frozenset((Phase.SUCCEEDED, Phase.FAILED, Phase.CANCELLED, Phase.EXPIRED))

_AFTER: dict[type, Phase] = {
    e.OperationAdmitted: Phase.WAITING,
    e.OperationRejected: Phase.REJECTED,
    e.OperationParked: Phase.PARKED,
    e.OperationUnparked: Phase.WAITING,
    e.GrantIssued: Phase.GRANTED,
    e.GrantExpired: Phase.WAITING,
    e.GrantRevoked: Phase.WAITING,
    e.StartAccepted: Phase.STARTED,
    e.OperationCancelled: Phase.CANCELLED,
    e.OperationExpired: Phase.EXPIRED,
}
_AFTER_RESULT = {
    "success": Phase.SUCCEEDED,
    "terminal": Phase.FAILED,
    "policy_denied": Phase.FAILED,
    "cancelled": Phase.CANCELLED,
    "not_sent": Phase.WAITING,
}


def phase_after(event: Any, operation: "Operation | None") -> Phase | None:
    """The phase after the event; most events leave it as it was."""
    if isinstance(event, e.ResultRecorded):
        return _after_result(event, operation)
    if isinstance(event, e.OperationForgotten):
        return None
    return _AFTER.get(type(event), None if operation is None else operation.phase)


def _after_result(event: e.ResultRecorded, operation: "Operation | None") -> Phase:
    phase = _AFTER_RESULT[event.outcome]
    asked = operation is not None and operation.cancel_requested
    return Phase.CANCELLED if asked and phase is Phase.FAILED else phase


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
    attempt: int = 0
    holder: str | None = None
    """The member of the newest attempt."""
    requests: int = 0
    tokens: int = 0
    slots: int = 0
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


_FROM_SUBMISSION = (
    *("tenant", "user", "pool", "domain", "lane", "tier", "connection", "effect"),
    *("prompt_tokens", "output_tokens_max", "payload_bytes", "payload_ref", "payload_digest"),
    *("member", "sequence", "deadline_ms"),
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
    row.attempt = event.attempt
    row.holder = event.member
    row.requests, row.tokens, row.slots = event.requests, event.tokens, event.slots
    row.tenant_level = bool(seen.config.tenant_level(row.tenant, row.domain).dimensions)
    row.granted_ms = seen.time_ms
    row.started_ms = row.latest_arrival_ms = None
    row.code = row.outcome = None


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
        case e.OperationParked() | e.OperationCancelled() | e.OperationExpired():
            row.code = event.reason
        case e.OperationUnparked():
            row.code = None
        case e.CancelSignalled():
            row.cancel_requested = True
        case _:
            _attempted(row, seen)
    assert seen.after is not None, "Expected an operation that is not forgotten"
    row.phase = seen.after
    if seen.after in ENDED:
        row.ended_ms = row.ended_ms or seen.time_ms
    return row


def _attempted(row: Operation, seen: Seen) -> None:
    match event := seen.event:
        case e.GrantIssued():
            _granted(row, event, seen)
        case e.StartAccepted():
            row.started_ms = seen.time_ms
            row.send_within_ms = event.send_within_ms
            row.latest_arrival_ms = event.latest_arrival_ms
        case e.SendObserved():
            row.latest_arrival_ms = event.latest_arrival_ms
        case e.ResultRecorded():
            _resulted(row, event)
        case _:
            pass  # a grant that ended unstarted only changes the phase


def _by_operation(seen: Seen) -> bytes | None:
    operation: bytes = seen.event.operation
    return operation


OPERATIONS = Projection(
    name="operation",
    number=1,
    version=1,
    row=Operation,
    wants=(
        *_AFTER,
        e.OperationForgotten,
        e.SendObserved,
        e.ResultRecorded,
        e.CancelSignalled,
    ),
    key=_by_operation,
    initial=Operation,
    apply=_apply,
)


def listed_at(row: Operation) -> bytes:
    """How the key of its listing ends, newest first; of one that is not listed, no key's end."""
    offset, index = row.admitted_at or (-1, -1)
    return join(NUMBER_MAX - 1 - offset, NUMBER_MAX - 1 - index)


def _listed(seen: Seen) -> bytes | None:
    event = seen.event
    if isinstance(event, e.OperationForgotten):
        assert seen.operation is not None, "Expected to know what is forgotten"
        return join(event.tenant) + listed_at(seen.operation)
    if isinstance(event, e.OperationRejected) and not event.binds_key:
        return None  # the same key is decided anew (R188): nothing to list yet
    return join(event.tenant, NUMBER_MAX - 1 - seen.offset, NUMBER_MAX - 1 - seen.index)


def _list(_: bytes, seen: Seen) -> bytes | None:
    if isinstance(seen.event, e.OperationForgotten):
        return None
    return _by_operation(seen)


LISTED = Projection(
    name="listed",
    number=2,
    version=1,
    row=bytes,
    wants=(e.OperationAdmitted, e.OperationRejected, e.OperationForgotten),
    key=_listed,
    initial=bytes,
    apply=_list,
)
