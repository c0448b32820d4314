"""Defects in what lanes are granted: each is named at its position."""

from tests.support.budget import SLOTS, TOKENS, domain_of
from tests.support.history import History
from tests.support.plants import Plant, Plants, granted, judge
from tests.support.words import i

plants = Plants()


@plants.breaks("lanes")
def a_tenant_is_admitted_to_a_lane_that_is_not_its_own(history: History) -> int:
    history.configure("tenant", "t", tenant=i.TenantConfig(weight=2))
    history.submit("a", lane="bulk")
    return history.offset


@plants.breaks("budgets")
def bulk_takes_of_the_reserve(history: History) -> int:
    history.configure("domain", "d", domain=domain_of(SLOTS))
    history.grant(history.submit("a", lane="bulk"))
    return history.grant(history.submit("b", lane="bulk"))


@plants.breaks("budgets")
def bulk_takes_of_the_reserve_of_a_window(history: History) -> int:
    history.configure("domain", "d", domain=domain_of(TOKENS))
    for key in "ab":
        history.grant(history.submit(key, lane="bulk"))
    return history.grant(history.submit("c", lane="bulk"))


@plants.breaks("lanes")
def another_lane_is_granted_by_the_floor(history: History) -> int:
    history.submit("b", lane="bulk")
    return history.grant(history.submit("a"), by_floor=True)


@plants.breaks("lanes")
def bulk_is_granted_by_the_floor_though_nobody_waits_beside_it(history: History) -> int:
    return history.grant(history.submit("a", lane="bulk"), by_floor=True)


@plants.breaks("lanes")
def bulk_is_granted_by_the_floor_though_it_had_its_share(history: History) -> int:
    first, second = history.submit("a", lane="bulk"), history.submit("b", lane="bulk")
    history.submit("c")
    history.grant(first, by_floor=True)
    return history.grant(second, by_floor=True)


@plants.breaks("lanes")
def a_lane_is_picked_at_a_key_that_forgets_what_it_was_served(history: History) -> int:
    granted(history)
    return history.grant(history.submit("b"), lane_key=0)


@plants.breaks("lanes")
def a_lane_is_lifted_beyond_the_highest_pick(history: History) -> int:
    granted(history)
    return history.grant(history.submit("b"), lane_key=10_000)


@plants.breaks("lanes")
def a_grant_names_another_weight_of_its_lane(history: History) -> int:
    return history.grant(history.submit("a"), lane_weight=71)


@plants.cases()
def test_a_planted_defect_is_named_at_its_position(check: str, plant: Plant) -> None:
    judge(check, plant)


def test_bulk_whose_vector_is_above_limit_minus_reserve_needs_no_company() -> None:
    history = History()
    history.grant(history.submit("a", lane="bulk", output_tokens_max=70), by_floor=True)
    assert history.audit().clean


def test_bulk_with_the_lowest_key_may_take_of_the_reserve() -> None:
    history = History(places=9)
    history.configure("domain", "d", domain=domain_of(SLOTS))
    granted(history)
    history.submit("b")
    history.grant(history.submit("c", lane="bulk"), by_floor=True)
    assert history.audit().clean
