"""Budgets over random histories: no window oversold by a provider's own record, none leaking."""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass
from fractions import Fraction
from random import Random

import pytest
from msgspec.structs import replace

from schemas import events as e
from tests.support import cells as s
from tests.support import core as c

SLIDING_MS, FIXED_MS, SLOTS, REQUESTS, TOKENS = 1_000, 3_000, 5, 9, 900
RESET_MS, UNCERTAIN_MS = 999_400, 30
WINDOWS_MAX = 90
"""More fixed windows than a history has."""
CAPACITY, REFILL_MS = 700, 1_500
TERM_SHARE = CAPACITY * 125 // REFILL_MS
"""A takeover refills a bucket 121 ms later, as if so much more was missing."""
SEND_WITHIN_MS, TRANSIT_MS = 120, 25


@dataclass
class Call:
    """One call as its provider saw it."""

    arrived_ms: int
    ended_ms: int
    tokens: int


class World:
    """Workers that send and arrive as late as they may, and the record of a provider."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.resets_ms = [RESET_MS]
        fixed = {
            "kind": "fixed",
            "window_ms": FIXED_MS,
            "reset_ms": RESET_MS,
            "later_resets_ms": tuple(self.moved()),
        }
        self.cell = s.cell(
            c.dimension("requests", REQUESTS, window_ms=SLIDING_MS),
            c.dimension("tokens", TOKENS, reset_uncertainty_ms=UNCERTAIN_MS, **fixed),
            c.dimension("tokens-bucket", CAPACITY, kind="bucket", window_ms=REFILL_MS),
            c.dimension("tokens-end", TOKENS, window_ms=SLIDING_MS, instant="completion"),
            c.dimension("slots", SLOTS),
            send_within_ms=SEND_WITHIN_MS,
            transit_ms=TRANSIT_MS,
            claim_by_ms=600,
        )
        # Where in its uncertainty the provider's window really begins.
        self.edge_ms = self.chance.choice([-UNCERTAIN_MS, 0, UNCERTAIN_MS])
        self.record: list[Call] = []
        self.granted: list[e.GrantIssued] = []
        self.todo: list[tuple[int, object]] = []
        self.sent = 0

    def moved(self) -> list[int]:
        """Resets that come earlier or later than is usual, as where a zone changes its clocks."""
        found = []
        while len(self.resets_ms) < WINDOWS_MAX:
            next_ms = self.resets_ms[-1] + FIXED_MS
            if self.chance.random() < 0.3:
                next_ms += self.chance.randrange(-FIXED_MS // 2, FIXED_MS // 2)
                found.append(next_ms)
            self.resets_ms.append(next_ms)
        return found

    def run(self, *asked, after_ms: int) -> None:
        for event in self.cell.run(*asked, after_ms=after_ms):
            if isinstance(event, e.GrantIssued):
                self.granted.append(event)
            if isinstance(event, e.StartAccepted):
                self.call(event)

    def call(self, started: e.StartAccepted) -> None:
        grant = next(g for g in self.granted if c.named(g) == c.named(started))
        now_ms, chance = self.cell.now_ms, self.chance
        delay_ms = chance.choice([0, SEND_WITHIN_MS - 1, chance.randrange(SEND_WITHIN_MS)])
        if chance.random() < 0.1:
            self.todo.append((now_ms + SEND_WITHIN_MS, c.result(grant, "not_sent")))
            return
        arrived_ms = now_ms + delay_ms + chance.choice([0, TRANSIT_MS])
        ended_ms = arrived_ms + int(chance.expovariate(1 / 300))
        self.record.append(Call(arrived_ms, ended_ms, grant.tokens))
        if chance.random() < 0.5:
            self.todo.append((now_ms + chance.randrange(2 * SLIDING_MS), c.sent(grant, delay_ms)))
        self.todo.append((ended_ms + chance.randrange(50), c.result(grant)))

    def is_unstarted(self, grant: e.GrantIssued) -> bool:
        attempt = self.cell.state.attempts.get(grant.operation)
        return attempt is not None and attempt.epoch == grant.epoch and not attempt.accepted_ms

    def entry(self) -> None:
        chance, cell = self.chance, self.cell
        if chance.random() < 0.02:
            cell.take_over(reopen=chance.random() < 0.5)
        asked = [say for at, say in self.todo if at <= cell.now_ms]
        self.todo = [(at, say) for at, say in self.todo if at > cell.now_ms]
        if cell.state.cell.waiting < 20:
            for _ in range(5):
                self.sent += 1
                tokens = chance.choice([1, 20, 50, 200])
                asked.append(
                    c.submitted(
                        chance.choice("abc"),
                        str(self.sent),
                        prompt_tokens=tokens,
                        output_tokens_max=0,
                    )
                )
        unstarted = [one for one in self.granted if self.is_unstarted(one)]
        asked += [c.start(grant) for grant in unstarted if chance.random() < 0.7]
        self.run(*asked, after_ms=chance.choice([0, 1, 7, 40, 150]))


def emptiest(arrivals: list[tuple[int, int]]) -> Fraction:
    """How much at most was missing at once in a bucket that is refilled all the time."""
    missing = most = Fraction(0)
    before_ms = 0
    for at_ms, amount in sorted(arrivals):
        missing = max(missing - Fraction(CAPACITY * (at_ms - before_ms), REFILL_MS), Fraction(0))
        missing, before_ms = missing + amount, at_ms
        most = max(most, missing)
    return most


def most_in_any(instants: list[tuple[int, int]], window_ms: int) -> int:
    """The largest sum of amounts in a half-open window of this length, anywhere."""
    instants = sorted(instants)
    times = [at for at, _ in instants]
    return max(
        (
            sum(amount for _, amount in instants[n : bisect_left(times, at + window_ms)])
            for n, at in enumerate(times)
        ),
        default=0,
    )


@pytest.mark.parametrize("seed", range(12))
def test_a_provider_that_judges_by_its_own_record_sees_no_window_above_its_limit(seed):
    world = World(seed)
    for _ in range(2_500):
        world.entry()
    record = world.record
    assert len(record) > 300
    arrivals = [(call.arrived_ms, 1) for call in record]
    assert most_in_any(arrivals, SLIDING_MS) <= REQUESTS
    assert 0 < emptiest([(call.arrived_ms, call.tokens) for call in record]) <= CAPACITY
    ends = [(call.ended_ms, call.tokens) for call in record]
    assert most_in_any(ends, SLIDING_MS) <= TOKENS
    windows = Counter()
    for call in record:
        windows[bisect_right(world.resets_ms, call.arrived_ms - world.edge_ms)] += call.tokens
    assert 20 < len(windows) < WINDOWS_MAX
    assert max(windows.values()) <= TOKENS
    changes = sorted([(x.arrived_ms, 1) for x in record] + [(x.ended_ms, -1) for x in record])
    running = most = 0
    for _, change in changes:
        running += change
        most = max(most, running)
    assert most <= SLOTS


@pytest.mark.parametrize("seed", range(6))
def test_at_every_entry_what_counts_is_within_the_limit_and_is_the_sum_of_its_events(seed):
    world = World(seed)
    for _ in range(1_000):
        world.entry()
        for key, window in world.cell.state.config.windows.items():
            late = TERM_SHARE if window.config.kind == "bucket" else 0
            assert 0 <= window.used <= window.config.limit + late, key
    ledger = defaultdict(int)
    for _, decided in world.cell.entries:
        for one in decided:
            match one.event:
                case e.GrantIssued():
                    ledger[one.event.operation] += one.event.slots
                case e.ReservationSettled() | e.ReservationReleased() | e.ReservationExpired():
                    ledger[one.event.operation] -= 1
    assert set(ledger.values()) <= {0, 1}
    assert sum(ledger.values()) == s.used(world.cell, "slots") == len(world.cell.state.attempts)


@pytest.mark.parametrize("seed", range(6))
def test_a_budget_that_is_left_alone_empties_itself(seed):
    world = World(seed)
    for _ in range(200):
        world.entry()
    cell = world.cell
    cell.run(
        c.domain(*[replace(w.config, limit=0) for w in cell.state.config.domains["d"].windows])
    )
    cell.run(*[c.result(grant) for grant in world.granted])
    cell.run(after_ms=20_000)
    assert cell.state.attempts == {}
    assert all(window.used == 0 for window in cell.state.config.windows.values())
