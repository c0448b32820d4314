"""What operators read and write over HTTP: unknown outcomes, dead letters, what happened."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from .bodies import Doubt, Operation
from .body import REASON_CHARS_MAX, Count, Instant, Reply, Request
from .phase import Phase

Reason = Annotated[str, Field(min_length=1, max_length=REASON_CHARS_MAX)]
Verdict = Literal["completed", "failed", "not_executed", "abandoned"]
"""What an operator may say became of an unknown outcome."""


class Unknown(Reply):
    """One attempt whose outcome is unknown: the newest of its operation, or an older one."""

    operation: str
    tenant: str
    state: Phase | None
    """Of the operation; null if it is not remembered any more."""
    domain: str
    pool: str
    effect: str
    attempt: int
    epoch: int
    """Names the attempt, for `:reconcile`."""
    member: str
    """Who held it."""
    age_ms: int
    """Since its outcome is unknown, by the time of the last entry."""
    overdue: bool
    """Its bound has passed, and its reservation is still held: a fault."""
    awaited: bool
    """The operation waits for it; false once it went on without."""
    held: bool
    """Its reservation is still held: `slots` and `tokens`."""
    slots: int
    tokens: int
    started_at: Instant | None
    unknown: Doubt


class Unknowns(Reply):
    """One page, oldest first."""

    items: list[Unknown]
    next: str | None = None


class Slot(Reply):
    """What one attempt holds of its domain's slots."""

    operation: str
    tenant: str
    domain: str
    pool: str
    member: str
    attempt: int
    state: Phase
    """granted, leased, started or unknown."""
    slots: int
    tokens: int
    held_since: Instant
    held_ms: int
    """By the time of the last entry."""
    until: Instant | None
    """When the claim, the lease or the hold ends, if nothing happens before."""


class Slots(Reply):
    """One page, held longest first."""

    items: list[Slot]
    next: str | None = None


class Reconcile(Request):
    """`POST /v1/unknowns/{operation}:reconcile`."""

    model_config = ConfigDict(serialize_by_alias=True)

    verdict: Verdict = Field(alias="as")
    reason: Reason
    epoch: Count | None = None
    """Which attempt; without one the newest."""
    prompt_tokens: Count | None = None
    """What it used, if that is known; else it is charged as reserved."""
    output_tokens: Count | None = None
    result_ref: Annotated[str, Field(max_length=REASON_CHARS_MAX)] | None = None


class Retry(Request):
    """`POST /v1/operations/{id}:retry`."""

    reason: Reason
    start_within_ms: Annotated[Count, Field(ge=1)]
    """Its new deadline."""


class Asked(Reply):
    """The wish is on the log; whether it applied the operation will tell."""

    operation: str
    state: Phase
    """The state when the wish was sent."""
    input: str
    """For `Evenhand-At-Least`."""


class DeadLetters(Reply):
    """One page of operations that await a person: dead, or closed without knowing."""

    items: list[Operation]
    next: str | None = None


class Step(Reply):
    """One event of an operation."""

    position: str
    at: Instant
    type: str
    attempt: int | None = None
    member: str | None = None
    detail: str | None = None
    """The code, outcome, verdict or reason that it adds."""


class History(Reply):
    """What happened to an operation, oldest first."""

    operation: str
    items: list[Step]
    dropped: int
    """Older steps that are not kept."""
