"""Each rule of leases, unknown outcomes, retries and lanes, broken on purpose, is found."""

import contextlib
import dataclasses
from random import Random
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from schemas.inputs import DimensionConfig, HeartbeatReported
from schemas.units import Millis
from streams.core import (
    budgets,
    costs,
    exits,
    lanes,
    leases,
    pace,
    retries,
    saving,
    settlement,
    shape,
    standing,
    unknowns,
)
from streams.core.configured import Domain
from streams.core.holds import Holds
from streams.core.operations import Uncertain
from streams.core.state import State
from streams.shell.silence import Silence
from tests.simulation import audited
from tests.simulation.faults import Faults
from tests.simulation.members import Member
from tests.simulation.world import Broken, World

SEEDS = 20

EARLY_MS = 40
"""Of a window of 120."""

cost_of = Domain.cost_of
heartbeat, mark = leases.heartbeat, unknowns.mark


def due_early(uncertain: Uncertain) -> int:
    return (uncertain.proof_ms or uncertain.hold_until_ms) - 300


def renew_by_name(state: State, asked: HeartbeatReported) -> Any:
    events = [*heartbeat(state, asked)]
    for member, life in state.lives:
        if member == asked.member and life != asked.member_epoch:
            events += leases._renew(state, replace(asked, member_epoch=life))
    return events


def settle_unknown(state: State, operation: Any, attempt: Any, **about: Any) -> Any:
    marked = mark(state, operation, attempt, **about)
    return [*marked, settlement.settlement(state, operation, attempt, None)]


def leave_early(dimension: DimensionConfig, **about: Any) -> Millis:
    return Millis(exits.exit_ms(dimension, **about) - EARLY_MS)


def owe_nothing(silence: Silence, elapsed_ms: int, step_ms: int) -> Millis:
    return Millis(0)


def all_input(domain: Domain, one: Any) -> Any:
    cost = cost_of(domain, one)
    return replace(cost, input_tokens=cost.tokens, output_tokens=0)


def ignore(*_: Any) -> None:
    pass


def ignore_time(*_: Any) -> int:
    return 0


class Canary(NamedTuple):
    """What is replaced by what, the weather that shows it, and a part of what is said of it."""

    owner: Any
    name: str
    defect: Any
    sentence: str
    weather: dict[str, float]


UNCLEAR = {"ambiguous": 0.3, "blind": 1}
ALL = frozenset({"unsafe", "keyed", "read_only"})
CANARIES = {
    "forfeits early": Canary(
        Uncertain, "due_ms", property(due_early), "is forfeited before", UNCLEAR
    ),
    "renews by name": Canary(
        leases,
        "heartbeat",
        renew_by_name,
        "are renewed by",
        {"member_crash": 0.003, "old_names": 1, "long_call": 0.9},
    ),
    "retries unsafe work": Canary(retries, "SAFE", ALL, "is unsafe and starts", UNCLEAR),
    "frees the slot at once": Canary(
        unknowns, "mark", settle_unknown, "gives its slot back", UNCLEAR
    ),
    "lets leases pay for silences": Canary(
        Silence, "owed_ms", owe_nothing, "went on renewing", {"long_call": 0.9, "blackout": 0.0003}
    ),
    "keeps unknown holds for ever": Canary(Holds, "watch", ignore, "never", UNCLEAR),
    "believes that no delivery is late": Canary(
        Member,
        "_owner_ms_at_most",
        staticmethod(ignore_time),
        "ms after its start",
        {"member_stop": 0.01},
    ),
    "starts unsafe work at once": Canary(standing, "REPEATABLE", ALL, "starts with its grant", {}),
    "lets charges leave early": Canary(budgets, "exit_ms", leave_early, " requests of ", {}),
    "takes a bucket for full": Canary(pace.Rate, "left", lambda *_: 0, "of a bucket of", {}),
    "lets bulk have all": Canary(lanes, "reserve", ignore_time, "takes the reserve", {}),
    "keeps nothing for a saver": Canary(saving, "_holds_back", ignore, "takes what", {}),
    "opens every lane": Canary(shape, "_class_of_work", ignore, "may not use lane", {}),
    "pays for nothing": Canary(costs, "money_of", ignore_time, " money of", {}),
    "takes output for input": Canary(Domain, "cost_of", all_input, " output_tokens of", {}),
    "grants in a pause": Canary(retries, "paused", ignore, "in a pause", {"throttle": 0.3}),
}


def world(seed: int, weather: dict[str, float]) -> World:
    """One in which only these things happen."""
    return World(Random(seed), dataclasses.replace(Faults.none(), **weather))


@pytest.mark.parametrize("name", CANARIES)
def test_a_broken_rule_is_found_where_it_matters(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = CANARIES[name]
    for seed in range(1, SEEDS):
        world(seed, canary.weather).run()  # the rule holds
        with monkeypatch.context() as patch:
            patch.setattr(canary.owner, canary.name, canary.defect)
            try:
                world(seed, canary.weather).run()
            except Broken as error:
                if canary.sentence in str(error):
                    return
    pytest.fail(f"{SEEDS} worlds did not notice")


@pytest.mark.parametrize("first", range(301, 331, 5))
def test_the_audit_that_users_have_finds_nothing_in_a_world(first: int) -> None:
    for seed in range(first, first + 5):
        here = World(Random(seed))
        here.run()
        assert audited.found(here.journal.records, here.inputs, here.public) == ()


@pytest.mark.parametrize(
    ("owner", "name", "defect", "weather", "check"),
    [
        (retries, "SAFE", ALL, UNCLEAR, "retries"),
        (pace, "opens_ms", lambda *_: 0, {}, "budgets"),
        (costs, "money_of", ignore_time, {}, "grants"),
        (lanes, "reserve", ignore_time, {}, "budgets"),
        (saving, "_holds_back", ignore, {}, "budgets"),
        (shape, "_class_of_work", ignore, {}, "lanes"),
    ],
)
def test_the_audit_that_users_have_finds_a_broken_rule_in_a_world(
    owner: Any,
    name: str,
    defect: Any,
    weather: dict[str, float],
    check: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(owner, name, defect)
    for seed in range(1, SEEDS):
        here = world(seed, weather)
        with contextlib.suppress(Broken):
            here.run()
        found = audited.found(here.journal.records, here.inputs, here.public)
        if check in {one.check for one in found}:
            return
    pytest.fail(f"{SEEDS} worlds did not notice")
