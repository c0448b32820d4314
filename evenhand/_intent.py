"""What a user asks for, by name: the fields of an intent, checked before anything is sent."""

import time
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple, Required, TypedDict, TypeVar

from pydantic import ValidationError

from evenhand._transport import Links, Submission
from evenhand._words import bodies, events, ids, inputs, units
from evenhand.errors import InvalidField, StillRunning, kind_of

T = TypeVar("T")
U = TypeVar("U")

ACQUIRE_WITHIN_MS: Final = 60_000
"""Somebody waits for a permission; after a minute few still do."""
ENDED: Final = frozenset(
    {
        bodies.State.SUCCEEDED,
        bodies.State.FAILED,
        bodies.State.CANCELLED,
        bodies.State.EXPIRED,
        bodies.State.REJECTED,
        bodies.State.DEAD,
        bodies.State.UNKNOWN_CLOSED,
    }
)
"""What only a person can go on from, if anybody."""
ASK_AGAIN_S: Final = 0.05
ASK_AGAIN_S_MAX: Final = 1.0
"""Between two questions for an end, where the server does not wait itself."""
ANSWER_WAIT_S: Final = 10.0
"""Beyond its deadline an operation is answered within this time, or nobody answers at all."""


class Identity(NamedTuple):
    """Whose work it is."""

    tenant: ids.TenantId
    user: ids.UserId


class _Call(TypedDict, total=False):
    """What every intent may say."""

    prompt_tokens: Required[int]
    """Estimated prompt tokens."""
    output_tokens_max: Required[int]
    """Output ceiling of this very call; prompt and ceiling are reserved together."""
    start_within_ms: int
    """Deadline of the start, from admission on."""
    lane: str
    """Service class, `interactive` by default."""
    tier: str
    """Model strength class."""
    connection: str
    """Link of the user to a provider subscription."""
    effect: Literal["read_only", "keyed", "unsafe"]
    """What a second call would do; `unsafe` by default."""
    payload_bytes: int
    """Declared size of the payload."""
    payload_ref: str
    """Where the payload is; never the payload itself."""
    content_sha256: str
    """Hex digest of the payload."""
    runtime_ms: int
    """A started attempt is asked to end then; without one the tenant's maximum holds."""


class Intent(_Call, total=False):
    """One call to a provider that somebody wants to be made."""

    domain: Required[str]
    """Budget domain it draws on."""
    turns_max: int
    """Makes it a run: a tool loop of at most so many calls, each an `Attempt.turn`."""
    tools: tuple[str, ...]
    """Tools that a run may use."""


class TurnIntent(_Call, total=False):
    """One call of a run."""

    domain: str
    """Budget domain it draws on; the run's own by default."""


class PoolIntent(Intent, total=False):
    """An intent that a member of a pool will run."""

    pool: Required[str]
    """Pool whose members may run it."""
    deadline_ms: int
    """The deadline as an instant, in milliseconds since 1970; of the two one is needed."""
    member: str
    """For pool `self`: which process of the submitter runs it."""
    parent: str
    """The run that this turn belongs to; `Attempt.turn` names it by itself."""


def submission(
    fields: PoolIntent, *, idempotency_key: str, wait_admitted_ms: int | None = None
) -> Submission:
    """The intent with its key.

    Raises:
        InvalidField: a field is missing, unknown, or of the wrong kind; nothing was sent.
    """
    try:
        body = bodies.Submit(**fields)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise InvalidField(f"Expected {name} to be right, but: {first['msg']}") from error
    return Submission(body=body, idempotency_key=idempotency_key, wait_admitted_ms=wait_admitted_ms)


def acquisition(fields: Intent, *, idempotency_key: str) -> Submission:
    """As `submission`, for the submitter's own process."""
    whole: Any = {"pool": ids.SELF_POOL, "start_within_ms": ACQUIRE_WITHIN_MS, **fields}
    return submission(whole, idempotency_key=idempotency_key)


