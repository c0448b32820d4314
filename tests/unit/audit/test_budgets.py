"""Grants that did not fit: each is named at its position."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.budget import REQUESTS, TOKENS, domain_of
from tests.support.history import History
from tests.support.plants import Plant, Plants, judge, started
from tests.support.words import i

plants = Plants()

ONE = i.DimensionConfig(name="r", unit="requests", kind="sliding", limit=1, window_ms=1_000)


# -- budgets ---------------------------------------------------------------------------------------


def spent(history: History, *dimensions: Any) -> None:
    """Three calls of 30 tokens, each run to its end."""
    history.configure("domain", "d", domain=domain_of(*dimensions))
    for key in "abc":
        history.run(history.submit(key))


@plants.breaks("budgets")
def one_request_too_many(history: History) -> int:
    spent(history, REQUESTS)
    return history.grant(history.submit("d"))


@plants.breaks("budgets")
def one_token_too_many(history: History) -> int:
    spent(history, TOKENS)
    return history.grant(history.submit("d", prompt_tokens=1, output_tokens_max=0))


@plants.breaks("budgets")
def one_slot_too_many(history: History) -> int:
    history.join("n")
    for key in "ab":
        started(history, key)
    return history.grant(history.submit("c"), member="n")


@plants.breaks("budgets")
def a_charge_let_go_without_its_takeover_term(history: History) -> int:
    spent(history, REQUESTS)
    history.takeover()
    history.wait(1_000 + 105 + 2)
    return history.grant(history.submit("d"))


@plants.breaks("budgets")
def a_late_send_report_that_loses_the_takeover_term(history: History) -> int:
    history.configure("domain", "d", domain=domain_of(REQUESTS))
    operation = started(history)
    at_ms = history.now_ms
    history.run(history.submit("b"))
    history.takeover()
    history.sent(operation, delay_ms=0, latest_ms=at_ms + 5)
    history.run(history.submit("c"))
    history.now_ms = at_ms + 1_000 + 5 + 2 + 50
    return history.grant(history.submit("d"))


@plants.breaks("budgets")
def a_tenant_beyond_its_own_budget(history: History) -> int:
    own = i.DimensionConfig(name="r", unit="requests", kind="sliding", limit=1, window_ms=1_000)
    budget = i.TenantBudget(domain="d", dimensions=(own,))
    history.configure("tenant", "t", tenant=i.TenantConfig(weight=2, budgets=(budget,)))
    history.run(history.submit("a"))
    return history.grant(history.submit("b"))


@plants.breaks("budgets")
def a_refund_where_what_was_reserved_counts(history: History) -> int:
    history.configure("domain", "d", domain=domain_of(TOKENS))
    operation = started(history)
    history.result(operation, tokens_actual=1)
    history.run(history.submit("b"))
    history.run(history.submit("c"))
    return history.grant(history.submit("d", prompt_tokens=1, output_tokens_max=0))


@plants.breaks("budgets")
def an_overdraft_that_frees_the_budget(history: History) -> int:
    history.configure("domain", "d", domain=domain_of(TOKENS))
    operation = started(history)
    history.result(operation, tokens_actual=61, overdraft_tokens=31)
    return history.grant(history.submit("b"))


@plants.breaks("budgets")
def a_call_that_counts_at_completion_leaves_with_its_arrival(history: History) -> int:
    late = i.DimensionConfig(
        name="r",
        unit="requests",
        kind="sliding",
        limit=1,
        window_ms=1_000,
        instant="completion",
    )
    history.configure("domain", "d", domain=domain_of(late))
    operation = started(history)
    history.wait(5_000)
    history.result(operation)
    history.wait(900)
    return history.grant(history.submit("b"))


@plants.breaks("budgets")
def a_fixed_window_forgets_a_call_at_its_edge(history: History) -> int:
    fixed = i.DimensionConfig(
        name="r", unit="requests", kind="fixed", limit=1, window_ms=1_000, reset_ms=0
    )
    history.configure("domain", "d", domain=domain_of(fixed))
    history.now_ms = 1_001_950
    history.run(history.submit("a"))
    history.now_ms = 1_002_050
    return history.grant(history.submit("b"))


@plants.breaks("budgets")
def a_day_of_25_hours_ends_after_24(history: History) -> int:
    """Of hours of 10 ms, so that no call near its edges may fall into both days."""
    day = i.DimensionConfig(
        name="r",
        unit="requests",
        kind="fixed",
        limit=1,
        window_ms=240,
        reset_ms=1_000_000,
        later_resets_ms=(1_000_250,),
    )
    history.configure("domain", "d", domain=domain_of(day))
    history.now_ms = 1_000_100
    history.run(history.submit("a"))
    history.now_ms = 1_000_242
    return history.grant(history.submit("b"))


def paced(limit: int = 10, percent: int = 1) -> Any:
    return i.DimensionConfig(
        name="r",
        unit="requests",
        kind="sliding",
        limit=limit,
        window_ms=1_000,
        pace_percent=percent,
    )


@plants.breaks("budgets")
def a_grant_before_the_pace_allows_it(history: History) -> int:
    history.configure("domain", "d", domain=domain_of(paced()))
    history.run(history.submit("a"))
    return history.grant(history.submit("b"))


@plants.breaks("budgets")
def an_overdraft_that_owes_the_pace_nothing(history: History) -> int:
    tokens = replace(paced(limit=1_000), unit="tokens")
    history.configure("domain", "d", domain=domain_of(tokens))
    operation = started(history)
    history.result(operation, tokens_actual=500, overdraft_tokens=470)
    operation = history.submit("b")
    history.wait(100)
    return history.grant(operation)


@plants.breaks("budgets")
def a_paused_domain_grants(history: History) -> int:
    paused = i.DimensionConfig(name="slots", unit="slots", kind="concurrency", limit=0)
    history.configure("domain", "d", domain=domain_of(paused))
    return history.grant(history.submit("a"))


@plants.cases()
def test_a_planted_defect_is_named_at_its_position(check: str, plant: Plant) -> None:
    judge(check, plant)


@pytest.mark.parametrize("takeovers", [0, 1, 3])
@pytest.mark.parametrize("early_ms", [0, 1])
def test_a_charge_counts_up_to_its_exit_and_not_longer(takeovers: int, early_ms: int) -> None:
    history = History()
    history.configure("domain", "d", domain=domain_of(ONE))
    operation = started(history)
    # latest arrival, W, 1 ms, rho * (W + send-within); a takeover adds its term once
    exit_ms = history.now_ms + 105 + 1_000 + 1 + 1 + (121 if takeovers else 0)
    history.result(operation)
    for _ in range(takeovers):
        history.takeover()
    operation = history.submit("b")
    history.now_ms = exit_ms - early_ms - 1
    history.grant(operation)
    assert history.audit().found == early_ms


@pytest.mark.parametrize("early_ms", [0, 1])
def test_a_step_of_time_moves_every_exit(early_ms: int) -> None:
    history = History()
    history.configure("domain", "d", domain=domain_of(ONE))
    operation = started(history)
    exit_ms = history.now_ms + 5 + 1_000 + 1 + 1 + 10_000
    history.wait(10_000)
    history.append([], [], time_step_ms=10_000)
    history.sent(operation, delay_ms=0, latest_ms=exit_ms - 1_002)
    history.result(operation)
    operation = history.submit("b")
    history.now_ms = exit_ms - early_ms - 1
    history.grant(operation)
    assert history.audit().found == early_ms


@pytest.mark.parametrize("early_ms", [0, 1])
def test_a_pace_opens_when_less_than_its_burst_is_left_and_not_later(early_ms: int) -> None:
    history = History()
    history.configure("domain", "d", domain=domain_of(paced(percent=5)))
    history.grant(history.submit("a"))
    opens_ms = history.now_ms + 100 - 50 + 1
    operation = history.submit("b")
    history.now_ms = opens_ms - early_ms - 1
    history.grant(operation)
    assert history.audit().found == early_ms


def test_another_limit_begins_with_an_empty_pace_and_a_step_of_time_moves_it() -> None:
    history = History()
    history.configure("domain", "d", domain=domain_of(paced()))
    history.grant(history.submit("a"))
    history.configure("domain", "d", domain=domain_of(paced(limit=9)))
    history.grant(history.submit("b"))
    assert history.audit().clean
    history.wait(10_000)
    history.append([], [], time_step_ms=10_000)
    history.join("n")
    history.grant(history.submit("c"), member="n")
    assert history.audit().found == 1


@pytest.mark.parametrize(("window_ms", "found"), [(1_000, 1), (600_000, 1), (600_001, 0)])
def test_a_window_of_up_to_ten_minutes_has_a_pace_unless_it_is_told_not_to(
    window_ms: int, found: int
) -> None:
    usual = replace(paced(limit=5), window_ms=window_ms, pace_percent=None)
    history = History()
    history.configure("domain", "d", domain=domain_of(usual))
    history.grant(history.submit("a"))
    history.grant(history.submit("b"))
    assert history.audit().found == found
