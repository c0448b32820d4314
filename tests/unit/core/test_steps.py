"""A decision takes as many steps beside many waiting tenants as beside few (scheduling.md 7)."""

import sys

import pytest

from tests.support import cells as s
from tests.support import core as c

FEW, MANY = 10, 400


def calls_of_a_lifecycle(tenants, **domain):
    """Calls of Python functions from a start to the next grant, while all places are taken."""
    cell = s.cell(c.dimension("slots", 100), places=1, **domain)
    asked = [c.submitted(f"t{n:04}", str(k)) for n in range(tenants) for k in range(3)]
    (grant,) = s.grants(cell.run(*asked))
    for _ in range(tenants):  # every tenant had a turn
        cell.run(c.start(grant))
        (grant,) = s.grants(cell.run(c.result(grant)))
    calls = 0

    def count(_frame, event, _arg):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        cell.run(c.start(grant))
        (grant,) = s.grants(cell.run(c.result(grant)))
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize(
    "policy",
    ["virtual_counter", "round_robin", "weighted_round_robin", "deficit_round_robin"],
)
def test_no_tenant_is_looked_at_while_no_place_is_free(policy):
    few = calls_of_a_lifecycle(FEW, policy=policy)
    assert calls_of_a_lifecycle(MANY, policy=policy) <= few * 1.1
