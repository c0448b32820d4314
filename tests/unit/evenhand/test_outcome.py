"""What an exception means: unknown, unless it shows that nothing was sent."""

import asyncio

import httpx
import pytest

from evenhand import NotSent, Outcome, Result
from evenhand._outcome import result_of


class ConnectTimeout(ConnectionRefusedError, TimeoutError):
    """Flagged both "connect" and "timeout", as some clients do."""


def outcome(
    how: Result | BaseException | None, *, went_out: bool = False, told: Result | None = None
) -> Outcome:
    return result_of(how, went_out=went_out, classify=lambda _: told).outcome


@pytest.mark.parametrize(
    ("error", "before", "after"),
    [
        (NotSent(), "not_sent", "unknown"),
        (ConnectionRefusedError(), "not_sent", "unknown"),
        (httpx.ConnectError("refused"), "not_sent", "unknown"),
        (ConnectTimeout(), "unknown", "unknown"),
        (httpx.ConnectTimeout("no answer"), "unknown", "unknown"),
        (httpx.ReadTimeout("no answer"), "unknown", "unknown"),
        (httpx.ReadError("reset"), "unknown", "unknown"),
        (ConnectionResetError(), "unknown", "unknown"),
        (TimeoutError(), "unknown", "unknown"),
        (asyncio.CancelledError(), "unknown", "unknown"),
        (KeyboardInterrupt(), "unknown", "unknown"),
        (ZeroDivisionError(), "unknown", "unknown"),
    ],
)
def test_an_exception_is_unknown_unless_nothing_was_sent(
    error: BaseException, before: str, after: str
) -> None:
    assert (outcome(error), outcome(error, went_out=True)) == (before, after)


def test_a_classifier_is_asked_first() -> None:
    told = Result(outcome=Outcome.RETRYABLE, error="overloaded")
    assert outcome(TimeoutError(), went_out=True, told=told) is Outcome.RETRYABLE


def test_a_classifier_is_not_asked_about_a_result() -> None:
    assert outcome(Result(), told=Result(outcome=Outcome.TERMINAL)) is Outcome.SUCCESS


def test_a_classifier_is_not_believed_that_nothing_was_sent_after_the_call() -> None:
    told = Result(outcome=Outcome.NOT_SENT)
    assert outcome(TimeoutError(), went_out=True, told=told) is Outcome.UNKNOWN


def test_a_classifier_that_fails_leaves_the_outcome_unknown() -> None:
    def fail(_: BaseException) -> Result | None:
        raise LookupError

    found = result_of(NotSent(), went_out=False, classify=fail)
    assert (found.outcome, found.error) == (Outcome.UNKNOWN, "LookupError")
