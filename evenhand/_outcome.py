"""How an attempt ended: the closed outcomes, what a handler answers, and what an exception means.

Unknown is never read as a failure: the provider may be at work on a call whose caller has stopped
listening. So an exception is unknown, unless it shows that nothing was sent.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from evenhand.errors import NotSent

REFERENCE_BYTES_MAX: Final = 2048
"""As a cell's default; it leaves out what is longer, so a longer one would be lost silently."""
ERROR_CHARS_MAX: Final = 200
"""A reason is the name of a kind of error, not a story."""

_LOG = logging.getLogger("evenhand")
_CONNECT_FAILED: Final = {("httpx", "ConnectError"), ("httpcore", "ConnectError")}
"""Kinds of error that arise before anything was written, by package and name: none is imported."""


class Outcome(StrEnum):
    """How an attempt ended."""

    SUCCESS = "success"
    TERMINAL = "terminal"
    """Failed, and another attempt would not help."""
    POLICY_DENIED = "policy_denied"
    """The provider refused the content."""
    CANCELLED = "cancelled"
    """Ended since `Attempt.cancel_requested` was set."""
    NOT_SENT = "not_sent"
    """Nothing went to the provider: the operation waits again."""
    RETRYABLE = "retryable"
    """Failed, and another attempt may help: the owner decides whether and when."""
    THROTTLED = "throttled"
    """The provider refused for rate: the operation waits again, and the domain pauses."""
    QUOTA_EXHAUSTED = "quota_exhausted"
    """The provider's own quota is used up: as `THROTTLED`, until its hint or an operator."""
    REAUTHENTICATION_REQUIRED = "reauthentication_required"
    """The provider refused the credential: as `QUOTA_EXHAUSTED`."""
    UNKNOWN = "unknown"
    """The call may have been executed; its slot and tokens stay held until evidence comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a handler answers. None is as good as `Result()`: a success without a reference.

    Raises:
        ValueError: the reference is longer than a cell keeps, or the wait is negative.
    """

    outcome: Outcome = Outcome.SUCCESS
    result_ref: str | None = None
    """Where the result is; never the result itself."""
    error: str | None = None
    """Short reason of a failure, without content."""
    retry_after_ms: int | None = None
    """What the provider said to wait; None means that it said nothing."""

    def __post_init__(self) -> None:
        """Refuse here what the cell would leave out."""
        if self.result_ref and len(self.result_ref.encode()) > REFERENCE_BYTES_MAX:
            raise ValueError(f"Expected a reference of at most {REFERENCE_BYTES_MAX} bytes")
        if self.retry_after_ms is not None and self.retry_after_ms < 0:
            raise ValueError("Expected a wait of 0 ms or more")


def result_of(
    how: Result | BaseException | None,
    *,
    went_out: bool,
    classify: Callable[[BaseException], Result | None],
) -> Result:
    """What is reported for the end of a handler; not sent is believed only if nothing went out.

    Args:
        how: what the handler returned or raised.
        went_out: whether the call is known to have been sent.
        classify: the user's opinion of an exception; None means the default. If it fails itself,
            the outcome is unknown.
    """
    result = _classified(how, went_out, classify) if isinstance(how, BaseException) else how
    result = result or Result()
    if went_out and result.outcome is Outcome.NOT_SENT:
        return replace(result, outcome=Outcome.UNKNOWN)
    return result


def by_the_rule(error: BaseException, attempt: object) -> Result | None:  # noqa: ARG001 - as users write it
    """The classifier of who has no opinion of his own."""
    return None


def by_default(error: BaseException, *, went_out: bool) -> Result:
    """What an exception means if nobody says otherwise.

    >>> by_default(ConnectionRefusedError(), went_out=False).outcome.value
    'not_sent'
    >>> by_default(ConnectionResetError(), went_out=False).outcome.value
    'unknown'
    """
    if not went_out and isinstance(error, NotSent):
        return Result(outcome=Outcome.NOT_SENT)
    name = type(error).__name__
    outcome = Outcome.UNKNOWN
    if not went_out and _never_connected(error):
        outcome = Outcome.NOT_SENT
    return Result(outcome=outcome, error=name)


def _never_connected(error: BaseException) -> bool:
    kinds = [(kind.__module__.partition(".")[0], kind.__name__) for kind in type(error).__mro__]
    # Flagged as both, it is taken for the worse: a timeout proves nothing.
    if any("timeout" in name.lower() for _, name in kinds):
        return False
    return isinstance(error, ConnectionRefusedError) or not _CONNECT_FAILED.isdisjoint(kinds)


def _classified(
    error: BaseException, went_out: bool, classify: Callable[[BaseException], Result | None]
) -> Result:
    try:
        told = classify(error)
    except Exception as mistake:  # noqa: BLE001 - an attempt must end, whatever is wrong with it
        _LOG.exception("A classifier failed, so the outcome is unknown")
        return Result(outcome=Outcome.UNKNOWN, error=type(mistake).__name__)
    return by_default(error, went_out=went_out) if told is None else told
