"""Shares and waits of three tenants on the recorded requests, under each policy."""

import statistics
from collections.abc import Iterator

from evenhand.dev.play import OUTPUT_TOKENS_MAX, TENANTS, arrivals
from streams.core.fairness import Policy
from tests.benchmarks.play import Call, Play, Way, dimension
from tests.benchmarks.record import MILLI
from tests.benchmarks.result import Result
from tests.support import core as c

WEIGHTS = {"code": 2, "chat-a": 1, "chat-b": 1}
RANKS = {name: rank for rank, name in enumerate(TENANTS)}
TOKENS_MAX = 1_100_000
"""A minute: about nine tenths of what the traces ask for, so that it binds most of the time."""
REQUESTS_MAX, SLOTS_MAX = 2_000, 256
WITHIN_MS = 600_000
WAY = Way(ask_us=2 * MILLI, send_us=5 * MILLI)
FIRST_MINUTE = 10


def run(*, quick: bool) -> Iterator[Result]:
    """`real-trace-<policy>`: the longest p95 wait of a tenant that asks for its share at most.

    Beside it what part of the tokens each got, and the median and p95 of its waits.

    Weights 2:1:1, and under strict priority `code` before `chat-a` before `chat-b`.
    """
    minutes = 1 if quick else 45
    asked = arrivals(first_minute=FIRST_MINUTE, minutes=minutes, speed_up=1)
    for policy in Policy:
        play = _play(policy, asked, minutes)
        waits = {name: _waits_s(play, name) for name in TENANTS}
        used = {name: _tokens(play, name) for name in TENANTS}
        parts = {
            name: f"{used[name] / sum(used.values()):.1%}, wait {p50:.1f} and {p95:.1f} s"
            for name, (p50, p95) in waits.items()
        }
        parts["expired"] = f"{play.heard['OperationExpired']}"
        modest = [name for name in TENANTS if _asks_its_share_at_most(play, name, minutes)]
        longest = max((waits[name][1] for name in modest), default=0.0)
        yield Result(name=f"real-trace-{policy}", value=longest, unit="s", parts=parts)


def _play(policy: str, asked: list, minutes: int) -> Play:
    room = {"waiting_count_max": 10**9, "waiting_bytes_max": 10**15}
    tenants = [
        c.tenant(name, weight=weight, rank=RANKS[name], **room) for name, weight in WEIGHTS.items()
    ]
    limits = (
        dimension("requests", REQUESTS_MAX),
        dimension("tokens", TOKENS_MAX, amount="actual"),
        dimension("slots", SLOTS_MAX),
    )
    play = Play(limits, tenants, way=WAY, domain={"policy": policy, "report_send": True})
    for arrival in asked:
        it = arrival.prompt
        ceiling = OUTPUT_TOKENS_MAX[arrival.tenant]
        call = Call(
            arrival.tenant,
            it.prompt_tokens + ceiling,
            it.service_ms(1),
            it.prompt_tokens + min(ceiling, it.generated_tokens),
            more={"start_within_ms": WITHIN_MS},
        )
        play.submit_at(int(arrival.at_ms * MILLI), call)
    play.run(minutes * 60_000 * MILLI)
    for one in limits:
        over = play.record.peak(one) - one.limit
        assert over <= 0, f"Expected {one.name} within its limit, but {over} above"
    return play


def _waits_s(play: Play, tenant: str) -> tuple[float, float]:
    """Median and p95 from submission to grant; what still waits has waited until the end."""
    waits = [
        ((story.granted_us if story.grant else play.now_us) - story.asked_us) / 1e6
        for story in play.stories.values()
        if story.call.tenant == tenant
    ]
    cuts = statistics.quantiles(waits, n=100, method="inclusive")
    return cuts[49], cuts[94]


def _asks_its_share_at_most(play: Play, tenant: str, minutes: int) -> bool:
    calls = [story.call for story in play.stories.values() if story.call.tenant == tenant]
    share = TOKENS_MAX * minutes * WEIGHTS[tenant] // sum(WEIGHTS.values())
    return sum(call.used or 0 for call in calls) <= share


def _tokens(play: Play, tenant: str) -> int:
    return sum(call.used for call in play.record.calls if call.tenant == tenant)
