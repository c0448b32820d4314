"""Once it saves, a large head waits no longer than is stated, whatever small calls do (R36).

In the highest lane: whoever saves in a lower one holds the higher ones back only while bulk is owed
its floor, and then no bound is stated.
"""

from heapq import heappop, heappush
from random import Random

import pytest

from schemas import events as e
from schemas.lanes import INTERACTIVE, LANES
from tests.support import cells as s
from tests.support import core as c

WINDOW_MS, LIMIT = 2_000, 1_000
CLAIM_BY_MS, SEND_WITHIN_MS, TRANSIT_MS = 500, 100, 30
HOLD_MS = 700
"""The longest call."""
STEP_MS = 20
SPAN_MS = 40_000
LARGE = LIMIT * 9 // 10
SAVES = {"skips_max": 2, "age_max_ms": 1_000, "saving_max_ms": 120_000}
CLOCK_MS = 2 + WINDOW_MS // 256 + 1
"""One, what two clocks may drift apart, and a bucket."""
CHARGED_MS = WINDOW_MS + CLAIM_BY_MS + SEND_WITHIN_MS + TRANSIT_MS + CLOCK_MS


def tokens(**over):
    return c.dimension("tokens", LIMIT, **{"window_ms": WINDOW_MS, **over})


BUDGETS = {
    # what binds, and how long a saver may wait for it
    "sliding": ((tokens(),), CHARGED_MS),
    "paced": ((tokens(pace_percent=20),), CHARGED_MS + WINDOW_MS),
    "at the end": ((tokens(instant="completion"),), CHARGED_MS + HOLD_MS),
    "bucket": ((tokens(kind="bucket", pace_percent=None),), CHARGED_MS),
    "slots": ((tokens(window_ms=1), c.dimension("slots", 6)), CLAIM_BY_MS + HOLD_MS),
    "several": (
        (tokens(), c.dimension("requests", 12, window_ms=500), c.dimension("slots", 4)),
        CHARGED_MS + HOLD_MS,
    ),
}


class Siege:
    """Small calls in every lane, as many as fit, that start late, last long and report nothing."""

    def __init__(self, seed, dimensions, **domain):
        self.chance = Random(seed)
        tenants = [c.tenant(name, lanes=LANES) for name in "abcz"]
        spans = {"claim_by_ms": CLAIM_BY_MS, "send_within_ms": SEND_WITHIN_MS}
        self.cell = s.cell(
            *dimensions, tenants=tenants, transit_ms=TRANSIT_MS, **spans, **SAVES, **domain
        )
        self.sent, self.due = 0, []
        self.saving, self.waited = {}, []

    def play(self):
        cell, end_ms = self.cell, self.cell.now_ms + SPAN_MS
        while cell.now_ms < end_ms:
            asked = []
            while self.due and self.due[0][0] <= cell.now_ms:
                asked.append(heappop(self.due)[2])
            for tenant in "abc":
                missing = 3 - cell.state.waiting(tenant).count
                asked += [self.small(tenant) for _ in range(missing)]
            if not cell.state.waiting("z").count:
                asked.append(self.submission("z", LARGE, INTERACTIVE))
            self.see(cell.settle_down(*asked, after_ms=STEP_MS))
            cell.entries.clear()

    def small(self, tenant):
        size = self.chance.choice([1, 10, 50, self.chance.randint(1, LIMIT - LARGE)])
        return self.submission(tenant, size, self.chance.choice(LANES))

    def submission(self, tenant, size, lane):
        self.sent += 1
        return c.submitted(
            tenant, str(self.sent), prompt_tokens=size, output_tokens_max=0, lane=lane
        )

    def see(self, events):
        now_ms = self.cell.now_ms
        for event in events:
            if isinstance(event, e.SavingStarted) and event.lane == INTERACTIVE:
                self.saving[event.operation] = now_ms
            if isinstance(event, e.GrantIssued):
                late_ms = self.chance.choice([0, CLAIM_BY_MS - 2 * STEP_MS])
                lasts_ms = self.chance.choice([1, HOLD_MS - 2 * STEP_MS])
                self.later(late_ms, c.start(event))
                self.later(late_ms + lasts_ms, c.result(event, prompt_tokens=None))
                if event.operation in self.saving:
                    self.waited.append(now_ms - self.saving.pop(event.operation))

    def later(self, span_ms, asked):
        self.sent += 1
        heappush(self.due, (self.cell.now_ms + span_ms, self.sent, asked))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", BUDGETS)
def test_a_saver_waits_no_longer_than_its_bound_beside_small_calls_that_take_all_they_can(
    name, seed
):
    dimensions, bound_ms = BUDGETS[name]
    siege = Siege(seed, dimensions)
    siege.play()
    assert len(siege.waited) >= 3, "Expected heads that save"
    assert max(siege.waited) <= bound_ms + STEP_MS
