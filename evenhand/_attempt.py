"""One attempt as its handler sees it: what to run, how soon to send it, and what to report."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypedDict

from evenhand._words import events, ids, inputs, units
from evenhand.errors import NotSent

NANOS_PER_MILLI = 1_000_000
REFERENCE_BYTES_MAX = 2048
"""As a cell's default; it leaves out what is longer, so a longer one would be lost silently."""
ERROR_CHARS_MAX = 200
"""A reason is the name of a kind of error, not a story."""


class Outcome(StrEnum):
    """How an attempt ended, when that is known."""

    SUCCESS = "success"
    TERMINAL = "terminal"
    """Failed, and another attempt would not help."""
    POLICY_DENIED = "policy_denied"
    """The provider refused the content."""
    CANCELLED = "cancelled"
    """Ended since `Attempt.cancel_requested` was set."""
    NOT_SENT = "not_sent"
    """Nothing went to the provider: the operation waits again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a handler answers. None is as good as `Result()`: a success without a reference.

    Raises:
        ValueError: the reference is longer than a cell keeps.
    """

    outcome: Outcome = Outcome.SUCCESS
    result_ref: str | None = None
    """Where the result is; never the result itself."""
    error: str | None = None
    """Short reason of a failure, without content."""

    def __post_init__(self) -> None:
        """Refuse here what the cell would leave out."""
        if self.result_ref and len(self.result_ref.encode()) > REFERENCE_BYTES_MAX:
            raise ValueError(f"Expected a reference of at most {REFERENCE_BYTES_MAX} bytes")


class Names(TypedDict):
    """What names an attempt in every word about it."""

    tenant: ids.TenantId
    operation: ids.OperationId
    incarnation: int
    attempt: int
    epoch: int
    member: ids.MemberId
    member_epoch: ids.MemberEpoch


class Attempt:
    """A granted and started attempt: permission for one call to the provider, now.

    `sending` guards the call, `sent` reports it, `usage` says what it used.
    """

    __slots__ = (
        "_cancel_requested",
        "_now_ns",
        "_output_tokens",
        "_prompt_tokens",
        "_report",
        "_reported",
        "_send_delay_ms",
        "_start_sent_ns",
        "grant",
    )

    def __init__(
        self,
        grant: events.GrantIssued,
        *,
        report: Callable[[inputs.Input], None],
        now_ns: Callable[[], int],
    ) -> None:
        """Made by the SDK at the moment in which it sends the start request."""
        self.grant = grant
        """The event that permits it, as the owner wrote it."""
        self._report = report
        self._now_ns = now_ns
        self._start_sent_ns = now_ns()
        self._send_delay_ms: units.Millis | None = None
        self._reported = False
        self._cancel_requested = False
        self._prompt_tokens: units.Tokens | None = None
        self._output_tokens: units.Tokens | None = None

    @property
    def operation(self) -> str:
        """Id of the operation, in hex."""
        return self.grant.operation.hex()

    @property
    def attempt(self) -> int:
        """Number of this try, from 1."""
        return self.grant.attempt

    @property
    def tenant(self) -> str:
        """Whose work it is."""
        return self.grant.tenant

    @property
    def payload_ref(self) -> str | None:
        """Where the payload is."""
        return self.grant.payload_ref

    @property
    def prompt_tokens(self) -> int:
        """Estimated prompt tokens, reserved."""
        return self.grant.prompt_tokens

    @property
    def output_tokens_max(self) -> int:
        """Output ceiling of the call: pass it on to the provider, it is all that is reserved."""
        return self.grant.output_tokens_max

    @property
    def provider_key(self) -> str:
        """Idempotency key for the provider, the same in every attempt (requirements R72)."""
        return ids.provider_key(self.grant.operation, self.grant.incarnation)

    @property
    def cancel_requested(self) -> bool:
        """Whether somebody asked for the end of this attempt; its slot is held until it ends."""
        return self._cancel_requested

    @property
    def send_within_s(self) -> float:
        """Seconds left in which the call may be sent; negative when it is too late."""
        left_ns = self.grant.send_within_ms * NANOS_PER_MILLI - self._since_start_ns()
        return left_ns / 1e9

    def sending(self) -> None:
        """Call it right before the call to the provider, if something took time before.

        Raises:
            NotSent: it is too late for the call (requirements R171). Let it pass: the reservation
                is released and the operation waits again.
        """
        if self.send_within_s < 0:
            raise NotSent("Too late to send", operation=self.operation)

    def sent(self) -> None:
        """Call it right after the call went out; the first time counts, and it does not block.

        The charge then leaves the provider's window as early as is safe. With httpx, the trace
        event `http11.send_request_body.complete` is the right moment.
        """
        if self._send_delay_ms is not None:
            return
        delay_ms = units.Millis(-(-self._since_start_ns() // NANOS_PER_MILLI))
        self._send_delay_ms = delay_ms
        if self.grant.report_send:
            self._reported = True
            self._report(inputs.SendReported(**self._names(), send_delay_ms=delay_ms))

    def usage(self, *, prompt_tokens: int, output_tokens: int) -> None:
        """What the provider says the call used; without it the reservation is charged in full.

        Raises:
            ValueError: a figure is negative.
        """
        if prompt_tokens < 0 or output_tokens < 0:
            raise ValueError("Expected token counts of 0 or more")
        self._prompt_tokens = units.Tokens(prompt_tokens)
        self._output_tokens = units.Tokens(output_tokens)

    def _since_start_ns(self) -> int:
        return self._now_ns() - self._start_sent_ns

    # -- what the member's own code asks; handlers need none of it ------------------------------

    def start_request(self) -> inputs.StartRequested:
        """The word that asks for permission to call."""
        return inputs.StartRequested(**self._names())

    def request_cancel(self) -> None:
        """Let the handler see that the end is wanted."""
        self._cancel_requested = True

    def ended(self, how: Result | BaseException | None) -> inputs.ResultReported:
        """The word that tells how it ended; an exception is a failure for good.

        NotSent is believed only while nothing is known to have been sent.
        """
        match how:
            case NotSent() if self._send_delay_ms is None:
                result = Result(outcome=Outcome.NOT_SENT)
            case BaseException():
                result = Result(outcome=Outcome.TERMINAL, error=type(how).__name__)
            case _:
                result = how or Result()
        return inputs.ResultReported(
            **self._names(),
            outcome=result.outcome,
            prompt_tokens=self._prompt_tokens,
            output_tokens=self._output_tokens,
            send_delay_ms=None if self._reported else self._send_delay_ms,
            result_ref=result.result_ref,
            error=result.error and result.error[:ERROR_CHARS_MAX],
        )

    def _names(self) -> Names:
        grant = self.grant
        return {
            "tenant": grant.tenant,
            "operation": grant.operation,
            "incarnation": grant.incarnation,
            "attempt": grant.attempt,
            "epoch": grant.epoch,
            "member": grant.member,
            "member_epoch": grant.member_epoch,
        }
