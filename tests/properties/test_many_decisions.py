"""The counter's bound over 240,000 decisions of log-normal cost (R33), and of refunds (R34)."""

from collections import deque
from itertools import combinations
from random import Random

import pytest

from tests.support.turns import Turns

DECISIONS = 60_000
FLIGHT = 8
"""Calls under way at once, whose real cost nobody knows yet."""
FACTORS = {"A": 4, "B": 0.25}
"""How far the estimates of these are off."""
ROUNDING = 2
"""An integer division of a key loses less than one unit a tenant."""


class Ledger:
    """What each tenant was served, and how far any two have ever been apart, by weight."""

    def __init__(self, weights):
        self.weights = {name: int(one) for name, one in zip("ABCDEF", weights, strict=False)}
        self.served = dict.fromkeys(self.weights, 0)
        self.largest = dict.fromkeys(self.weights, 0)
        self.wrong = dict.fromkeys(self.weights, 0)
        self.ends = dict.fromkeys(combinations(self.weights, 2), (0, 0))

    def serve(self, name, cost, estimate):
        self.served[name] += cost
        self.largest[name] = max(self.largest[name], cost, estimate)
        weights, served = self.weights, self.served
        for pair, (low, high) in self.ends.items():
            one, other = pair
            if name in pair:
                apart = served[one] * weights[other] - served[other] * weights[one]
                self.ends[pair] = min(low, apart), max(high, apart)

    def shares(self):
        """For each two: how far apart over any interval, as a part of what is allowed."""
        for (one, other), (low, high) in self.ends.items():
            by = {one: self.weights[other], other: self.weights[one]}
            allowed = sum((self.largest[n] + self.wrong[n] + ROUNDING) * by[n] for n in by)
            yield (high - low) / allowed


@pytest.mark.parametrize("weights", ["211", "7311"])
def test_over_any_interval_two_are_one_largest_call_of_each_apart_at_most(weights):
    chance, turns, ledger = Random(33), Turns("virtual_counter", weights), Ledger(weights)
    for _ in range(DECISIONS):
        cost = int(chance.lognormvariate(12, 1.5)) + 1
        turns.lane.admitted(cost)
        ledger.serve(turns.take(1, cost=cost), cost, cost)
    assert 0.5 < max(ledger.shares()) <= 1


@pytest.mark.parametrize("weights", ["211", "3221"])
def test_wrong_estimates_in_flight_put_them_no_further_apart_than_they_are_wrong(weights):
    chance, turns, ledger = Random(34), Turns("virtual_counter", weights), Ledger(weights)
    flight, wrong = deque(), dict.fromkeys(ledger.weights, 0)
    for _ in range(DECISIONS):
        estimate = int(chance.lognormvariate(12, 1.5)) + 1
        turns.lane.admitted(estimate)
        name = turns.take(1, cost=estimate)
        cost = max(1, int(estimate * FACTORS.get(name, 1)))
        counter = turns.lane.counter(name)
        flight.append((name, cost - estimate, counter.row.weight, counter.row.lift))
        wrong[name] += abs(cost - estimate)
        ledger.wrong[name] = max(ledger.wrong[name], wrong[name])
        ledger.serve(name, cost, estimate)
        if len(flight) > FLIGHT:
            over, delta, weight, lift = flight.popleft()
            wrong[over] -= abs(delta)
            turns.lane.correct(turns.lane.counter(over), delta, weight=weight, lift=lift)
    assert 0.2 < max(ledger.shares()) <= 1
