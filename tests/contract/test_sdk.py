"""What the SDK promises, asked of both twins, of the shipped double and of the real transports."""

import threading
from collections import Counter
from typing import Any
from uuid import uuid4

import pytest

from evenhand import Attempt, NotSent, Outcome, Result, errors
from schemas.bodies import State
from tests.support.desk import STANDING, Desk
from tests.support.kafka import until

WAIT_S = 20.0


def test_a_handler_runs_what_was_submitted_and_its_usage_is_recorded(desk: Desk) -> None:
    seen: list[Attempt] = []

    def handle(attempt: Attempt) -> Result:
        seen.append(attempt)
        attempt.sent()
        attempt.usage(prompt_tokens=88, output_tokens=7)
        return Result(result_ref="s3://result")

    asked = desk.admit(payload_ref="s3://payload")
    with desk.worker(handle) as worker:
        worker.wait_joined()
        found = desk.until_state(asked.operation, State.SUCCEEDED)
    assert [attempt.operation for attempt in seen] == [asked.operation]
    assert seen[0].payload_ref == "s3://payload"
    assert (seen[0].prompt_tokens, seen[0].output_tokens_max) == (90, 30)
    assert (found.used_prompt_tokens, found.used_output_tokens) == (88, 7)
    assert (found.outcome, found.result_ref) == ("success", "s3://result")


def test_a_repeat_of_the_key_is_the_same_operation(desk: Desk) -> None:
    first = desk.admit("one-intent" + uuid4().hex)
    key = uuid4().hex
    again = [desk.admit(key).operation for _ in range(2)]
    assert again[0] == again[1] != first.operation


@pytest.mark.parametrize("cell", ["fake", "http"], indirect=True)
def test_the_same_key_for_another_payload_is_refused_and_changes_nothing(desk: Desk) -> None:
    key = uuid4().hex
    asked = desk.admit(key)
    with pytest.raises(errors.IdempotencyMismatch) as refused:
        desk.admit(key, prompt_tokens=91)
    assert not refused.value.keep_key
    assert desk.get(asked.operation).prompt_tokens == 90


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"pool": "nobody"}, errors.UnknownPool),
        ({"domain": "nowhere"}, errors.UnknownDomain),
        ({"output_tokens_max": None}, errors.OutputCeilingMissing),
        ({"start_within_ms": None}, errors.DeadlineMissing),
    ],
)
def test_a_refusal_is_raised_by_the_class_of_its_code(
    desk: Desk, fields: dict[str, Any], refusal: type[errors.EvenhandError]
) -> None:
    with pytest.raises(refusal) as refused:
        desk.admit(**fields)
    assert refused.value.operation is not None


def test_a_wrong_field_is_refused_before_anything_is_sent(desk: Desk) -> None:
    with pytest.raises(errors.InvalidField, match="prompt_tokens"):
        desk.admit(prompt_tokens=-1)


@pytest.mark.parametrize("cell", ["fake", "http"], indirect=True)
def test_what_does_not_exist_is_not_found(desk: Desk) -> None:
    with pytest.raises(errors.NotFound):
        desk.get("00" * 16)
    with pytest.raises(errors.NotFound):
        desk.twin.call("cancel", "00" * 16)


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (Outcome.TERMINAL, State.FAILED),
        (Outcome.POLICY_DENIED, State.FAILED),
        (Outcome.CANCELLED, State.CANCELLED),
    ],
)
def test_a_handler_may_tell_how_it_ended(desk: Desk, outcome: Outcome, state: State) -> None:
    asked = desk.admit()
    with desk.worker(lambda _: Result(outcome=outcome, error="because")):
        assert desk.until_state(asked.operation, state).outcome == outcome


def test_what_was_not_sent_waits_again_with_the_same_provider_key(desk: Desk) -> None:
    keys: list[str] = []

    def handle(attempt: Attempt) -> None:
        keys.append(attempt.provider_key)
        if len(keys) == 1:
            raise NotSent

    asked = desk.admit()
    with desk.worker(handle):
        desk.until_state(asked.operation, State.SUCCEEDED)
    assert len(keys) == 2
    assert keys[0] == keys[1]


@pytest.mark.parametrize(("pool", "effect"), [("default", "unsafe"), (STANDING, "read_only")])
def test_a_worker_never_runs_more_than_its_places(desk: Desk, pool: str, effect: str) -> None:
    running, most = Counter[str](), 0
    lock, gate = threading.Lock(), threading.Event()

    def handle(_: Attempt) -> None:
        nonlocal most
        with lock:
            running["now"] += 1
            most = max(most, running["now"])
        gate.wait(WAIT_S)
        with lock:
            running["now"] -= 1
            running["done"] += 1

    for _ in range(8):
        desk.admit(pool=pool, effect=effect)
    with desk.worker(handle, pool=pool, places=3):
        until(lambda: running["now"] == 3, "every place to be taken")
        gate.set()
        until(lambda: running["done"] == 8, "all to be done")
    assert most == 3


def test_a_stopped_worker_finishes_what_runs_and_takes_no_more(desk: Desk) -> None:
    begun, gate = threading.Event(), threading.Event()
    seen: list[str] = []

    def handle(attempt: Attempt) -> None:
        seen.append(attempt.operation)
        begun.set()
        gate.wait(WAIT_S)

    first, second = desk.admit(), desk.admit()
    with desk.worker(handle) as worker:
        assert begun.wait(WAIT_S)
        worker.stop()
        gate.set()
    assert desk.until_state(first.operation, State.SUCCEEDED)
    assert seen == [first.operation]
    assert desk.get(second.operation).state in (State.WAITING, State.GRANTED)


def test_cancelling_what_waits_ends_it(desk: Desk) -> None:
    asked = desk.admit()
    desk.twin.call("cancel", asked.operation, reason="no longer needed")
    desk.until_state(asked.operation, State.CANCELLED)


def test_a_running_handler_sees_that_its_end_is_wanted(desk: Desk) -> None:
    begun = threading.Event()

    def handle(attempt: Attempt) -> Result:
        begun.set()
        until(lambda: attempt.cancel_requested, "the cancel signal")
        return Result(outcome=Outcome.CANCELLED)

    asked = desk.admit()
    with desk.worker(handle):
        assert begun.wait(WAIT_S)
        desk.twin.call("cancel", asked.operation)
        desk.until_state(asked.operation, State.CANCELLED)


def test_a_pool_that_does_not_exist_ends_the_worker(desk: Desk) -> None:
    with pytest.raises(errors.UnknownPool):
        desk.twin.run_worker(lambda _: None, pool="nobody", via=desk.kafka)
