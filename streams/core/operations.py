"""One operation and its live attempt, as rows."""

import hashlib
from functools import lru_cache
from typing import Protocol, TypedDict

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
from schemas.inputs import Prices
from schemas.phase import Phase
from schemas.units import Micros, Millis, Nanos, Requests, Slots, Tokens

from .limits import RESULT_DIGEST_BYTES, SPEAKERS_NEAR

TERMINAL = frozenset(
    (
        Phase.SUCCEEDED,
        Phase.FAILED,
        Phase.CANCELLED,
        Phase.EXPIRED,
        Phase.REJECTED,
        Phase.DEAD,
        Phase.UNKNOWN_CLOSED,
    )
)
ATTEMPTED = frozenset((Phase.GRANTED, Phase.LEASED, Phase.STARTED, Phase.UNKNOWN))
"""Phases with a newest attempt."""


class Extra(msgspec.Struct, array_like=True, gc=False, kw_only=True):
    """Trouble, progress, and what makes a run; a row of its own would cost a read each time."""

    tries: int = 0
    """Attempts that failed or stayed unknown, since the last retry by hand."""
    throttles: int = 0
    not_before_ms: Millis | None = None
    """End of the backoff, while it is parked for that."""
    not_executed_epoch: int = 0
    """The attempt that was reconciled as not executed, last."""
    checkpoint: int = 0
    checkpoint_ref: str | None = None
    runtime_ms: Millis | None = None
    turns_max: int | None = None
    """Set for a run."""
    turns: int = 0
    """Turns that were admitted."""
    usage: list[bytes] = []
    """Digests of the usage reports that were heeded last."""
    tools: tuple[str, ...] = ()
    parent: OperationId | None = None
    prices: Prices | None = None
    """Those of the attempt that was charged last."""
    charged_money: Micros = Micros(0)


NOTHING = Extra()


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
    charged_input: Tokens = Tokens(0)
    """What that attempt was charged in the end; later usage corrects it."""
    charged_output: Tokens = Tokens(0)
    extra: Extra | None = None
    """What most operations never have."""
    result_by: bytes = b""
    """The `speaker` for that attempt; empty if nobody knows."""

    def is_newest(self, attempt: "AttemptRow") -> bool:
        """Whether no other attempt was granted since."""
        return (self.incarnation, self.epoch) == (attempt.incarnation, attempt.epoch)

    @property
    def more(self) -> Extra:
        """To read: what most operations never have."""
        return self.extra or NOTHING

    def extend(self) -> Extra:
        """To write: what most operations never have."""
        if self.extra is None:
            self.extra = Extra()
        return self.extra

    def charge(
        self, input_tokens: Tokens, output_tokens: Tokens, money: Micros, prices: Prices | None
    ) -> None:
        """What its attempt was charged in the end, and the prices at which it was."""
        self.charged_input, self.charged_output = input_tokens, output_tokens
        if prices is not None or self.extra is not None:
            extra = self.extend()
            extra.prices, extra.charged_money = prices, money

    def ended(self, by: "OfAttempt", digest: bytes = b"") -> None:
        """How an attempt of it ended is known, or will not be; `digest` says what was told."""
        self.result_epoch, self.result_digest = by.epoch, digest
        self.result_by = speaker(by.attempt, by.member, by.member_epoch)

    @property
    def charged_tokens(self) -> Tokens:
        """Input and output that were charged."""
        return Tokens(self.charged_input + self.charged_output)

    @property
    def is_run(self) -> bool:
        """Whether it is a tool loop: it reserves no provider budget itself."""
        return self.extra is not None and self.extra.turns_max is not None


class Named(TypedDict):
    """How an event or an input names one attempt."""

    tenant: TenantId
    operation: OperationId
    incarnation: int
    attempt: int
    epoch: int
    member: MemberId
    member_epoch: MemberEpoch


class OfAttempt(Protocol):
    """An event or an input that names one attempt and its member."""

    @property
    def attempt(self) -> int:
        """Numbered try."""

    @property
    def epoch(self) -> int:
        """Fencing epoch."""

    @property
    def member(self) -> MemberId:
        """Who has it."""

    @property
    def member_epoch(self) -> MemberEpoch:
        """That life of its process."""


@lru_cache(maxsize=SPEAKERS_NEAR)
def speaker(attempt: int, member: MemberId, member_epoch: MemberEpoch) -> bytes:
    """Tells whoever may speak for an attempt from everybody else, in a few bytes."""
    said = f"{attempt} {len(member)} {member} {member_epoch}"
    return hashlib.sha256(said.encode()).digest()[:RESULT_DIGEST_BYTES]


class Charge(msgspec.Struct, array_like=True, gc=False):
    """What one window was charged for a reservation."""

    level: str
    dimension: DimensionName
    amount: int
    exit_ms: Millis | None = None
    """When it leaves the window; None while unstarted, and for what is held to the end."""
    authority_epoch: int = 0
    """Epoch in which the exit was first set: a takeover since then adds its term, once."""


class Uncertain(msgspec.Struct, array_like=True, gc=False, kw_only=True):
    """What is remembered of an attempt while nobody knows how it ended."""

    hold_until_ms: Millis
    """The reservation is forfeited then."""
    proof_ms: Millis | None = None
    """The provider has ended the call by then; None where it promises nothing, or has proved it."""
    closed: bool = False
    """The reservation is closed though the outcome is unknown."""
    evidence: list[bytes] = []
    """Digests of the evidence recorded."""

    def postpone(self, by_ms: int) -> None:
        """A step of time moves what is due."""
        self.hold_until_ms = Millis(self.hold_until_ms + by_ms)
        if self.proof_ms is not None:
            self.proof_ms = Millis(self.proof_ms + by_ms)

    @property
    def due_ms(self) -> Millis:
        """When time alone has something to say."""
        return self.hold_until_ms if self.proof_ms is None else self.proof_ms


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
    prompt_tokens: Tokens
    output_tokens_max: Tokens
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
    lease_ms: Millis | None = None
    """When its own lease ends, in lease time (`State.lease_now_ms`); None without a lease."""
    lease_from: int = 0
    """Renewals of its member's leases from this number on hold for it too."""
    runtime_ms: Millis | None = None
    """When it is asked to end, in lease time; None once it was asked, and while unstarted."""
    uncertain: Uncertain | None = None
    """Set once its outcome is unknown: it then has no place and no lease."""
    lane_weight: int = 1
    lane_lift: int = 0
    prices: Prices | None = None
    """Those in force at the grant: what it used is paid at them."""

    @property
    def tokens(self) -> Tokens:
        """What it reserved, input and output."""
        return Tokens(self.prompt_tokens + self.output_tokens_max)

    @property
    def is_open(self) -> bool:
        """Whether its reservation still holds something."""
        return self.uncertain is None or not self.uncertain.closed

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
