"""A decision takes as many steps beside many waiting tenants as beside few (scheduling.md 7)."""

import sys
from contextlib import closing
from dataclasses import dataclass

import pytest

from schemas.inputs import DimensionConfig, OperationSubmitted, TenantBudget
from schemas.lanes import LANES
from streams.core.queues import FREE, TAKEN
from tests.support import cells as s
from tests.support import core as c
from tests.support.turns import Endless, Turns

FEW, MANY = 10, 150
MEMBERS = 10, 1_000, 100_000
"""Members of pool self that wait in a lane alone; in a whole cell `FEW` and `MANY`."""


def calls(act):
    """Calls of functions while this is done, those of the interpreter too."""
    count = 0

    def tell(_frame, event, _arg):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(tell)
    try:
        act()
    finally:
        sys.setprofile(None)
    return count


def calls_of_a_lifecycle(cell, running):
    """From a start to the next grant, while all places are taken."""

    def turn():
        (grant,) = running
        cell.run(c.start(grant))
        running[:] = s.grants(cell.run(c.result(grant)))

    for _ in range(MANY):  # every tenant had a turn
        turn()
    return calls(turn)


def beside_busy_places(tenants, policy):
    """Calls of a lifecycle while many have something to do, and no place is free."""
    cell = s.cell(c.dimension("slots", 100), places=1, policy=policy)
    asked = [
        c.submitted(f"t{n:04}", str(k)) for k in range(1 + MANY // tenants) for n in range(tenants)
    ]
    return calls_of_a_lifecycle(cell, s.grants(cell.run(*asked)))


def beside_large_heads(tenants, policy):
    """Calls of a lifecycle of small calls while the heads of many are too large for the budget."""
    tokens = c.dimension("tokens", 10**6, window_ms=10**6)
    cell = s.cell(tokens, places=2, policy=policy, skips_max=10**9, age_max_ms=10**9)
    first = c.submitted("first", "1", prompt_tokens=900_000)
    cell.run(c.start(s.granted(cell, first)))
    spread = 100_000 // tenants
    sizes = [100_000 + spread * n for n in range(tenants)]
    cell.run(*(c.submitted(f"t{n:04}", "1", prompt_tokens=size) for n, size in enumerate(sizes)))
    small = [c.submitted("small", str(n), prompt_tokens=1) for n in range(MANY + 2)]
    return calls_of_a_lifecycle(cell, s.grants(cell.run(*small)))


POLICIES = [
    "virtual_counter",
    "fifo",
    "strict_priority",
    "round_robin",
    "weighted_round_robin",
    "deficit_round_robin",
]


def beside_capped_tenants(tenants, policy):
    """Calls of a lifecycle while many have a call running, and may have no more than that."""
    slots, requests = c.dimension("slots", 1), c.dimension("requests", 9, window_ms=10**6)
    cap = TenantBudget(domain="d", dimensions=(slots, requests))
    names = [f"t{n:04}" for n in range(tenants)]
    cell = s.cell(
        c.dimension("slots", 10**6),
        tenants=[c.tenant(name, budgets=(cap,)) for name in names],
        places=tenants + 1,
        policy=policy,
    )
    asked = [c.submitted(name, str(n)) for name in names for n in range(2)]
    held = s.grants(cell.settle_down(*asked))
    assert len(held) == tenants
    cell.run(*map(c.start, held))
    small = [c.submitted("small", str(n)) for n in range(MANY + 2)]
    return calls_of_a_lifecycle(cell, s.grants(cell.settle_down(*small)))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("scene", [beside_busy_places, beside_large_heads, beside_capped_tenants])
def test_a_decision_takes_as_many_steps_beside_many_tenants_as_beside_few(scene, policy):
    assert scene(MANY, policy) <= scene(FEW, policy) * 1.1


# -- pool self: each member is a place of its own ------------------------------------------------


@dataclass
class Own:
    """Members of pool self, of one tenant or of as many, in a cell beside pool p."""

    members: int
    tenants: int
    policy: str

    def names(self) -> list[str]:
        return [f"t{n % self.tenants:04}" for n in range(self.members)]

    def cell(self, *dimensions: DimensionConfig, budgets=(), **domain) -> c.Core:
        tenants = [c.tenant(f"t{n:04}", budgets=budgets, lanes=LANES) for n in range(self.tenants)]
        bounds = {"self_members_max": self.members}
        cell = s.cell(*dimensions, tenants=tenants, cell_bounds=bounds, policy=self.policy,
                      places=2, **domain)  # fmt: skip
        for n, name in enumerate(self.names()):
            cell.run(c.join(f"m{n}", pool="self", tenant=name), c.heartbeat(f"m{n}"))
        return cell

    def asked(self, *sizes: int, **over) -> list[OperationSubmitted]:
        """One call of each size at each member."""
        return [
            c.submitted(name, f"{n}-{k}", pool="self", member=f"m{n}", prompt_tokens=size, **over)
            for k, size in enumerate(sizes)
            for n, name in enumerate(self.names())
        ]


def turn_of_members(cell, held):
    """Calls from a start to the next grant and to another call that waits for its place."""
    cell.run(*map(c.start, held))

    def turn(n):
        ended = held.pop(0)
        more = c.submitted(ended.tenant, f"more{n}", pool="self", member=ended.member)
        held.extend(s.grants(cell.settle_down(c.result(ended), more)))
        cell.run(c.start(held[-1]))

    for n in range(MANY):
        turn(n)
    return calls(lambda: turn(MANY))


def beside_busy_members(own):
    """Every member runs a call and has more that wait."""
    cell = own.cell(c.dimension("slots", 10**6))
    return turn_of_members(cell, s.grants(cell.settle_down(*own.asked(10, 20))))


def beside_capped_members(own):
    """Every member is free but one, and each tenant may run one call."""
    cap = TenantBudget(domain="d", dimensions=(c.dimension("slots", 1),))
    cell = own.cell(c.dimension("slots", 10**6), budgets=(cap,))
    return turn_of_members(cell, s.grants(cell.settle_down(*own.asked(10, 20))))


def beside_large_heads_of_members(own, **domain):
    """Every member is free, and each has a head that is too large for the budget."""
    cell = own.cell(c.dimension("tokens", 10**6, window_ms=10**6), age_max_ms=10**9, **domain)
    cell.run(c.start(s.granted(cell, c.submitted("first", "1", prompt_tokens=900_000))))
    lane = "decision" if "saving_max_ms" in domain else "interactive"
    cell.settle_down(*own.asked(100_000, lane=lane))
    small = [c.submitted("small", str(n), prompt_tokens=1) for n in range(MANY + 2)]
    counted = calls_of_a_lifecycle(cell, s.grants(cell.settle_down(*small)))
    assert bool(cell.state.config.domains["d"].row.saver) == ("saving_max_ms" in domain)
    return counted


def beside_a_saver(own):
    """And one of them saves for its lane and the lower ones."""
    return beside_large_heads_of_members(own, skips_max=1, saving_max_ms=10**9)


def without_a_saver(own):
    return beside_large_heads_of_members(own, skips_max=10**9)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("are_one", [True, False], ids=["of one tenant", "of many"])
@pytest.mark.parametrize(
    "scene", [beside_busy_members, beside_capped_members, without_a_saver, beside_a_saver]
)
def test_a_decision_takes_as_many_steps_beside_many_members_of_pool_self(scene, are_one, policy):
    few, many = [scene(Own(n, 1 if are_one else n, policy)) for n in (FEW, MANY)]
    assert many <= few * 1.1


def turns_beside(members, policy):
    """Calls of ten turns in a lane alone; half of the members of one tenant, half of them taken."""
    lane = Turns(policy, "").lane
    queues = []
    for n in range(members):
        counter = lane.counter("t" if n % 4 < 2 else f"t{n}")
        queue = Endless(n, f"self:m{n}")
        counter.queues[queue.pool] = queue
        lane.queues += 1
        lane.turned(counter, queue, TAKEN if n % 2 else FREE)
        if len(counter.queues) == 1:
            lane.activate(counter)
        queues.append((counter, queue))

    def turns():
        for _ in range(10):
            with closing(lane.in_order(lambda _: False)) as order:
                counter, _ = next(order)
            lane.charge(counter, 12)
            for one in queues[:3]:
                lane.turned(*one, TAKEN if one[1].at == FREE else FREE)

    turns()
    return calls(turns)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_turn_takes_as_many_steps_beside_a_hundred_thousand_members(policy):
    few, *more = [turns_beside(n, policy) for n in MEMBERS]
    assert max(more) <= few * 1.1