def turn(grant: events.GrantIssued, fields: TurnIntent, *, idempotency_key: str) -> Submission:
    """As `acquisition`, for one call of a run; what the fields leave open is as for the run."""
    run: Any = {
        "domain": grant.domain,
        "lane": grant.lane,
        "tier": grant.tier,
        "connection": grant.connection,
        "parent": grant.operation.hex(),
    }
    run.update((name, value) for name, value in fields.items() if value is not None)
    return acquisition(run, idempotency_key=idempotency_key)


def patience_s(asked: Submission) -> float:
    """How long after its deadline an acquisition that is not answered is given up."""
    return (asked.body.start_within_ms or 0) / 1000 + ANSWER_WAIT_S


def admitted(found: bodies.Operation) -> bodies.Operation:
    """The operation, unless it was refused.

    Raises:
        EvenhandError: the refusal, by the class of its code.
    """
    if found.state is bodies.State.REJECTED:
        raise kind_of(found.code or "")(found.detail, operation=found.operation)
    return found


class Waiting:
    """One wait for the end of an operation: how much longer, and how long until the next look."""

    def __init__(self, submitted: bodies.Submitted | str, timeout_s: float) -> None:
        self.operation = submitted if isinstance(submitted, str) else submitted.operation
        self.at_least = None if isinstance(submitted, str) else submitted.input
        self._ends_at, self._pause_s = time.monotonic() + timeout_s, ASK_AGAIN_S

    def left_s(self) -> float:
        """Seconds left, 0 when none is."""
        return max(0.0, self._ends_at - time.monotonic())

    def pause_s(self) -> float:
        """How long to rest now.

        Raises:
            StillRunning: no time is left.
        """
        left_s = self.left_s()
        if not left_s:
            raise StillRunning(operation=self.operation)
        pause_s, self._pause_s = self._pause_s, min(2 * self._pause_s, ASK_AGAIN_S_MAX)
        return min(pause_s, left_s)


def identity(tenant: str | None, user: str | None) -> Identity:
    """Whose work it is; on the topics nobody else says it.

    Raises:
        ValueError: one of both is missing.
    """
    if not tenant or not user:
        raise ValueError("Expected tenant and user beside `via`, but one is missing")
    return Identity(ids.TenantId(tenant), ids.UserId(user))


def links(via: Links | None) -> Links:
    """Where the process links to.

    Raises:
        ValueError: the client was made without a cell.
    """
    if via is None:
        raise ValueError("Expected `via` for acquire, but the client has only the API")
    return via


def submitted(
    asked: Submission, who: Identity, member: ids.MemberId | None = None
) -> inputs.OperationSubmitted:
    """The word of a submission, for who writes to the topics."""
    body = asked.body
    return inputs.OperationSubmitted(
        tenant=who.tenant,
        user=who.user,
        idempotency_key=asked.idempotency_key,
        pool=ids.PoolId(body.pool),
        domain=ids.DomainId(body.domain),
        lane=body.lane,
        tier=body.tier,
        connection=body.connection,
        effect=body.effect,
        prompt_tokens=units.Tokens(body.prompt_tokens),
        output_tokens_max=_optional(units.Tokens, body.output_tokens_max),
        payload_bytes=body.payload_bytes,
        payload_ref=body.payload_ref,
        content_sha256=body.content_sha256,
        start_within_ms=_optional(units.Millis, body.start_within_ms),
        deadline_ms=_optional(units.Millis, body.deadline_ms),
        member=member or _optional(ids.MemberId, body.member),
        runtime_ms=_optional(units.Millis, body.runtime_ms),
        turns_max=body.turns_max,
        tools=body.tools,
        parent=None if body.parent is None else ids.OperationId(bytes.fromhex(body.parent)),
    )


def operation_of(word: inputs.OperationSubmitted) -> ids.OperationId:
    """The id that follows from what identifies the intent (requirements R176)."""
    return ids.operation_id(
        pool=word.pool,
        tenant=word.tenant,
        user=word.user,
        idempotency_key=word.idempotency_key,
    )


def _optional(kind: Callable[[T], U], value: T | None) -> U | None:
    return None if value is None else kind(value)
