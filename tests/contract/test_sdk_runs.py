"""Durable execution by the SDK: checkpoints, resume, and a tool loop whose turns are children."""

import threading

import pytest

from evenhand import Attempt, Outcome, Result, errors
from schemas.bodies import State
from tests.support.desk import Desk

RUN = {"turns_max": 3, "tools": ("search",), "prompt_tokens": 0, "output_tokens_max": 0}
TURN = {"prompt_tokens": 9, "output_tokens_max": 3}


def test_another_attempt_resumes_from_the_last_recorded_checkpoint(desk: Desk) -> None:
    begun: list[object] = []

    def handle(attempt: Attempt) -> Result | None:
        begun.append(attempt.resumed_from)
        if attempt.resumed_from is not None:
            attempt.checkpoint("s3://state/3")
            return None
        attempt.checkpoint("s3://state/1", context_bytes=1_000)
        attempt.checkpoint("s3://state/2", artifacts=2)
        return Result(outcome=Outcome.RETRYABLE)

    asked = desk.admit()
    with desk.worker(handle):
        desk.until_state(asked.operation, State.SUCCEEDED)
    assert begun == [None, (2, "s3://state/2")]


def test_a_turn_is_a_child_operation_of_the_same_tenant(desk: Desk) -> None:
    children: list[str] = []

    def handle(run: Attempt) -> None:
        with run.turn(**TURN) as turn:
            children.append(turn.operation)
            assert turn.grant.parent == run.grant.operation
            assert (turn.tenant, turn.grant.domain) == (run.tenant, run.grant.domain)
            turn.sent()
            turn.usage(prompt_tokens=8, output_tokens=2)

    asked = desk.admit(**RUN)
    with desk.worker(handle):
        desk.until_state(asked.operation, State.SUCCEEDED)
        found = desk.until_state(children[0], State.SUCCEEDED)
    assert (found.pool, found.used_output_tokens) == ("self", 2)


def test_a_run_takes_no_more_turns_than_were_admitted(desk: Desk) -> None:
    turns: list[str] = []

    def handle(run: Attempt) -> None:
        for _ in range(run.turns_left):
            with run.turn(**TURN) as turn:
                turns.append(turn.operation)
        with pytest.raises(errors.TurnsExhausted), run.turn(**TURN):
            pytest.fail("Expected no permission")

    asked = desk.admit(**RUN)
    with desk.worker(handle):
        desk.until_state(asked.operation, State.SUCCEEDED)
    assert len(set(turns)) == 3


def test_turns_are_counted_over_all_attempts_of_the_run(desk: Desk) -> None:
    refused = threading.Event()

    def handle(run: Attempt) -> Result | None:
        for _ in range(2):
            try:
                with run.turn(**TURN):
                    pass
            except errors.TurnsExhausted:
                refused.set()
        return Result(outcome=Outcome.RETRYABLE) if run.attempt == 1 else None

    asked = desk.admit(**RUN)
    with desk.worker(handle):
        desk.until_state(asked.operation, State.SUCCEEDED)
    assert refused.is_set()


def test_a_turn_that_throws_leaves_its_own_outcome_unknown_and_not_the_run(desk: Desk) -> None:
    children: list[str] = []

    def handle(run: Attempt) -> None:
        with pytest.raises(TimeoutError), run.turn(**TURN) as turn:
            children.append(turn.operation)
            turn.sent()
            raise TimeoutError

    asked = desk.admit(**RUN)
    with desk.worker(handle):
        desk.until_state(asked.operation, State.SUCCEEDED)
        desk.until_state(children[0], State.UNKNOWN)


def test_a_tool_that_was_not_admitted_is_refused(desk: Desk) -> None:
    def handle(run: Attempt) -> Result:
        run.tool("search")
        with pytest.raises(errors.ToolNotAllowed):
            run.tool("shell")
        return Result()

    asked = desk.admit(**RUN)
    with desk.worker(handle):
        desk.until_state(asked.operation, State.SUCCEEDED)
