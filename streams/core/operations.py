"""One operation and its live attempt, as rows."""

from typing import TypedDict

import msgspec

from schemas.ids import (
    DimensionName,
    DomainId,
    MemberEpoch,
    MemberId,
    OperationId,
    PayloadDigest,
    PoolId,
    TenantId,
    UserId,
)
from schemas.phase import Phase
from schemas.units import Millis, Nanos, Requests, Slots, Tokens

TERMINAL = frozenset(
    (Phase.SUCCEEDED, Phase.FAILED, Phase.CANCELLED, Phase.EXPIRED, Phase.REJECTED)
)


class OperationRow(msgspec.Struct, array_like=True, gc=False, kw_only=True):
    """What is known of an operation id; kept until the guard horizon has passed."""

    phase: Phase
    tenant: TenantId
    payload_digest: PayloadDigest
    incarnation: int = 0
    code: str | None = None
    """Why it was refused."""
    forget_ms: Millis | None = None
    """When the duplicate guard ends; None while it is live."""
    sequence: int = 0
    user: UserId = UserId("")
    pool: PoolId = PoolId("")
    domain: DomainId = DomainId("")
    lane: str = ""
    tier: str | None = None
    connection: str | None = None
    effect: str = ""
    prompt_tokens: Tokens = Tokens(0)
    output_tokens_max: Tokens = Tokens(0)
    payload_bytes: int = 0
    payload_ref: str | None = None
    deadline_ms: Millis = Millis(0)
    member: MemberId | None = None
    epoch: int = 0
    """The last fencing epoch given; never goes back."""
    starts: int = 0
    not_sent: int = 0
    cancel_reason: str | None = None
    """Set once cancellation was signalled to started work."""
    result_epoch: int = 0
    """The attempt whose result was recorded last."""
    result_digest: bytes = b""
    """What that result said, so that a repeat is told from a conflict; empty if there was none."""


class Named(TypedDict):
    """How an event or an input names one attempt."""

    tenant: TenantId
    operation: OperationId
    incarnation: int
    attempt: int
    epoch: int
    member: MemberId
    member_epoch: MemberEpoch


class Charge(msgspec.Struct, array_like=True, gc=False):
    """What one window was charged for a reservation."""

    level: str
    dimension: DimensionName
    amount: int
    exit_ms: Millis | None = None
    """When it leaves the window; None while unstarted, and for what is held to the end."""
    authority_epoch: int = 0
    """Epoch in which the exit was set: a takeover since then has moved it once."""


class AttemptRow(msgspec.Struct, array_like=True, gc=False, kw_only=True):
    """The newest attempt of an operation while it is granted or started, with its reservation."""

    tenant: TenantId
    domain: DomainId
    lane: str
    incarnation: int
    attempt: int
    epoch: int
    member: MemberId
    member_epoch: MemberEpoch
    granted_ms: Millis
    claim_by_ms: Millis
    requests: Requests
    tokens: Tokens
    slots: Slots
    cost_ns: Nanos
    weight: int
    lift: int
    config_version: int
    charges: list[Charge]
    accepted_ms: Millis | None = None
    """When the start was accepted, less all time steps until then; None while unstarted."""
    send_within_ms: Millis = Millis(0)
    latest_arrival_ms: Millis | None = None
    """Last instant of arrival, less all time steps until then."""
    observed: bool = False
    """The send delay was reported; a second report changes nothing."""

    def named(self, operation: OperationId) -> Named:
        """The fields by which every event names this attempt."""
        return Named(
            tenant=self.tenant,
            operation=operation,
            incarnation=self.incarnation,
            attempt=self.attempt,
            epoch=self.epoch,
            member=self.member,
            member_epoch=self.member_epoch,
        )
