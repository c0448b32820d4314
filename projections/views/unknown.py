"""Unknown outcomes: attempts that still hold something, or whose operation waits for evidence.

A row stands for one attempt, the newest of its operation or an older one, until its reservation is
closed and its operation no longer waits for it. It remembers what the attempt reserved, since the
operation goes on to other attempts.
"""

import msgspec

from projections.keys import join, names
from projections.projection import Projection, Seen
from schemas import events as e
from schemas.ids import OPERATION_ID_BYTES
from schemas.phase import Phase

from .doubt import Doubt, doubt_of, evidence_of
from .operation import Operation, names_newest


class Unknown(msgspec.Struct, array_like=True, kw_only=True):
    """One attempt whose outcome is unknown."""

    pool: str = ""
    domain: str = ""
    lane: str = ""
    effect: str = ""
    attempt: int = 0
    member: str = ""
    member_epoch: str = ""
    granted_ms: int | None = None
    started_ms: int | None = None
    requests: int = 0
    tokens: int = 0
    prompt_tokens: int = 0
    output_tokens_max: int = 0
    slots: int = 0
    money_micros: int = 0
    tenant_level: bool = False
    send_within_ms: int = 0
    latest_arrival_ms: int | None = None
    doubt: Doubt | None = None
    held: bool = True
    """The reservation is not closed yet."""
    awaited: bool = True
    """The operation waits for this outcome; False once it goes on without it."""


Reserved = Operation | Unknown
"""Who knows what an attempt reserved: its operation while it is the newest, else its row here."""


OfAttempt = (
    e.SendObserved
    | e.EvidenceRecorded
    | e.OutcomeReconciled
    | e.ReservationSettled
    | e.ReservationReleased
    | e.ReservationForfeited
)
"""Events that may be about an attempt that is no longer the newest."""


def unknown_key(event: OfAttempt | e.OutcomeMarkedUnknown) -> bytes:
    """The key of an attempt's row, from any event that names the attempt."""
    return join(event.tenant) + event.operation + join(event.incarnation, event.epoch)


def parse_unknown(key: bytes) -> tuple[str, bytes, int, int]:
    """Tenant, operation, incarnation and epoch of a key."""
    end = len(key) - OPERATION_ID_BYTES - 16
    operation, numbers = key[end : end + OPERATION_ID_BYTES], key[-16:]
    incarnation, epoch = (int.from_bytes(part, "big") for part in (numbers[:8], numbers[8:]))
    return names(key[:end])[0], operation, incarnation, epoch


def _by_attempt(seen: Seen) -> bytes | None:
    event, known = seen.event, seen.reserved
    begins = isinstance(event, e.OutcomeMarkedUnknown)
    return unknown_key(event) if begins or (known is not None and known.doubt is not None) else None


def _begin(event: e.OutcomeMarkedUnknown, seen: Seen) -> Unknown:
    row = seen.operation
    assert row is not None and names_newest(row, event), "Expected a start"  # noqa: PT018
    return Unknown(
        pool=row.pool,
        domain=row.domain,
        lane=row.lane,
        effect=row.effect,
        attempt=row.attempt,
        member=event.member,
        member_epoch=event.member_epoch,
        granted_ms=row.granted_ms,
        started_ms=row.started_ms,
        requests=row.requests,
        tokens=row.tokens,
        prompt_tokens=row.prompt_tokens,
        output_tokens_max=row.output_tokens_max,
        slots=row.slots,
        money_micros=row.money_micros,
        tenant_level=row.tenant_level,
        send_within_ms=row.send_within_ms,
        latest_arrival_ms=row.latest_arrival_ms,
        doubt=doubt_of(event, seen.time_ms),
    )


def _apply(row: Unknown, seen: Seen) -> Unknown | None:
    if isinstance(seen.event, e.OutcomeMarkedUnknown):
        return _begin(seen.event, seen)
    if row.doubt is None:
        return None  # closed before, or never in doubt
    match event := seen.event:
        case e.SendObserved():
            row.latest_arrival_ms = event.latest_arrival_ms
        case e.EvidenceRecorded():
            row.doubt.evidence.append(evidence_of(event, seen.time_ms))
        case e.OutcomeReconciled():
            row.doubt.evidence.append(evidence_of(event, seen.time_ms))
            row.awaited = row.awaited and seen.after is Phase.UNKNOWN
        case e.ReservationSettled() | e.ReservationReleased() | e.ReservationForfeited():
            row.held = False
        case _:
            row.awaited = False  # a result, another attempt, or an operator is called
    return row if row.held or row.awaited else None


UNKNOWNS = Projection(
    name="unknown",
    number=12,
    version=2,
    row=Unknown,
    wants=(
        e.OutcomeMarkedUnknown,
        e.SendObserved,
        e.EvidenceRecorded,
        e.OutcomeReconciled,
        e.ResultRecorded,
        e.RetryScheduled,
        e.OperatorActionNeeded,
        e.ReservationSettled,
        e.ReservationReleased,
        e.ReservationForfeited,
    ),
    key=_by_attempt,
    initial=Unknown,
    apply=_apply,
)
