"""Grants that found too little in a bucket: each is named at its position."""

from typing import Any

import pytest

from tests.support.budget import domain_of
from tests.support.history import History
from tests.support.plants import Plant, Plants, judge, started
from tests.support.words import i

plants = Plants()
TERM_MS = 121


def bucket(limit: int = 60, **over: Any) -> Any:
    fields = {"name": "t", "unit": "tokens", "kind": "bucket", "limit": limit, "window_ms": 1_000}
    return i.DimensionConfig(**{**fields, **over})


def drawn(history: History, **over: Any) -> int:
    """Two calls of 30 tokens, each run to its end; when the second began to be refilled."""
    history.configure("domain", "d", domain=domain_of(bucket(**over)))
    history.run(history.submit("a"))
    started(history, "b")
    return history.now_ms + 105 + 1 + 1


@plants.breaks("budgets")
def a_grant_from_an_empty_bucket(history: History) -> int:
    drawn(history)
    return history.grant(history.submit("c"), member="m")


@plants.breaks("budgets")
def a_bucket_refilled_before_the_call_has_surely_arrived(history: History) -> int:
    history.configure("domain", "d", domain=domain_of(bucket(limit=30)))
    started(history)
    history.wait(104)
    return history.grant(history.submit("b", prompt_tokens=1, output_tokens_max=0))


@plants.breaks("budgets")
def a_refund_where_what_was_reserved_counts(history: History) -> int:
    history.configure("domain", "d", domain=domain_of(bucket()))
    history.result(started(history), tokens_actual=1)
    history.run(history.submit("b"))
    return history.grant(history.submit("c"))


@plants.breaks("budgets")
def an_overdraft_that_is_refilled_at_once(history: History) -> int:
    history.configure("domain", "d", domain=domain_of(bucket()))
    operation = started(history)
    history.wait(500)
    history.result(operation, tokens_actual=75, overdraft_tokens=45)
    return history.grant(history.submit("b"))


@plants.breaks("budgets")
def a_call_that_counts_at_completion_is_refilled_from_its_arrival(history: History) -> int:
    history.configure("domain", "d", domain=domain_of(bucket(limit=30, instant="completion")))
    operation = started(history)
    history.wait(5_000)
    history.result(operation)
    return history.grant(history.submit("b", prompt_tokens=1, output_tokens_max=0))


@plants.cases()
def test_a_planted_defect_is_named_at_its_position(check: str, plant: Plant) -> None:
    judge(check, plant)


@pytest.mark.parametrize("takeovers", [0, 1])
@pytest.mark.parametrize("early_ms", [0, 1])
def test_a_bucket_has_enough_from_an_instant_on_and_not_earlier(
    takeovers: int, early_ms: int
) -> None:
    history = History(places=5)
    full_ms = drawn(history) + (TERM_MS if takeovers else 0)
    for _ in range(takeovers):
        history.takeover()
    operation = history.submit("c", prompt_tokens=31, output_tokens_max=0)
    # Of the first 30 some were refilled meanwhile, and all is refilled 200 ppm too slowly.
    history.now_ms = full_ms + 517 - early_ms - 1
    history.grant(operation)
    assert history.audit().found in ((0,) if early_ms == 0 else (0, 1))


@pytest.mark.parametrize("step_ms", [0, 10_000])
def test_a_bucket_is_not_refilled_by_a_step_of_time(step_ms: int) -> None:
    history = History(places=5)
    drawn(history)
    history.wait(10_000)
    if step_ms:
        history.append([], [], time_step_ms=step_ms)
        history.join("n")
    history.grant(history.submit("c"), member="n" if step_ms else "m")
    assert history.audit().found == (1 if step_ms else 0)


def test_what_was_not_sent_fills_the_bucket_again_and_another_capacity_begins_full() -> None:
    history = History(places=5)
    history.configure("domain", "d", domain=domain_of(bucket(limit=30)))
    operation = started(history)
    history.not_sent(operation)
    history.run(operation)
    history.configure("domain", "d", domain=domain_of(bucket(limit=31)))
    history.run(history.submit("c"))
    assert history.audit().clean
