"""What the audit remembers of each operation and of each reservation."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from schemas import events as e
from schemas.ids import (
    DomainId,
    MemberEpoch,
    MemberId,
    OperationId,
    PayloadDigest,
    PoolId,
    TenantId,
    UserId,
)
from schemas.inputs import Prices
from schemas.units import Millis

WAITING, PARKED, GRANTED, LEASED = "waiting", "parked", "granted", "leased"
STARTED, UNKNOWN = "started", "unknown"
NOBODY = MemberId("")
"""Whom the grants of an open pool name; who claims one first, has it (R170)."""
LIVE = frozenset({WAITING, PARKED, GRANTED, LEASED, STARTED, UNKNOWN})
SUCCEEDED, FAILED, CANCELLED, EXPIRED = "succeeded", "failed", "cancelled", "expired"
DEAD, UNKNOWN_CLOSED = "dead", "unknown_closed"
ENDED_BY_RESULT = {
    "success": SUCCEEDED,
    "terminal": FAILED,
    "policy_denied": FAILED,
    "cancelled": CANCELLED,
}
REFUSED = frozenset({"throttled", "quota_exhausted", "reauthentication_required"})
"""Outcomes of a call that the provider did not take: no attempt is counted."""
OUTCOMES = frozenset({*ENDED_BY_RESULT, *REFUSED, "not_sent", "retryable", "unknown"})
"""Closed (R77)."""


class Charged(NamedTuple):
    """Tokens and money of one call."""

    input_tokens: int
    output_tokens: int
    money: int

    @property
    def tokens(self) -> int:
        """Input and output."""
        return self.input_tokens + self.output_tokens


NOTHING = Charged(0, 0, 0)

Queue = tuple[TenantId, str, PoolId, DomainId]
"""Tenant, lane, pool and domain."""
Life = tuple[MemberId, MemberEpoch]
"""One life of a member."""


class Key(NamedTuple):
    """Names one reservation for ever: epochs begin anew with each incarnation."""

    operation: OperationId
    incarnation: int
    epoch: int


def key_of(word: Any) -> Key:
    """Which attempt an event or an input is about."""
    return Key(word.operation, word.incarnation, word.epoch)


def attempt_of(word: Any) -> tuple[Any, ...]:
    """Everything by which an event or an input names an attempt and its holder."""
    return (
        word.tenant,
        word.operation,
        word.incarnation,
        word.attempt,
        word.epoch,
        word.member,
        word.member_epoch,
    )


def said_of(word: Any) -> tuple[Any, ...]:
    """What a result says, so that a repeat is told from another one."""
    return key_of(word), word.member, word.member_epoch, word.outcome, word.result_ref


@dataclass(slots=True, kw_only=True)
class Operation:
    """One incarnation of an operation id."""

    incarnation: int
    sequence: int
    queue: Queue
    member: MemberId | None
    user: UserId
    reserved: Charged
    """Prompt and output ceiling: what a call reserves (R49); money depends on when."""
    deadline_ms: Millis
    digest: PayloadDigest
    effect: str
    runtime_ms: Millis | None
    turns_max: int | None
    """Set for a run, which reserves nothing itself."""
    state: str = WAITING
    epoch: int = 0
    """The highest fencing epoch granted."""
    started_attempt: int = 0
    """The highest attempt with an accepted start."""
    cancelling: bool = False
    """Started work was asked to end: unless it succeeded, it ends as cancelled."""
    ended_ms: int = 0
    """When it became terminal; the guard horizon counts from then."""
    committed: bool = False
    """Its entitlement is used up."""
    doubts: set[int] = field(default_factory=set)
    """Epochs that started and may have had an effect, since the last retry by hand."""
    tries: int = 0
    """Attempts that failed or stayed unknown, since then."""
    throttles: int = 0
    """Calls that the provider did not take, since then."""
    not_before_ms: int | None = None
    """End of its backoff, while it is parked for that."""
    checkpoint: int = 0
    checkpoint_ref: str | None = None
    turns: int = 0
    """Turns that were admitted for it, if it is a run."""
    said: tuple[Any, ...] | None = None
    """The result that was recorded last."""
    said_epoch: int = 0
    """Of which attempt."""
    charged_epoch: int = 0
    charged: Charged = NOTHING
    """What the attempt of this epoch was charged in the end."""
    charged_by: tuple[Any, ...] | None = None
    """How that attempt and its member are named; None if nobody knows."""
    prices: Prices | None = None
    """At which it was."""
    usage: set[str] = field(default_factory=set)
    """Usage reports that were heeded."""


class Refused(NamedTuple):
    """A key bound to a permanent refusal."""

    digest: PayloadDigest
    ended_ms: int


@dataclass(slots=True)
class Reservation:
    """One grant with what it holds, until it is closed and its outcome no longer matters."""

    grant: e.GrantIssued
    """In an open pool with the member that claimed it."""
    prices: Prices | None = None
    """Those of the configuration at the grant; none for a run."""
    granted_ms: int = 0
    claimed: bool = False
    lease_ms: int | None = None
    """When its lease ends, in lease time; None without one."""
    lapsed: bool = False
    """Its lease ended without renewal."""
    accepted_ms: int | None = None
    """When its start was accepted; None while unstarted."""
    runs_until_ms: int | None = None
    """When it has run for as long as it may, in lease time."""
    latest_ms: int = 0
    """The last instant at which the call can arrive, once started."""
    claim_by_ms: int = 0
    hold_until_ms: int | None = None
    """Its outcome is unknown, and it is forfeited then."""
    call_ms_max: Millis | None = None
    """The provider's longest call, as it was configured when the outcome became unknown."""
    evidence: set[str] = field(default_factory=set)
    ended: str | None = None
    """How the grant or the attempt ended: expired, revoked, not_sent, known or forfeited."""
    closed: str | None = None
    """How the reservation was closed: expired, released, settled or forfeited."""

    @property
    def life(self) -> Life:
        """Who holds it."""
        return self.grant.member, self.grant.member_epoch

    @property
    def is_uncertain(self) -> bool:
        """Whether nobody knows how it ended."""
        return self.hold_until_ms is not None
