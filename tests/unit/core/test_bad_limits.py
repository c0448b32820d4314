"""Limits that nobody means: all at their most at once, against each other, and changed all day."""

from itertools import islice
from random import Random

import pytest

from schemas import events as e
from schemas import inputs as i
from schemas.codec import encode
from schemas.codes import Code
from streams.core import configuration as conf
from streams.core.limits import (
    COUNT_MAX,
    LIMIT_MAX,
    PLACES_MAX,
    RESETS_MAX,
    TOKENS_MAX,
    WEIGHT_MAX,
    WINDOW_MS_MAX,
)
from streams.core.tables import Table
from tests.support import cells as s
from tests.support import core as c
from tests.support.scene import Scene, requests, slots, tokens

POLICIES = ["virtual_counter", "weighted_round_robin", "deficit_round_robin"]
YEAR = {"window_ms": WINDOW_MS_MAX, "pace_percent": None}
KNOWN = {"kind": "fixed", "reset_ms": LIMIT_MAX, "reset_uncertainty_ms": WINDOW_MS_MAX}
RESETS = tuple(LIMIT_MAX - n * WINDOW_MS_MAX for n in reversed(range(RESETS_MAX)))
LATER = {"kind": "fixed", "reset_ms": 0, "later_resets_ms": RESETS}
SPANS = ("transit_ms", "claim_by_ms", "send_within_ms", "hold_initial_ms", "retry_backoff_ms")
LARGEST = {
    **dict.fromkeys((*SPANS, "unknown_hold_ms", "call_ms_max"), LIMIT_MAX),
    **dict.fromkeys(("attempts_max", "skips_max", "age_max_ms", "saving_max_ms"), LIMIT_MAX),
    **dict.fromkeys(("throttles_max", "retry_burst", "cooldown_ms"), COUNT_MAX),
    **dict.fromkeys(("interactive_weight", "decision_weight", "bulk_weight"), WEIGHT_MAX),
    **dict.fromkeys(("waiting_count_max", "waiting_bytes_max"), LIMIT_MAX),
}
EVERY_KIND = (
    c.dimension("tokens", LIMIT_MAX, amount="actual", **YEAR),
    c.dimension("tokens-fixed", LIMIT_MAX, kind="fixed", **YEAR),
    c.dimension("tokens-known", LIMIT_MAX, **YEAR, **KNOWN),
    c.dimension("tokens-later", LIMIT_MAX, **YEAR, **LATER),
    c.dimension("tokens-bucket", 2 * TOKENS_MAX, kind="bucket", **YEAR),
    c.dimension("tokens-end", LIMIT_MAX, instant="completion", **YEAR),
    c.dimension("requests", 1, **YEAR),
    c.dimension("requests-ms", LIMIT_MAX, window_ms=1, pace_percent=1),
    c.dimension("slots", LIMIT_MAX),
)


def whole(tenant, **over):
    """The largest call that there is."""
    return c.submitted(
        tenant, "1", prompt_tokens=TOKENS_MAX, output_tokens_max=TOKENS_MAX, effect="keyed", **over
    )


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("field", [None, *LARGEST])
def test_with_each_number_at_its_most_and_with_all_a_call_runs_and_fits_every_row_and_event(
    policy, field
):
    bounds = dict.fromkeys((*conf.POSITIVE_BOUNDS, *conf.BOUNDS, "self_lease_ms"), LIMIT_MAX)
    domain = LARGEST if field is None else {field: LARGEST[field], "unknown_hold_ms": LIMIT_MAX}
    most = {"runtime_ms_max": LIMIT_MAX, "turns_max": LIMIT_MAX, "weight": WEIGHT_MAX}
    cell = c.Core(now_ms=1_800_000_000_000)
    events = cell.run(
        s.bounds(**{**bounds, "deferral_sample_ms": 1}),
        c.domain(*EVERY_KIND, policy=policy, **domain),
        c.pool(lease_ms=LIMIT_MAX, places_max=PLACES_MAX),
        *[c.tenant(name, **most) for name in "ab"],
    )
    assert not c.only(e.ConfigRefused, events)
    cell.run(c.join(places=PLACES_MAX), c.heartbeat())
    events = cell.run(whole("a", start_within_ms=LIMIT_MAX), whole("b"))
    (grant,) = s.grants(events)  # one request a year
    used = {"prompt_tokens": TOKENS_MAX, "output_tokens": TOKENS_MAX}
    for asked in (
        c.start(grant),
        c.sent(grant, LIMIT_MAX - 1),
        c.result(grant, "retryable", retry_after_ms=LIMIT_MAX, **used),
        c.usage(grant, TOKENS_MAX),
        c.domain(*EVERY_KIND[:-1], slots(1), policy=policy),
    ):
        events += cell.run(asked, after_ms=1)
    cell.take_over(step_ms=5_000)
    events += cell.run(after_ms=WINDOW_MS_MAX)
    assert all(encode(one) for one in events)
    assert s.same_as_followed(cell)


