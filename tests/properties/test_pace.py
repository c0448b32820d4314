"""What a pace is for: a small tenant beside a greedy one, and what is left of the budget."""

from random import Random

from tests.support import core as c
from tests.support.scene import Scene, requests

LIMIT, SECONDS = 100, 1_500
"""100 requests a minute; half an hour is enough for pulses to show."""
PERCENTS = (100, 25, 10, 5)


def beside_a_greedy_one(percent: int) -> tuple[float, float]:
    """Longest wait in seconds of a tenant that wants 1 % of the budget, and the share in use."""
    chance = Random(percent)
    window = {"kind": "sliding", "reset_ms": None, "pace_percent": percent}
    scene = Scene(
        requests(LIMIT, **window),
        call_s=0.1,
        send_within_ms=1,
        tenants=[c.tenant("greedy", waiting_count_max=10**6)],
    )
    forever = {"start_within_ms": 10**8}
    count = LIMIT * SECONDS // 60 + LIMIT
    scene.at(0, *[scene.job(f"greedy {n}", tenant="greedy", **forever) for n in range(count)])
    second, asked = 60.0, {}
    while (second := second + chance.expovariate(1 / 60)) < SECONDS:
        asked[f"small {len(asked)}"] = second
        scene.at(second, scene.job(f"small {len(asked) - 1}", tenant="small", **forever))
    scene.at(SECONDS)
    granted = scene.times()
    waits = [granted.get(name, SECONDS) - at for name, at in asked.items()]
    return max(waits), len(granted) / (LIMIT * SECONDS / 60)


def test_a_smaller_pace_shortens_the_wait_of_a_small_tenant_and_leaves_the_budget_in_use():
    found = [beside_a_greedy_one(percent) for percent in PERCENTS]
    waits, shares = zip(*found, strict=True)
    assert waits[0] > 45, found
    assert waits[1] < 20, found
    assert waits[2] < 8, found
    assert waits[3] < 5, found
    assert list(waits) == sorted(waits, reverse=True)
    assert min(shares) > 0.98, found
