"""The golden vectors of requirements section 18, from one harness for every policy (R25, R32)."""

import pytest

from schemas import events as e
from tests.support import core as c

JOBS = [("A", 12), ("B", 3), ("C", 3)]
SECOND = 1_000

# policy, weights, ranks, order, (B first/last), (C first/last)
ORDERS = [
    ("fifo", "111", "000", "A12 B3 C3", (12, 15), (15, 18)),
    ("strict_priority", "111", "012", "A12 B3 C3", (12, 15), (15, 18)),
    ("strict_priority", "111", "210", "C3 B3 A12", (3, 6), (0, 3)),
    ("round_robin", "111", "000", "ABC ABC ABC A9", (1, 8), (2, 9)),
    ("round_robin", "211", "000", "ABC ABC ABC A9", (1, 8), (2, 9)),
    ("weighted_round_robin", "211", "000", "AABC AABC AABC A6", (2, 11), (3, 12)),
    ("deficit_round_robin", "211", "000", "AABC AABC AABC A6", (2, 11), (3, 12)),
    ("virtual_counter", "211", "000", "ABCA ABCA ABCA A6", (1, 10), (2, 11)),
]
# policy, weights, ranks, {tenant: (run, expired, refused)} with cap 8 and a deadline of 10 s
CAPPED = [
    ("fifo", "111", "000", {"A": (8, 0, 4), "B": (2, 1, 0), "C": (0, 3, 0)}),
    ("strict_priority", "111", "012", {"A": (8, 0, 4), "B": (2, 1, 0), "C": (0, 3, 0)}),
    ("strict_priority", "111", "210", {"A": (4, 4, 4), "B": (3, 0, 0), "C": (3, 0, 0)}),
    ("round_robin", "111", "000", {"A": (4, 4, 4), "B": (3, 0, 0), "C": (3, 0, 0)}),
    ("weighted_round_robin", "211", "000", {"A": (6, 2, 4), "B": (2, 1, 0), "C": (2, 1, 0)}),
    ("deficit_round_robin", "211", "000", {"A": (6, 2, 4), "B": (2, 1, 0), "C": (2, 1, 0)}),
    ("virtual_counter", "211", "000", {"A": (5, 3, 4), "B": (3, 0, 0), "C": (2, 1, 0)}),
]


def spelled(order: str) -> str:
    out = ""
    for part in order.split():
        digits = part.lstrip("ABC")
        letters = part[: len(part) - len(digits)]
        out += letters * int(digits or 1)
    return out


def play(policy: str, weights: str, ranks: str, *, cap: int, within_ms: int):
    cell = c.Core()
    tenants = [
        c.tenant(name, weight=int(w), rank=int(r), waiting_count_max=cap)
        for name, w, r in zip("ABC", weights, ranks, strict=True)
    ]
    cell.run(c.domain(c.dimension("slots", 1), policy=policy), c.pool(), *tenants)
    cell.run(c.join())
    jobs = [(name, f"{name}{n}") for name, count in JOBS for n in range(count)]
    events = cell.run(
        *[c.submitted(name, key, start_within_ms=within_ms) for name, key in jobs],
    )
    refused = c.only(e.OperationRejected, events)
    # The member becomes active at t = 0 of the play, when everything is queued.
    events = cell.run(c.heartbeat())
    grants, expired = [], []
    for _ in range(19):
        issued = c.only(e.GrantIssued, events)
        expired += c.only(e.OperationExpired, events)
        if not issued:
            break
        assert len(issued) == 1
        grants += issued
        cell.run(c.start(issued[0]))
        events = cell.run(c.result(issued[0]), c.heartbeat(), after_ms=SECOND)
    return grants, expired, refused, cell


@pytest.mark.parametrize(("policy", "weights", "ranks", "order", "b", "d"), ORDERS)
def test_each_policy_grants_in_its_golden_order(policy, weights, ranks, order, b, d):
    grants, _, _, cell = play(policy, weights, ranks, cap=100, within_ms=3_600_000)
    got = "".join(grant.tenant for grant in grants)
    assert got == spelled(order)
    for tenant, (first, last) in (("B", b), ("C", d)):
        assert (got.index(tenant), got.rindex(tenant) + 1) == (first, last)
    assert cell.follower().digest() == cell.rows.digest()


@pytest.mark.parametrize(("policy", "weights", "ranks", "golden"), CAPPED)
def test_each_policy_with_a_cap_of_8_and_a_deadline_of_10_s(policy, weights, ranks, golden):
    grants, expired, refused, _ = play(policy, weights, ranks, cap=8, within_ms=10_000)
    for tenant, (run, late, over) in golden.items():
        counted = [[x.tenant for x in xs].count(tenant) for xs in (grants, expired, refused)]
        assert counted == [run, late, over], tenant