# -- against each other ---------------------------------------------------------------------------


def test_of_limits_that_contradict_each_other_the_tightest_holds():
    ten_a_minute_of_two_a_second = (
        c.dimension("requests-1s", 2, window_ms=1_000),
        c.dimension("requests-1h", 1_000, window_ms=3_600_000),
        requests(10),
    )
    scene = Scene(*ten_a_minute_of_two_a_second, slots(1_000), send_within_ms=1, call_s=0.1)
    scene.at(0, *[scene.job(str(n), start_within_ms=10**8) for n in range(30)])
    scene.at(59.9)
    times = list(scene.times().values())
    assert len(times) == 10
    assert max(sum(at <= one < at + 1 for one in times) for at in times) == 2
    scene.at(119.9)
    assert len(scene.grants) == 20


def test_a_tenants_limits_above_its_domains_and_below_any_call_are_told_apart():
    wide = i.TenantBudget(domain="d", dimensions=(tokens(10**9), slots(10**9)))
    tight = i.TenantBudget(domain="d", dimensions=(tokens(5),))
    paused = i.TenantBudget(domain="d", dimensions=(slots(0),))
    budgets = {"wide": wide, "tight": tight, "paused": paused}
    tenants = [c.tenant(name, budgets=(one,)) for name, one in budgets.items()]
    scene = Scene(tokens(100), slots(4), call_s=1, tenants=tenants)
    jobs = [scene.job(name, 50, tenant=name) for name in (*budgets, "free")]
    (refused,) = c.only(e.OperationRejected, scene.at(0, *jobs))
    assert (refused.tenant, refused.code, refused.level) == ("tight", Code.NEVER_FITS, "tenant")
    assert set(scene.times()) == {"wide", "free"}
    scene.at(61, scene.job("more", 100, tenant="wide"))
    assert "more" in scene.times()


# -- changed all day ------------------------------------------------------------------------------


def proposals(chance):
    """Good ones and bad ones: limits below use and of zero, contradictions, weights of zero."""
    while True:
        limit = chance.choice([-1, 0, 1, 3, 50, LIMIT_MAX, LIMIT_MAX + 1])
        yield chance.choice(
            [
                c.domain(slots(limit), tokens(chance.choice([0, 90, 900]))),
                c.domain(slots(3), c.dimension("requests", 9, window_ms=0)),
                c.domain(slots(3), tokens(900), policy=chance.choice([*POLICIES, "lottery"])),
                c.tenant(chance.choice("ab"), weight=chance.choice([0, 1, 7, WEIGHT_MAX + 1])),
                c.pool(lease_ms=chance.choice([0, 500, 60_000])),
            ]
        )


def test_ten_thousand_proposals_a_minute_are_each_answered_while_dispatch_goes_on():
    chance = Random(7)
    asked = proposals(chance)
    scene = Scene(slots(3), tokens(900), call_s=0.05)
    answers, largest, while_busy = 0, 0, 0
    for n in range(200):
        batch = list(islice(asked, 50))
        jobs = [scene.job(f"{tenant}{n}", 5, tenant=tenant) for tenant in "ab"]
        before, first = len(scene.grants), len(scene.cell.entries)
        events = scene.at(n * 0.3, *batch, *jobs)
        answers += len(c.only((e.ConfigActivated, e.ConfigRefused), events))
        entries = scene.cell.entries[first:]
        sizes = [sum(len(encode(one.event)) for one in decided) for _, decided in entries]
        largest = max(largest, *sizes)
        while_busy += len(scene.grants) > before
    assert answers == 10_000
    assert while_busy > 50
    assert largest < 64_000
    scene.at(61, scene.domain(slots(3), tokens(10**6)), c.tenant("a"), c.tenant("b"))
    scene.at(300)
    phases = {str(scene.cell.state.operation(one).phase) for one in scene.names}
    assert phases == {"succeeded"}
    assert s.used(scene.cell, "slots") == 0
    assert sum(key[0] is Table.CONFIG for key in scene.cell.rows.values) == 5
    assert s.same_as_followed(scene.cell)
