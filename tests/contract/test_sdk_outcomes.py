"""What becomes of an operation, by how its handler ends: the closed outcomes, and exceptions."""

from collections.abc import Iterator
from itertools import count

import pytest

from evenhand import Attempt, NotSent, Outcome, Result, StillRunning, errors
from schemas.bodies import State
from tests.support.desk import INTENT, Desk


class ConnectTimeout(ConnectionRefusedError, TimeoutError):
    """Flagged both "connect" and "timeout"."""


class Twice:
    """A handler that does one thing first, and succeeds when it is called again."""

    def __init__(self, first: Result | BaseException) -> None:
        self._first = first
        self.attempts: list[Attempt] = []

    def __call__(self, attempt: Attempt) -> Result | None:
        self.attempts.append(attempt)
        if len(self.attempts) > 1:
            return None
        if isinstance(self._first, BaseException):
            raise self._first
        return self._first


@pytest.mark.parametrize(
    "error",
    [
        LookupError("with content that must not leave the process"),
        ConnectionResetError("connection lost after send"),
        ConnectTimeout(),
    ],
)
def test_an_exception_leaves_unsafe_work_unknown_and_is_never_tried_again(
    desk: Desk, error: Exception
) -> None:
    handle = Twice(error)
    asked = desk.admit()
    with desk.worker(handle):
        desk.until_state(asked.operation, State.UNKNOWN)
        # The place is free, so that work behind it goes on.
        second = desk.admit()
        desk.until_state(second.operation, State.SUCCEEDED)
        assert desk.get(asked.operation).state is State.UNKNOWN
    assert [one.operation for one in handle.attempts] == [asked.operation, second.operation]


def test_not_sent_is_not_believed_after_the_call_went_out(desk: Desk) -> None:
    def handle(attempt: Attempt) -> None:
        attempt.sent()
        raise NotSent

    asked = desk.admit()
    with desk.worker(handle):
        desk.until_state(asked.operation, State.UNKNOWN)


@pytest.mark.parametrize(
    "first",
    [
        Result(outcome=Outcome.RETRYABLE, error="overloaded"),
        Result(outcome=Outcome.THROTTLED, retry_after_ms=0),
        Result(outcome=Outcome.QUOTA_EXHAUSTED, retry_after_ms=0),
        ConnectionRefusedError(),
    ],
)
def test_what_may_be_tried_again_is_under_a_new_epoch_with_the_same_provider_key(
    desk: Desk, first: Result | Exception
) -> None:
    handle = Twice(first)
    asked = desk.admit()
    with desk.worker(handle):
        desk.until_state(asked.operation, State.SUCCEEDED)
    assert [one.grant.epoch for one in handle.attempts] == [1, 2]
    assert len({one.provider_key for one in handle.attempts}) == 1


def test_a_throttled_call_waits_again_whatever_the_handler_does_then(desk: Desk) -> None:
    calls = count(1)

    def handle(attempt: Attempt) -> None:
        if next(calls) == 1:
            attempt.sent()
            attempt.throttled(after_s=0)
            raise OSError

    asked = desk.admit()
    with desk.worker(handle):
        desk.until_state(asked.operation, State.SUCCEEDED)
    assert next(calls) == 3


@pytest.mark.parametrize("effect", ["read_only", "keyed"])
def test_what_may_be_repeated_is_tried_again_although_its_outcome_is_unknown(
    desk: Desk, effect: str
) -> None:
    handle = Twice(TimeoutError())
    asked = desk.admit(effect=effect)
    with desk.worker(handle):
        desk.until_state(asked.operation, State.SUCCEEDED)
    assert len(handle.attempts) == 2


def test_a_classifier_of_the_user_decides_first(desk: Desk) -> None:
    def classify(error: BaseException, attempt: Attempt) -> Result | None:
        denied = isinstance(error, PermissionError) and attempt.prompt_tokens > 0
        return Result(outcome=Outcome.POLICY_DENIED, error="policy") if denied else None

    def handle(_: Attempt) -> None:
        raise PermissionError

    asked = desk.admit()
    with desk.worker(handle, classify=classify):
        found = desk.until_state(asked.operation, State.FAILED)
    assert (found.outcome, found.error) == ("policy_denied", "policy")


def test_usage_that_is_known_after_the_end_settles_an_unknown_outcome(desk: Desk) -> None:
    handle = Twice(TimeoutError())
    asked = desk.admit()
    with desk.worker(handle):
        desk.until_state(asked.operation, State.UNKNOWN)
        handle.attempts[0].usage(prompt_tokens=880, output_tokens=20)
        found = desk.until_state(asked.operation, State.SUCCEEDED)
    assert (found.used_prompt_tokens, found.used_output_tokens) == (880, 20)


@pytest.mark.parametrize("cell", ["fake", "http"], indirect=True)
class TestWaiting:
    def test_the_result_is_told_once_it_is_recorded(self, desk: Desk) -> None:
        asked = desk.twin.call("submit", idempotency_key=next(KEYS), **INTENT)
        with desk.worker(lambda _: Result(result_ref="s3://1")):
            found = desk.twin.call("wait_result", asked, timeout_s=20.0)
        assert (found.state, found.result_ref) == (State.SUCCEEDED, "s3://1")
        again = desk.twin.call("wait_result", asked.operation, timeout_s=0.0)
        assert again.state is State.SUCCEEDED

    def test_what_has_not_ended_in_time_is_handed_back_by_its_id(self, desk: Desk) -> None:
        asked = desk.admit()
        with pytest.raises(StillRunning) as waited:
            desk.twin.call("wait_result", asked.operation, timeout_s=0.1)
        assert waited.value.operation == asked.operation

    def test_an_unknown_outcome_is_no_end(self, desk: Desk) -> None:
        asked = desk.admit()
        with desk.worker(Twice(TimeoutError())):
            desk.until_state(asked.operation, State.UNKNOWN)
        with pytest.raises(StillRunning):
            desk.twin.call("wait_result", asked.operation, timeout_s=0.1)

    def test_what_does_not_exist_is_not_found(self, desk: Desk) -> None:
        with pytest.raises(errors.NotFound):
            desk.twin.call("wait_result", "00" * 16, timeout_s=1.0)


def _keys() -> Iterator[str]:
    from uuid import uuid4  # noqa: PLC0415

    while True:
        yield uuid4().hex


KEYS = _keys()
