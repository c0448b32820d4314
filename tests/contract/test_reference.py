"""The core and the reference model see the same random histories and say the same (R159).

`HISTORIES=10000` makes the run that the requirement names; history n is always the same one.
"""

import os
from collections import Counter
from collections.abc import Iterable
from itertools import zip_longest
from random import Random
from typing import Any

import pytest

from schemas import events as e
from schemas import inputs as i
from schemas.journal import CAUSE_DISPATCH
from streams.core import admission, budgets, dispatch, settlement
from streams.core.outcomes import Fits
from streams.core.state import State
from tests.contract.reference import Reference
from tests.support import cells as s
from tests.support import core as c

HISTORIES = int(os.environ.get("HISTORIES", "500"))
ENTRIES = 40
POLICIES = ("fifo", "round_robin", "weighted_round_robin", "strict_priority", "virtual_counter")

DETAILS = {
    e.OperationAdmitted: "operation incarnation sequence deadline_ms",
    e.OperationRejected: "operation code binds_key",
    e.DuplicateObserved: "operation state code",
    e.SubmissionConflicted: "operation",
    e.CancellationRemembered: "operation until_ms",
    e.CancellationForgotten: "operation",
    e.OperationCancelled: "operation",
    e.CancelSignalled: "operation epoch",
    e.GrantIssued: "operation member attempt epoch claim_by_ms tokens",
    e.GrantRevoked: "operation epoch reason",
    e.GrantExpired: "operation epoch",
    e.StartAccepted: "operation epoch latest_arrival_ms",
    e.StartRefused: "operation epoch code",
    e.SendObserved: "operation latest_arrival_ms",
    e.ResultRecorded: "operation outcome late",
    e.ResultRefusedStale: "operation epoch code",
    e.ReservationSettled: "operation tokens_actual overdraft_tokens held_ms cost_ns",
    e.ReservationReleased: "operation reason",
    e.ReservationExpired: "operation",
    e.OperationExpired: "operation reason",
    e.OperationForgotten: "operation",
    e.InputQuarantined: "code",
}
"""The decisions that both must agree on, and what is compared of each."""


def configured(policy: str, slots: int = 4, requests: int = 9) -> i.ConfigProposed:
    return c.domain(
        c.dimension("slots", slots),
        c.dimension("requests", requests, window_ms=2_000),
        c.dimension("tokens", 1_200, window_ms=3_000, amount="actual"),
        c.dimension("tokens-end", 2_500, window_ms=1_000, instant="completion"),
        c.dimension(
            "tokens-day", 9_000, window_ms=9_000, kind="fixed", reset_ms=500, reset_uncertainty_ms=7
        ),
        policy=policy,
        waiting_count_max=9,
        send_within_ms=200,
        transit_ms=20,
        claim_by_ms=700,
    )


def setup(policy: str) -> list[i.Input]:
    own = i.TenantBudget(domain="d", dimensions=(c.dimension("requests", 3, window_ms=1_000),))
    return [
        s.bounds(
            guard_horizon_ms=4_000,
            early_cancel_ms=1_500,
            payload_bytes_max=100,
            waiting_bytes_max=250,
        ),
        configured(policy),
        c.domain(c.dimension("slots", 2), name="e", waiting_bytes_max=120),
        c.tenant("b", weight=3, rank=1, budgets=(own,), waiting_count_max=3),
        c.pool("p"),
        c.pool("q"),
        *(c.join(name, places=places, pool=pool) for name, places, pool in MEMBERS),
        *(c.heartbeat(name) for name, _, _ in MEMBERS),
    ]


MEMBERS = (("m1", 2, "p"), ("m2", 3, "p"), ("m3", 1, "q"))


class Differs(Exception):
    """The core said something else than the reference; it says what."""


class Both:
    """The core and the reference, asked the same."""

    def __init__(self, policy: str) -> None:
        self.policy = policy
        self.core, self.reference = c.Core(), Reference()
        self.submitted: list[i.OperationSubmitted] = []
        self.grants: list[e.GrantIssued] = []
        self.said: Counter[str] = Counter()
        self.run(setup(policy))

    def run(self, inputs: list[Any], *, after_ms: int = 0, timers: bool = True) -> None:
        """One entry; fails with the first decision that differs, or the window that does."""
        events = self.core.run(*inputs, after_ms=after_ms, timers=timers)
        self.grants += s.grants(events)
        _, decided = self.core.entries[-1]
        pass_over = [one.event for one in decided if one.cause == CAUSE_DISPATCH]
        told = c.only((e.GrantIssued, e.OperationExpired), pass_over)
        expected = self.reference.entry(
            inputs, self.core.now_ms, [event.operation for event in told], timers=timers
        )
        got = [shown(event) for event in events if type(event) in DETAILS]
        self.said.update(name for name, *_ in got)
        for core, reference in zip_longest(got, expected):
            if core != reference:
                raise Differs(f"Expected {reference}, but the core says {core}")
        for (scope, domain, name), window in self.core.state.config.windows.items():
            used = self.reference.ledger.used((scope, domain, window.config))
            if window.used != used:
                raise Differs(f"Expected {used} in {scope} {domain} {name}, not {window.used}")

    def take_over(self, step_ms: int) -> None:
        self.core.take_over(step_ms=step_ms)
        self.reference.take_over(step_ms)


