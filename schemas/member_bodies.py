"""What members say and hear over HTTP; the words on the topics say the same (`inputs`)."""

from typing import Annotated, Any, Literal

from pydantic import Field

from .body import NAME_CHARS_MAX, Count, Instant, Name, Reply, Request

LEASES_MAX = 1_024
"""Leases that one heartbeat may name."""
TEXT_CHARS_MAX = 4_096
"""Above any cell's own bound, and small enough for the largest input."""

OwnName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$")]
Hex = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
Long = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
"""Whether the figure can be true the owner decides: it keeps what it does not believe apart."""
Text = Annotated[str, Field(max_length=TEXT_CHARS_MAX)]


class Join(Request):
    """`POST /v1/members`."""

    pool: Name
    """`self` with a tenant's key or for a run's turns, any other with a worker's key."""
    places: Annotated[int, Field(ge=1, le=1_000_000)]
    """Attempts that may run at once."""
    member: OwnName | None = None
    """The process's own name, the same over its lives; without one it gets one nobody has."""
    member_epoch: Name | None = None
    """Fresh for each life of the process; without one it gets one. The same again asks again."""
    tenant: Name | None = None
    """Whose process it is in pool `self`: with a worker's key the tenant of a run it holds."""


class Pending(Reply):
    """The word is on the log, and was not decided in time; a member hears of it in deliveries."""

    input: str
    """`<topic>:<partition>:<offset>`, for `Evenhand-At-Least`."""


class Joined(Reply):
    """The process is a member."""

    member: str
    """The full name, for everything that follows; only the key that joined speaks for it."""
    member_epoch: str
    pool: str
    places: int
    lease_ms: int | None
    """How long a lease lasts without renewal."""
    heartbeat_ms: int
    """How often to send a heartbeat: two may be lost before a lease is."""
    join_by: Instant
    """The first heartbeat is due by then."""
    position: str
    """Read deliveries from here on."""


class Lease(Request):
    """A lease by its operation and epoch."""

    operation: Hex
    epoch: Count


class Heartbeat(Request):
    """`POST /v1/members/{member}:heartbeat`."""

    member_epoch: Name
    leases: Annotated[list[Lease], Field(max_length=LEASES_MAX, default_factory=list)]
    """The leases that it renews."""
    sent_ms: Count | None = None
    """The member's own clock, rounded down: its free places may stand. null: they do not."""


class RefusedLease(Reply):
    """The member does not hold it: it must cause no more effects for it."""

    operation: str
    epoch: int
    code: str


class Beaten(Reply):
    """The member is alive; every lease that it named and still holds is renewed."""

    member: str
    leases_expire_at: Instant | None = None
    """When those that were renewed end; null if none was."""
    refused: list[RefusedLease]
    owner_time_ms: int | None = None
    """The owner's time, as `PlacesOffered` delivers it; null if no free place stands."""


class Delivery(Reply):
    """One event that the member must know."""

    position: str
    type: str
    """Name of the event."""
    event: dict[str, Any]
    """Its fields as its schema names them; ids in hex, instants and spans in milliseconds."""


class Deliveries(Reply):
    """What the member has not heard, oldest first; empty if nothing came in time."""

    items: list[Delivery]
    next: str
    """Ask from here on, as `after`."""


class Speaks(Request):
    """Which attempt a word is about, as its grant says, and which life of the member speaks."""

    incarnation: Count
    attempt: Count
    epoch: Count
    member: Name
    member_epoch: Name


class Claim(Speaks):
    """`POST /v1/grants/{operation}:claim`."""


class Claimed(Reply):
    """The member has the lease."""

    operation: str
    epoch: int
    expires_at: Instant | None = None
    """When the lease ends unless it is renewed; null if it was claimed before."""


class Start(Speaks):
    """`POST /v1/starts`."""

    operation: Hex


class Started(Reply):
    """The call may go out now, within `send_within_ms` of *sending* this request."""

    operation: str
    epoch: int
    send_within_ms: int
    lease_expires_at: Instant | None = None
    """When the lease ends unless it is renewed; null if it was claimed before."""
    latest_arrival_at: Instant
    """What the provider's windows are charged for."""


class Send(Speaks):
    """`POST /v1/sends`."""

    operation: Hex
    send_delay_ms: Count
    """How soon after sending the start request the call was sent; rounded up."""


class Noted(Reply):
    """It is decided; it may have changed nothing."""

    operation: str
    changed: bool


class Checkpoint(Speaks):
    """`POST /v1/operations/{operation}/checkpoints`."""

    number: Count
    """1 for the first of the operation, then one more each time."""
    state_ref: Text | None = None
    context_bytes: Count | None = None
    artifacts: Count | None = None


class Checkpointed(Reply):
    """Another member can go on from here."""

    operation: str
    number: int


Outcome = Literal[
    "success",
    "terminal",
    "policy_denied",
    "cancelled",
    "not_sent",
    "retryable",
    "throttled",
    "quota_exhausted",
    "reauthentication_required",
    "unknown",
]


class ResultOf(Speaks):
    """`POST /v1/results`."""

    operation: Hex
    outcome: Outcome
    prompt_tokens: Long | None = None
    output_tokens: Long | None = None
    send_delay_ms: Count | None = None
    result_ref: Text | None = None
    error: Text | None = None
    """Short, never content."""
    retry_after_ms: Count | None = None


class Settlement(Reply):
    """How the reservation of the attempt was closed."""

    tokens_reserved: int
    tokens_actual: int | None
    """null: unknown, charged as reserved."""
    overdraft_tokens: int
    cost_ns: int


class Settled(Reply):
    """The result is recorded."""

    operation: str
    epoch: int
    state: str
    """What became of the operation."""
    replayed: bool = False
    """It was recorded before."""
    late: bool = False
    usage_code: str | None = None
    """Why the usage was not believed; the reservation is then charged as it was made."""
    settlement: Settlement | None = None
    """null when nothing went out, or the outcome is unknown."""
    retry_at: Instant | None = None
    """Another attempt follows, not before."""


class Usage(Speaks):
    """`POST /v1/usage`."""

    operation: Hex
    unit: Annotated[str, Field(max_length=NAME_CHARS_MAX)] = "tokens"
    prompt_tokens: Long
    output_tokens: Long
    evidence: Name
    """Names the report, so that a repeat is one."""
