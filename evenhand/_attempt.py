"""One attempt as its handler sees it, but for what waits: that differs between the twins."""

from collections.abc import Callable
from concurrent.futures import Future
from datetime import datetime
from typing import Any, Final, NamedTuple, TypedDict, TypeVar

from evenhand._outcome import ERROR_CHARS_MAX, Outcome, Result
from evenhand._retry_after import left_s, millis_up
from evenhand._words import events, ids, inputs, units
from evenhand.errors import NotSent, ToolNotAllowed, TurnsExhausted, kind_of

CHECKPOINT_WAIT_S: Final = 30.0
"""A takeover takes a second or two; beyond this nobody will answer soon."""


class Names(TypedDict):
    """What names an attempt in every word about it."""

    tenant: ids.TenantId
    operation: ids.OperationId
    incarnation: int
    attempt: int
    epoch: int
    member: ids.MemberId
    member_epoch: ids.MemberEpoch


class Checkpoint(NamedTuple):
    """How far an earlier attempt is known to have come."""

    number: int
    state_ref: str | None
    """Where the state is from which to go on."""


class BaseAttempt:
    """What both twins' attempts have: permission for one call to the provider, now."""

    def __init__(
        self,
        grant: events.GrantIssued,
        *,
        report: Callable[[inputs.Input], None],
        now_ns: Callable[[], int],
        waited_ns: int = 0,
    ) -> None:
        """Made by the SDK when it asks for the start, or `waited_ns` after a standing start."""
        self.grant = grant
        """The event that permits it, as the owner wrote it."""
        self._report, self._now_ns = report, now_ns
        self._start_sent_ns = now_ns() - waited_ns
        self._send_delay_ms: units.Millis | None = None
        self._reported = self._ended = False
        self._cancel_requested = self._lease_lost = False
        self._prompt_tokens: units.Tokens | None = None
        self._output_tokens: units.Tokens | None = None
        self._throttled = False
        self._retry_after_ms: int | None = None
        self._checkpoint = grant.checkpoint
        self._checkpointing: Future[None] = Future()
        self._turns = 0

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
    def lease_lost(self) -> bool:
        """Whether the lease has ended: another member may be given the work.

        Cause no more effects. The call goes on and its result is still reported: the owner decides
        whether it counts or is evidence.
        """
        return self._lease_lost

    @property
    def send_within_s(self) -> float:
        """Seconds left in which the call may be sent; negative when it is too late."""
        left_ns = self.grant.send_within_ms * units.NANOS_PER_MILLI - self._since_start_ns()
        return left_ns / 1e9

    @property
    def resumed_from(self) -> Checkpoint | None:
        """The last recorded checkpoint of earlier attempts; None if there is none."""
        grant = self.grant
        return Checkpoint(grant.checkpoint, grant.checkpoint_ref) if grant.checkpoint else None

    @property
    def turns_left(self) -> int:
        """Turns that this attempt of a run may take at most; earlier attempts may leave fewer."""
        return (self.grant.turns_max or 0) - self._turns

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

        The charge then leaves the provider's window as early as is safe, and an error that follows
        is never taken for a call that was not sent. With httpx, the trace event
        `http11.send_request_body.complete` is the right moment.
        """
        if self._send_delay_ms is not None:
            return
        delay_ms = units.Millis(-(-self._since_start_ns() // units.NANOS_PER_MILLI))
        self._send_delay_ms = delay_ms
        if self.grant.report_send:
            self._reported = True
            self._report(inputs.SendReported(**self.names(), send_delay_ms=delay_ms))

    def usage(self, *, prompt_tokens: int, output_tokens: int) -> None:
        """What the provider says the call used; without it the reservation is charged in full.

        Told after the end it corrects what was charged, once.

        Raises:
            ValueError: a figure is negative.
        """
        if prompt_tokens < 0 or output_tokens < 0:
            raise ValueError("Expected token counts of 0 or more")
        self._prompt_tokens = units.Tokens(prompt_tokens)
        self._output_tokens = units.Tokens(output_tokens)
        if self._ended:
            self._report(
                inputs.UsageReported(
                    **self.names(),
                    unit="tokens",
                    prompt_tokens=self._prompt_tokens,
                    output_tokens=self._output_tokens,
                    evidence=f"{self.provider_key}-{self.grant.epoch}",
                )
            )

    def throttled(self, *, until: datetime | None = None, after_s: float | None = None) -> None:
        """The provider refused for rate (429): however the handler ends, this is the outcome.

        The operation waits again without counting an attempt, and its domain pauses.

        Args:
            until: when the provider takes calls again, with its time zone.
            after_s: in how many seconds, see `retry_after_s`; None for both means unknown.
        """
        self._throttled = True
        seconds = after_s if until is None else left_s(until)
        self._retry_after_ms = None if seconds is None else millis_up(max(0.0, seconds))

    def tool(self, name: str) -> None:
        """Call it before a tool is used.

        Raises:
            ToolNotAllowed: the run was not admitted with this tool.
        """
        if name not in self.grant.tools:
            raise ToolNotAllowed(f"Expected one of {list(self.grant.tools)}, but got {name!r}")

    def _since_start_ns(self) -> int:
        return self._now_ns() - self._start_sent_ns

    # -- what the SDK's own code asks; handlers need none of it ---------------------------------

    @property
    def went_out(self) -> bool:
        """Whether the call is known to have been sent."""
        return self._send_delay_ms is not None or self._prompt_tokens is not None

    def start_request(self) -> inputs.StartRequested:
        """The word that asks for permission to call."""
        return inputs.StartRequested(**self.names())

    def request_cancel(self) -> None:
        """Let the handler see that the end is wanted."""
        self._cancel_requested = True

    def lose_lease(self) -> None:
        """Let the handler see that its lease has ended."""
        self._lease_lost = True

    def report_checkpoint(
        self, state_ref: str | None, context_bytes: int | None, artifacts: int | None
    ) -> Future[None]:
        """Report the next checkpoint. Returns: done when recorded, or failed by what refuses it."""
        self._checkpointing = Future()
        # A waiting task that is cancelled must not cancel it: the answer may still come.
        self._checkpointing.set_running_or_notify_cancel()
        self._report(
            inputs.CheckpointReported(
                **self.names(),
                number=self._checkpoint + 1,
                state_ref=state_ref,
                context_bytes=context_bytes,
                artifacts=artifacts,
            )
        )
        return self._checkpointing

    def hear_checkpoint(self, answer: events.CheckpointRecorded | events.CheckpointRefused) -> None:
        """Give the answer to who waits for it; an answer that comes late still counts."""
        asked, expected = self._checkpointing, answer.number == self._checkpoint + 1
        if isinstance(answer, events.CheckpointRecorded):
            self._checkpoint = max(self._checkpoint, answer.number)
        if not expected or asked.done():
            return
        if isinstance(answer, events.CheckpointRecorded):
            asked.set_result(None)
        else:
            asked.set_exception(kind_of(answer.code)(operation=self.operation))

    def next_turn(self) -> str:
        """Count a turn. Returns: its idempotency key; an attempt that resumes makes new ones.

        Raises:
            TurnsExhausted: the run has used up its turns.
        """
        if self.turns_left <= 0:
            raise TurnsExhausted(operation=self.operation)
        self._turns += 1
        return f"{self.operation}:{self.grant.incarnation}:{self.grant.epoch}:{self._turns}"

    def ended(self, result: Result) -> inputs.ResultReported:
        """The word that tells how it ended."""
        self._ended = True
        outcome = Outcome.THROTTLED if self._throttled else result.outcome
        wait_ms = self._retry_after_ms if self._throttled else result.retry_after_ms
        return inputs.ResultReported(
            **self.names(),
            outcome=outcome,
            prompt_tokens=self._prompt_tokens,
            output_tokens=self._output_tokens,
            send_delay_ms=None if self._reported else self._send_delay_ms,
            result_ref=result.result_ref,
            error=result.error and result.error[:ERROR_CHARS_MAX],
            retry_after_ms=None if wait_ms is None else units.Millis(wait_ms),
        )

    def names(self) -> Names:
        """What names it in every word about it."""
        return names(self.grant)


def names(named: Any) -> Names:
    """What names the attempt that a word is about."""
    return {
        "tenant": named.tenant,
        "operation": named.operation,
        "incarnation": named.incarnation,
        "attempt": named.attempt,
        "epoch": named.epoch,
        "member": named.member,
        "member_epoch": named.member_epoch,
    }


A = TypeVar("A", bound=BaseAttempt)
"""An attempt of either twin."""
