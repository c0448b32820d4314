"""What the HTTP interface takes and gives, as API and SDK both read it."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from .body import (
    NAME_CHARS_MAX,
    REFERENCE_CHARS_MAX,
    Count,
    Instant,
    Name,
    Reply,
    Request,
)
from .phase import Phase


class Role(StrEnum):
    """What a credential may do."""

    TENANT = "tenant"
    """Its own operations, and what explains them."""
    WORKER = "worker"
    """Members, starts and results of its pools."""
    OPERATOR = "operator"
    """Everything that changes the cell."""
    AUDITOR = "auditor"
    """Read everything, change nothing."""


TOOLS_MAX = 64
"""Of one run, as every cell bounds it."""
State = Phase
"""As the API says it."""


class Submit(Request):
    """`POST /v1/operations`; tenant and user come from the credential, the key from its header."""

    pool: Name
    domain: Name
    lane: Name = "interactive"
    tier: Name | None = None
    connection: Name | None = None
    effect: Literal["read_only", "keyed", "unsafe"] = "unsafe"
    prompt_tokens: Count
    output_tokens_max: Count | None = None
    """The call's own output ceiling; without one the operation is refused."""
    payload_bytes: Count = 0
    payload_ref: str | None = Field(default=None, max_length=REFERENCE_CHARS_MAX)
    content_sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    start_within_ms: Count | None = None
    deadline_ms: Count | None = None
    """Absolute, in milliseconds since 1970; of the two deadlines one is needed."""
    member: Name | None = None
    """For pool `self`: which process of the submitter runs it."""
    runtime_ms: Count | None = None
    """A started attempt is asked to end then; without one the tenant's maximum holds."""
    turns_max: Count | None = None
    """Makes it a run: a tool loop of at most so many turns, each a child operation."""
    tools: Annotated[tuple[Name, ...], Field(strict=False, max_length=TOOLS_MAX)] = ()
    """Tools that a run may use."""
    parent: str | None = Field(default=None, pattern=r"^[0-9a-f]{32}$")
    """The run that this turn belongs to."""


class Submitted(Reply):
    """What is known of a submission: durable, or admitted too, and never when it will be done."""

    operation: str
    state: Literal["received", "admitted"] | State
    """`received` or `admitted` for a new operation; its state now for a repeat."""
    place: int | None = None
    """Place in its queue, 1 for the next; null when it does not wait or waits too far back."""
    input: str | None = None
    """`<topic>:<partition>:<offset>` of the submission; null for a repeat known already."""


class Cancel(Request):
    """`POST /v1/operations/{id}:cancel`."""

    reason: str = Field(default="", max_length=NAME_CHARS_MAX)


class Cancelled(Reply):
    """The cancellation is on the log; whether it came in time the operation will tell."""

    operation: str
    state: State
    """The state when the cancellation was sent."""
    input: str


class Operation(Reply):
    """One operation as far as it has been decided; of a refused one only the refusal is known."""

    operation: str
    tenant: str
    user: str | None
    state: State
    pool: str | None
    domain: str | None
    lane: str | None
    tier: str | None = None
    connection: str | None = None
    effect: str | None
    prompt_tokens: int | None
    output_tokens_max: int | None
    payload_bytes: int | None
    payload_ref: str | None = None
    member: str | None = None
    """The member that holds the newest attempt, or that the submitter named."""
    runtime_ms: int | None = None
    """As asked; without it the tenant's maximum holds."""
    turns_max: int | None = None
    """Set for a run."""
    turns: int | None = None
    """Turns of a run so far."""
    tools: tuple[str, ...] = ()
    parent: str | None = None
    """The run that it is a turn of."""
    attempt: int
    checkpoint: int | None = None
    """Number of the last recorded one."""
    checkpoint_ref: str | None = None
    place: int | None = None
    admitted_at: Instant | None = None
    deadline: Instant | None = None
    granted_at: Instant | None = None
    started_at: Instant | None = None
    lease_expires_at: Instant | None = None
    """When the lease ends unless renewed; a silence of the scheduler lengthens it by as much."""
    not_before: Instant | None = None
    """When another attempt may follow, while it is parked for that."""
    ended_at: Instant | None = None
    cancel_requested: bool = False
    outcome: str | None = None
    late: bool = False
    used_prompt_tokens: int | None = None
    used_output_tokens: int | None = None
    result_ref: str | None = None
    error: str | None = None
    code: str | None = None
    """Why it was rejected, parked, dead or ended."""
    detail: str | None = None
    unknown: "Doubt | None" = None
    """Once the outcome of the newest attempt was unknown."""


class Evidence(Reply):
    """One step of reconciliation."""

    at: Instant
    source: str
    """late_result, provider_lookup, usage_report, elapsed_maximum or operator."""
    verdict: str
    confidence: str
    evidence: str | None = None
    """Names it."""
    author: str | None = None
    reason: str | None = None


class Doubt(Reply):
    """Why an outcome is or was unknown, and what was found."""

    cause: str
    """lease_expired or reported."""
    since: Instant
    hold_until: Instant
    """The reservation is forfeited then, if nothing is known before."""
    error: str | None = None
    evidence: list[Evidence]
    """Oldest first."""
    reconciled_by: str | None = None
    """The source that decided, or bounded it; null while nothing has."""


class Operations(Reply):
    """One page, newest first. A filtered page may be short or empty: follow `next` until null."""

    items: list[Operation]
    next: str | None = None


class Health(Reply):
    """Whether the process still does its work."""

    alive: bool
    detail: str


class Readiness(Reply):
    """How far the read model is; ready once it has passed the end seen at start."""

    ready: bool
    role: Literal["follower"] = "follower"
    position: str
    offset: int
    """Journal offset after the last record read."""
    end: int | None = None
    """The end of the journal as seen at start; null until the broker has answered."""


POSITION = "Evenhand-Position"
"""Reply: everything up to here is reflected, `<cell>:<generation>:<offset>:<index>`."""
AT_LEAST = "Evenhand-At-Least"
"""Request: a position, or the input that a write was answered with."""
INPUT = "Evenhand-Input"
"""Reply to a write: `<topic>:<partition>:<offset>` of the record."""
IDEMPOTENCY_KEY = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
WAIT_ADMITTED = "Evenhand-Wait-Admitted"
"""Request: how many milliseconds to wait for the admission decision."""