def shown(event: Any) -> tuple[Any, ...]:
    kind = type(event)
    return (kind.__name__, *(getattr(event, name) for name in DETAILS[kind].split()))


class Asker:
    """What is asked next: duplicates, conflicts, in any order, of what was said before."""

    def __init__(self, chance: Random, both: Both) -> None:
        self.chance = chance
        self.both = both
        self.submitted: list[i.OperationSubmitted] = []

    def ask(self) -> i.Input:
        chance, grants = self.chance, self.both.grants
        roll = chance.random()
        if roll < 0.3 or not grants:
            return self.submission()
        if roll < 0.37:
            some = chance.choice([*self.submitted[-8:], self.submission()])
            return s.cancel(some)
        if roll < 0.40:
            return configured(self.both.policy, chance.choice([0, 1, 4]), chance.choice([0, 3, 9]))
        grant = chance.choice(grants[-8:])
        if roll < 0.68:
            return c.start(grant)
        if roll < 0.75:
            return c.sent(grant, chance.choice([0, 5, 150, 10_000]))
        outcome = chance.choice(["success"] * 4 + ["terminal", "cancelled", "not_sent", "odd"])
        output = chance.choice([None, 0, grant.output_tokens_max, 2_000])
        return c.result(
            grant, outcome, output_tokens=output, send_delay_ms=chance.choice([None, 3])
        )

    def submission(self) -> i.OperationSubmitted:
        chance = self.chance
        if self.submitted and chance.random() < 0.1:
            return chance.choice(self.submitted)
        made = c.submitted(
            chance.choice("abc"),
            f"k{chance.randrange(60)}",
            domain=chance.choice(["d"] * 12 + ["e"] * 4 + ["none"]),
            pool=chance.choice(["p"] * 12 + ["q"] * 4 + ["none"]),
            prompt_tokens=chance.choice([1, 10, 100, 300, 900]),
            output_tokens_max=chance.choice([0, 50, 50, 500, 500, 5_000, None]),
            start_within_ms=chance.choice([1, 400, 2_000, 60_000, 60_000, 60_000, None]),
            payload_bytes=chance.choice([0, 0, 0, 0, 10, 90, 1_000]),
        )
        self.submitted.append(made)
        return made


def play(seed: int) -> Counter[str]:
    """Both over one history; how often the core decided what."""
    chance = Random(seed)
    both = Both(chance.choice(POLICIES))
    asker = Asker(chance, both)
    for _ in range(ENTRIES):
        if chance.random() < 0.04:
            both.take_over(chance.choice([0, 0, 5_000]))
        inputs = [asker.ask() for _ in range(chance.choice([0, 1, 2, 5]))]
        after_ms = chance.choice([0, 1, 10, 100, 400, 5_000 if chance.random() < 0.1 else 0])
        both.run(inputs, after_ms=after_ms, timers=chance.random() < 0.9)
    return both.said


def disagreement(seeds: Iterable[int]) -> str | None:
    """The first difference in these histories."""
    for seed in seeds:
        try:
            play(seed)
        except Differs as error:
            return f"seed {seed}: {error}"
    return None


def test_over_random_histories_core_and_reference_decide_the_same_and_every_decision_occurs():
    said: Counter[str] = Counter()
    for seed in range(HISTORIES):
        said.update(play(seed))
    assert set(said) == {kind.__name__ for kind in DETAILS}


def early(dimension: i.DimensionConfig, **about: Any) -> int:
    return budgets_exit_ms(dimension, **about) - 300


budgets_exit_ms, settled_cost_ns = budgets.exit_ms, settlement.settled_cost_ns

FAULTS = {
    "nothing is ever full": (dispatch, "check", lambda *_: Fits(), "says ('GrantIssued'"),
    "youngest first": (dispatch, "_HEAD", lambda found: -found[0].sequence, "GrantIssued"),
    "no caps": (admission, "_caps", lambda *_: None, "-queue-full"),
    "exits too early": (budgets, "exit_ms", early, "requests, not"),
    "nobody looks": (State, "touch_waiting", lambda _: None, "Expected ('GrantIssued'"),
    "a wrong price": (
        settlement,
        "settled_cost_ns",
        lambda *about, **more: settled_cost_ns(*about, **more) + 1,
        "ReservationSettled",
    ),
    "deadlines are kept too long": (settlement, "deadline_due", lambda *_: [], "OperationExpired"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_core_is_found_and_named(fault, monkeypatch):
    where, name, planted, named = FAULTS[fault]
    monkeypatch.setattr(where, name, planted)
    assert named in (disagreement(range(100)) or "nothing")
