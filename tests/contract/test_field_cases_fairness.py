"""Faults of fairness that real systems have had, by their numbers in the field cases."""

import pytest

from evenhand.cli.configuration import read
from schemas import events as e
from schemas.inputs import TenantBudget
from streams.core.limits import WEIGHT_MAX
from tests.support import core as c
from tests.support.scene import Scene, requests, slots, tokens

POLICIES = ["weighted_round_robin", "deficit_round_robin", "virtual_counter"]


def weights(**by_tenant):
    return [c.tenant(name, weight=weight) for name, weight in by_tenant.items()]


def assert_shared_evenly(order: str) -> None:
    """Twenty turns of two equal tenants, neither of whom catches anything up."""
    assert abs(order.count("a") - 10) <= 1
    assert "aaa" not in order
    assert "bbb" not in order


@pytest.mark.parametrize("policy", POLICIES)
def test_f26_a_long_backlog_does_not_keep_a_short_one_waiting(policy):
    scene = Scene(slots(1), call_s=1, policy=policy, tenants=weights(a=2, b=1, c=1))
    jobs = [scene.job(f"{t}{n}", tenant=t) for t, count in JOBS for n in range(count)]
    scene.at(0, *jobs)
    scene.at(60)
    order = scene.order()
    assert sorted(order[:8]) == list("aaaabbcc")
    assert [n for n, tenant in enumerate(order, 1) if tenant == "b"][9] <= 40
    assert set(order[40:]) == {"a"}
    own = [scene.names[grant.operation] for _, grant in scene.grants if grant.tenant == "a"]
    assert own == sorted(own, key=lambda name: int(name[1:]))


JOBS = [("a", 1_000), ("b", 10), ("c", 10)]


def served(scene, seconds):
    """Grants of so many seconds from now on."""
    first = len(scene.grants)
    scene.at(scene.now_s + seconds)
    return "".join(grant.tenant for _, grant in scene.grants[first:])


def fill(scene, tenant, count):
    scene.at(
        scene.now_s, *[scene.job(f"{tenant}{scene.now_s}.{n}", tenant=tenant) for n in range(count)]
    )


@pytest.mark.parametrize("policy", POLICIES)
def test_f27_who_was_idle_catches_nothing_up(policy):
    scene = Scene(slots(1), call_s=1, policy=policy)
    fill(scene, "a", 300)
    assert served(scene, 100) == "a" * 100
    fill(scene, "b", 50)
    assert_shared_evenly(served(scene, 20))


@pytest.mark.parametrize("policy", POLICIES)
def test_f27_who_used_half_its_share_catches_nothing_up(policy):
    scene = Scene(slots(1), call_s=1, policy=policy)
    fill(scene, "a", 300)
    for _ in range(25):
        fill(scene, "b", 1)
        served(scene, 4)
    fill(scene, "b", 50)
    assert_shared_evenly(served(scene, 20))


@pytest.mark.parametrize("policy", POLICIES)
def test_f27_a_weight_change_pays_nothing_back(policy):
    scene = Scene(slots(1), call_s=1, policy=policy)
    fill(scene, "a", 200)
    fill(scene, "b", 200)
    served(scene, 50)
    scene.at(scene.now_s, *weights(a=3, b=1))
    assert abs(served(scene, 40).count("a") - 30) <= 1


@pytest.mark.parametrize("weight", [0, -1, WEIGHT_MAX + 1, 10_000_000])
def test_f28_a_degenerate_weight_is_refused_when_it_is_configured(weight):
    scene = Scene(slots(3), call_s=1)
    (refused,) = scene.at(0, c.tenant("a", weight=weight))
    assert isinstance(refused, e.ConfigRefused)
    scene.at(1, *[scene.job(f"{t}{n}", tenant=t) for t in "ab" for n in range(9)])
    scene.at(20)
    assert len(scene.grants) == 18


@pytest.mark.parametrize("weight", ["0.5", '"2"', "true", "1e9", "nan"])
def test_f28_a_weight_that_is_no_whole_number_is_refused_before_it_is_sent(weight, tmp_path):
    file = tmp_path / "config.toml"
    file.write_text(f"[tenants.a]\nweight = {weight}\n")
    with pytest.raises(ValueError, match="weight"):
        read(file)


@pytest.mark.parametrize("policy", POLICIES)
def test_f28_one_refused_among_three_costs_the_others_nothing(policy):
    scene = Scene(slots(1), call_s=1, policy=policy, tenants=weights(b=2, c=1))
    (refused,) = scene.at(0, c.tenant("a", weight=0))
    assert isinstance(refused, e.ConfigRefused)
    for name in "abc":
        fill(scene, name, 100)
    order = served(scene, 40)
    for name, due in (("a", 10), ("b", 20), ("c", 10)):
        assert abs(order.count(name) - due) <= 1


@pytest.mark.parametrize("policy", POLICIES)
def test_f28_an_extreme_weight_at_its_cap_leaves_no_slot_idle(policy):
    cap = TenantBudget(domain="d", dimensions=(slots(96),))
    heavy = c.tenant("a", weight=WEIGHT_MAX, budgets=(cap,))
    scene = Scene(slots(100), call_s=None, policy=policy, tenants=[heavy, *weights(b=1)])
    scene.at(0, *[scene.job(f"{t}{n}", tenant=t) for t in "ab" for n in range(120)])
    order = scene.order()
    assert (order.count("a"), order.count("b")) == (96, 4)


@pytest.mark.parametrize("policy", POLICIES)
def test_f28_a_tenant_without_a_weight_or_whose_weight_is_taken_back_has_weight_1(policy):
    scene = Scene(slots(1), call_s=1, policy=policy, tenants=weights(a=4))
    for name in ("a", "unknown"):
        fill(scene, name, 100)
    assert abs(served(scene, 20).count("a") - 16) <= 1
    scene.at(scene.now_s, c.tenant("a"))
    assert abs(served(scene, 20).count("a") - 10) <= 1


@pytest.mark.parametrize("kind", [{}, {"kind": "sliding", "reset_ms": None}])
def test_f29_turns_of_unequal_cost_are_counted_by_cost(kind):
    scene = Scene(
        tokens(10_000, **kind),
        requests(100, **kind),
        slots(100),
        call_s=1,
        policy="virtual_counter",
    )
    sizes = (("a", 900), ("b", 100))
    scene.at(0, *[scene.job(f"{t}{n}", est, tenant=t) for t, est in sizes for n in range(100)])
    scene.at(59)
    used = {t: sum(g.tokens for _, g in scene.grants if g.tenant == t) for t, _ in sizes}
    order = scene.order()
    assert order.count("a") in (5, 6)
    assert 46 <= order.count("b") <= 55
    assert abs(used["a"] - used["b"]) <= 1_000
