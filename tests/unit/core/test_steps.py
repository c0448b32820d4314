"""A decision takes as many steps beside many waiting tenants as beside few (scheduling.md 7)."""

import sys

import pytest

from schemas.inputs import TenantBudget
from tests.support import cells as s
from tests.support import core as c

FEW, MANY = 10, 150


def calls(act):
    """Calls of Python functions while this is done."""
    count = 0

    def tell(_frame, event, _arg):
        nonlocal count
        count += event == "call"

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
