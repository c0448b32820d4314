"""What `acquire` promises, asked of both twins, of the shipped double and of a real cell."""

import pytest

from evenhand import Attempt, NotSent, errors
from schemas.bodies import State
from tests.support.desk import INTENT, Desk

ACQUIRED = {name: INTENT[name] for name in ("domain", "prompt_tokens", "output_tokens_max")}


def test_acquire_settles_on_leaving(desk: Desk) -> None:
    with desk.twin.acquire(**ACQUIRED) as grant:
        grant.sent()
        grant.usage(prompt_tokens=1, output_tokens=2)
    found = desk.until_state(grant.operation, State.SUCCEEDED)
    assert (found.pool, found.used_output_tokens) == ("self", 2)


def test_acquire_gives_back_what_was_not_sent(desk: Desk) -> None:
    with pytest.raises(NotSent), desk.twin.acquire(**ACQUIRED) as grant:
        raise NotSent
    desk.until_state(grant.operation, State.CANCELLED)


def test_acquire_leaves_it_unknown_when_its_block_fails_after_the_call(desk: Desk) -> None:
    def ask(grant: Attempt) -> None:
        grant.sent()
        raise LookupError

    with pytest.raises(LookupError), desk.twin.acquire(**ACQUIRED) as grant:
        ask(grant)
    desk.until_state(grant.operation, State.UNKNOWN)
    grant.usage(prompt_tokens=80, output_tokens=7)
    found = desk.until_state(grant.operation, State.SUCCEEDED)
    assert found.used_output_tokens == 7


def test_acquire_gives_back_what_never_had_a_connection(desk: Desk) -> None:
    with pytest.raises(ConnectionRefusedError), desk.twin.acquire(**ACQUIRED) as grant:
        raise ConnectionRefusedError
    desk.until_state(grant.operation, State.CANCELLED)


def test_acquire_is_not_tried_again_for_nobody_after_a_throttle(desk: Desk) -> None:
    with desk.twin.acquire(**ACQUIRED) as grant:
        grant.throttled(after_s=0)
    desk.until_state(grant.operation, State.CANCELLED)


def test_acquire_raises_what_refuses_it_and_goes_on(desk: Desk) -> None:
    with pytest.raises(errors.UnknownDomain), desk.twin.acquire(**{**ACQUIRED, "domain": "x"}):
        pytest.fail("Expected no permission")
    with desk.twin.acquire(**ACQUIRED) as grant:
        assert grant.send_within_s > 0
