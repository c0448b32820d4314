"""What a budget gives, and to whom: more of anything else adds nothing, and a flood takes nothing.

A play of half a minute: each call is sent at once, lasts a while, and work always waits.
"""

import statistics
from heapq import heappop, heappush
from random import Random

import pytest

from schemas import events as e
from schemas.lanes import BULK, INTERACTIVE, LANES
from tests.support import cells as s
from tests.support import core as c

SPAN_MS, STEP_MS = 30_000, 20
SENT_MS, CALL_MS = 3, 50
UNPACED = {"pace_percent": 100}


class Crowd:
    """Members with places, tenants whose queues are kept full or are fed at a rate."""

    def __init__(self, *dimensions, members=1, places=8, queues=4, reports=True, **over):
        self.chance = Random(1)
        self.cell = s.cell(*dimensions, places=places, **over)
        for n in range(1, members):
            self.cell.run(c.join(f"m{n}", places=places), c.heartbeat(f"m{n}"))
        self.queues, self.reports = queues, reports
        self.sent, self.due, self.asked = 0, [], {}
        self.grants, self.waits, self.answers = [], {}, []

    def play(self, span_ms=SPAN_MS, *, full=("a", "b"), fed=None):
        """`fed`: calls a second of each of these."""
        end_ms = self.cell.now_ms + span_ms
        while self.cell.now_ms < end_ms:
            asked = []
            while self.due and self.due[0][0] <= self.cell.now_ms:
                asked.append(heappop(self.due)[2])
            for tenant in full:
                missing = self.queues - self.cell.state.waiting(tenant).count
                asked += [self.ask(tenant) for _ in range(missing)]
            for tenant, rate in (fed or {}).items():
                if self.chance.random() < rate * STEP_MS / 1_000:
                    asked.append(self.ask(tenant))
            self.see(self.cell.settle_down(*asked, after_ms=STEP_MS))
            self.cell.entries.clear()
        return self

    def ask(self, tenant):
        self.sent += 1
        lane = BULK if tenant == "bulk" else INTERACTIVE
        asked = c.submitted(tenant, str(self.sent), start_within_ms=10**8, lane=lane)
        self.asked[c.id_of(asked)] = self.cell.now_ms + STEP_MS
        return asked

    def see(self, events):
        now_ms = self.cell.now_ms
        for event in events:
            if isinstance(event, e.OperationAdmitted | e.OperationRejected):
                self.answers.append((event.tenant, type(event), now_ms))
            if isinstance(event, e.GrantIssued):
                self.grants.append(event)
                waited_ms = now_ms - self.asked[event.operation]
                self.waits.setdefault(event.tenant, []).append(waited_ms)
                self.later(0, c.start(event))
                if event.report_send and self.reports:
                    self.later(STEP_MS, c.sent(event, SENT_MS))
                self.later(CALL_MS, c.result(event))

    def later(self, span_ms, asked):
        self.sent += 1
        heappush(self.due, (self.cell.now_ms + span_ms, self.sent, asked))


BUDGET = c.dimension("requests", 120, window_ms=6_000, **UNPACED)


@pytest.mark.parametrize("more", [{"members": 4}, {"places": 32}, {"queues": 16}])
def test_four_times_the_workers_places_or_queues_are_granted_what_the_budget_gives(more):
    """R37."""
    before, after = Crowd(BUDGET).play(), Crowd(BUDGET, **more).play()
    assert len(after.grants) == pytest.approx(len(before.grants), rel=0.01)


@pytest.mark.parametrize(("reports", "least", "most"), [(True, 0.93, 1.0), (False, 0.45, 0.51)])
def test_a_window_of_a_second_is_used_up_if_members_tell_when_they_sent(reports, least, most):
    """R173. Untold, a charge stays for as long as its call might have been sent later."""
    crowd = Crowd(c.dimension("requests", 20, window_ms=1_000, **UNPACED), reports=reports)
    assert least <= len(crowd.play().grants) / (20 * SPAN_MS / 1_000) <= most


def test_who_sends_nine_tenths_of_everything_is_bounded_by_its_queue_and_its_weight():
    """R151. Beside it the others are admitted at once and wait for seconds, not for its backlog."""
    quiet = {f"quiet-{n}": 0.5 for n in range(4)}
    budget = c.dimension("requests", 1_200, window_ms=60_000, pace_percent=5)
    alone = Crowd(budget).play(full=(), fed=quiet)
    flood = Crowd(budget, queues=200, tenants=[c.tenant("elephant", waiting_count_max=150)])
    flood.play(full=("elephant",), fed=quiet)
    refused = {tenant for tenant, kind, _ in flood.answers if kind is e.OperationRejected}
    assert refused == {"elephant"}
    for crowd, bound_ms in ((alone, 100), (flood, 3_000)):
        waits = [wait for tenant in quiet for wait in crowd.waits[tenant]]
        assert len(waits) > 40
        assert statistics.quantiles(waits, n=100)[98] <= bound_ms
    assert len(flood.waits["elephant"]) > 400


def test_beside_a_bulk_run_interactive_calls_take_hardly_longer_than_alone():
    """R112. Of eight slots bulk leaves two."""
    slots, fed = c.dimension("slots", 8), {"a": 12, "b": 12}
    tenants = [c.tenant("bulk", lanes=LANES, waiting_count_max=10**4)]
    alone = Crowd(slots, tenants=tenants).play(full=(), fed=fed)
    beside = Crowd(slots, tenants=tenants, queues=50).play(full=("bulk",), fed=fed)
    assert len(beside.waits["bulk"]) > 1_000
    took = [
        statistics.quantiles(crowd.waits["a"] + crowd.waits["b"], n=20)[18] + CALL_MS
        for crowd in (alone, beside)
    ]
    assert took[1] <= 1.5 * took[0]
