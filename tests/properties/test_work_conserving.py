"""No complete pass leaves a head that could go, however it looks for them (R28): ask everybody."""

from collections import Counter
from random import Random

import pytest

from schemas.inputs import Prices, TenantBudget
from schemas.lanes import BULK, LANES
from tests.support import cells as s
from tests.support import core as c
from tests.support.walk import Walk

ENTRIES = 200


def fits(windows, cost, now_ms, keep):
    """Whether it fits every level and passes every pace, where it takes anything."""
    return all(
        window.free - keep(window) >= cost.amount(window.config) and window.opens_ms <= now_ms
        for window in windows
        if cost.amount(window.config)
    )


def reserve(window, percent):
    part = -(-window.config.limit * percent // 100)
    slots = window.config.kind == "concurrency"
    return min(part, max(window.config.limit - 1, 0)) if slots else part


def kept(domain, lane, tenant):
    """What a head leaves: of bulk the reserve, and behind a saver what that needs."""
    saver = domain.row.saving
    holds = saver is not None and LANES.index(lane) >= LANES.index(saver.lane)

    def keep(window):
        part = reserve(window, domain.config.bulk_reserve_percent) if lane == BULK else 0
        if holds and (window.level == "domain" or tenant == saver.tenant):
            own = domain.cost_of(saver.head).amount(window.config)
            part = part + own if saver.lane == BULK else max(part, own)
        return part

    return keep


def left_behind(state):
    """Heads that a pass should have granted, and what each of the others waits for."""
    for name, domain in state.config.domains.items():
        if domain.row.blocked or domain.row.cooldown_ms is not None:
            continue
        saver = domain.row.saving
        for lane in domain.lanes.values():
            for counter in lane.counters.values():
                for place, queue in counter.queues.items():
                    head = queue.head()
                    if state.free_member(place) is None or not state.config.runs(place, name):
                        yield "place", None
                        continue
                    is_saver = saver is not None and saver.head.sequence == head.sequence
                    keep = kept(domain, lane.name, counter.tenant)
                    if is_saver and lane.name != BULK:
                        keep = lambda _: 0  # noqa: E731
                    if saver is not None and saver.lane == BULK and lane.name != BULK:
                        yield "a saver of bulk", None  # which holds them back while it is owed
                        continue
                    windows, cost = domain.levels(counter.tenant), domain.cost_of(head)
                    could = fits(windows, cost, state.window_now_ms, keep)
                    yield "budget", (counter.tenant, lane.name, head) if could else None


def assert_nothing_is_left(state, waited):
    for why, head in left_behind(state):
        waited[why] += 1
        assert head is None, f"Expected {head} to be granted"


@pytest.mark.parametrize("seed", range(15))
def test_after_every_complete_pass_of_a_random_history_no_head_could_have_gone(seed):
    walk, waited = Walk(seed), Counter()
    for _ in range(ENTRIES):
        walk.entry()
        if not walk.cell.state.more:
            assert_nothing_is_left(walk.cell.state, waited)
    assert waited["place"] + waited["budget"] > 0


ALIKE = 200, 299
"""Sizes that an index by size hardly tells apart."""
SHORT = {"window_ms": 2_000}
BUDGETS = [
    [c.dimension("tokens", 3_000, amount="actual", **SHORT)],
    [c.dimension("tokens", 3_000, kind="bucket", pace_percent=None, **SHORT)],
    [
        c.dimension("input_tokens", 2_000, **SHORT),
        c.dimension("output_tokens", 1_000, pace_percent=40, **SHORT),
        c.dimension("money", 9_000, **SHORT),
        c.dimension("requests", 40, **SHORT),
        c.dimension("slots", 7),
    ],
]
PRICES = Prices(currency="EUR", input_micros=10**6, output_micros=5 * 10**6)
POLICIES = ["virtual_counter", "weighted_round_robin", "deficit_round_robin", "fifo"]


class Bazaar:
    """Many tenants in two pools and all lanes, some with caps, with calls of any size."""

    TENANTS = 40

    def __init__(self, seed, dimensions, policy):
        self.chance, self.sent, self.running = Random(seed), 0, []
        names = [f"t{n}" for n in range(self.TENANTS)]
        cap = TenantBudget(domain="d", dimensions=(c.dimension("slots", 1),))
        tenants = [
            c.tenant(
                name,
                lanes=LANES,
                weight=self.chance.choice([1, 2, 9]),
                budgets=(cap,) if self.chance.random() < 0.2 else (),
            )
            for name in names
        ]
        spans = {"send_within_ms": 50, "skips_max": 2}
        self.cell = s.cell(
            *dimensions, places=5, tenants=tenants, policy=policy, prices=PRICES, **spans
        )
        self.cell.run(c.pool("q"), c.join("n", pool="q", places=3), c.heartbeat("n"))
        self.names, self.alike = names, False

    def entry(self):
        chance, asked = self.chance, []
        for _ in range(chance.choice([0, 1, 3, 9])):
            self.sent += 1
            size = min(1_400, int(chance.lognormvariate(4, 1.5)) + 1)
            size = chance.randint(*ALIKE) if self.alike else size
            over = {"lane": chance.choice(LANES), "pool": chance.choice("pq")}
            over |= {"prompt_tokens": size, "output_tokens_max": min(900, size // 3)}
            asked.append(c.submitted(chance.choice(self.names), str(self.sent), **over))
        while self.running and chance.random() < 0.7:
            grant = self.running.pop(chance.randrange(len(self.running)))
            used = {"prompt_tokens": grant.prompt_tokens // 2, "output_tokens": 1}
            asked += [c.start(grant), c.result(grant, **used)]
        after_ms = chance.choice([0, 1, 20, 300])
        self.running += s.grants(self.cell.settle_down(*asked, after_ms=after_ms))
        self.cell.entries.clear()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("number", range(len(BUDGETS)))
def test_among_many_tenants_of_all_sizes_no_head_could_have_gone(number, policy):
    bazaar, waited = Bazaar(number, BUDGETS[number], policy), Counter()
    bazaar.alike = number == 0
    for _ in range(ENTRIES):
        bazaar.entry()
        assert_nothing_is_left(bazaar.cell.state, waited)
    assert waited["budget"] > 1_000
