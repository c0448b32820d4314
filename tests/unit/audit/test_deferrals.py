"""Defects in what is said to hold a head back: each is named at its position."""

from typing import Any

import pytest
from msgspec.structs import replace

from schemas.ids import OperationId
from tests.support.budget import TOKENS, domain_of
from tests.support.history import History
from tests.support.plants import Plant, Plants, granted, judge
from tests.support.words import e

plants = Plants()


def defer(history: History, operation: OperationId, **changes: Any) -> int:
    known = {"tenant": "t", "operation": operation, "domain": "d"}
    told = {"level": "domain", "dimension": "tokens-1s", **known, **changes}
    return history.append([], [e.OperationDeferred(**told)])


@plants.breaks("deferrals")
def whoever_runs_is_deferred(history: History) -> int:
    return defer(history, granted(history))


@plants.breaks("deferrals")
def it_is_deferred_in_a_domain_of_others(history: History) -> int:
    return defer(history, history.submit("a"), domain="other")


@plants.breaks("deferrals")
def a_limit_that_nobody_configured_holds_it_back(history: History) -> int:
    return defer(history, history.submit("a"), dimension="money")


@plants.breaks("deferrals")
def a_domains_limit_is_taken_for_the_tenants(history: History) -> int:
    return defer(history, history.submit("a"), level="tenant")


@plants.breaks("deferrals")
def a_pace_holds_it_back_where_there_is_none(history: History) -> int:
    return defer(history, history.submit("a"), held_by="pace")


@plants.breaks("deferrals")
def the_reserve_of_bulk_holds_back_another_lane(history: History) -> int:
    return defer(history, history.submit("a"), held_by="reserve")


@plants.breaks("deferrals")
def a_saver_holds_it_back_while_nobody_saves(history: History) -> int:
    return defer(history, history.submit("a"), held_by="saver")


@plants.breaks("deferrals")
def a_saver_holds_back_itself(history: History) -> int:
    return defer(history, saver(history), held_by="saver")


@plants.breaks("deferrals")
def something_unheard_of_holds_it_back(history: History) -> int:
    return defer(history, history.submit("a"), held_by="the weather")


@plants.cases()
def test_a_planted_defect_is_named_at_its_position(check: str, plant: Plant) -> None:
    judge(check, plant)


def saver(history: History) -> OperationId:
    """A head of 80 of 90 tokens saves after one skip."""
    history.configure("domain", "d", domain=replace(domain_of(TOKENS), skips_max=1))
    operation = history.submit("large", output_tokens_max=70)
    history.grant(history.submit("small", lane="decision"), skipped=operation)
    saving = e.SavingStarted(
        tenant="t", operation=operation, domain="d", lane="interactive", skips=1, since_ms=0
    )
    history.append([], [saving])
    return operation


@pytest.mark.parametrize(
    ("lane", "held_by"),
    [
        ("interactive", "budget"),
        ("interactive", "far"),
        ("interactive", "pace"),
        ("interactive", "saver"),
        ("bulk", "reserve"),
    ],
)
def test_whatever_can_hold_a_head_back_may_be_told(lane: str, held_by: str) -> None:
    history = History()
    saver(history)
    paced = replace(domain_of(replace(TOKENS, pace_percent=10)), skips_max=1)
    if held_by == "pace":
        history.configure("domain", "d", domain=paced)
    defer(history, history.submit("a", lane=lane), held_by=held_by)
    assert history.audit().clean
