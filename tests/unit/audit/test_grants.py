"""Defects in grants, their order and their places: each is named at its position."""

from tests.support.budget import REQUESTS, TOKENS, domain_of
from tests.support.history import History
from tests.support.plants import Plant, Plants, granted, judge, started
from tests.support.words import e, i

plants = Plants()


# -- grants ----------------------------------------------------------------------------------------


@plants.breaks("grants")
def a_grant_reserves_less_than_was_admitted(history: History) -> int:
    return history.grant(history.submit("a"), tokens=29)


@plants.breaks("grants")
def a_grant_names_an_old_authority(history: History) -> int:
    operation = history.submit("a")
    history.takeover()
    return history.grant(operation, authority_epoch=1)


@plants.breaks("grants")
def a_grant_names_another_weight(history: History) -> int:
    return history.grant(history.submit("a"), weight=3)


@plants.breaks("grants")
def a_grant_lives_too_long(history: History) -> int:
    return history.grant(history.submit("a"), claim_by_ms=history.now_ms + 502)


@plants.breaks("grants")
def an_epoch_is_given_twice(history: History) -> int:
    operation = granted(history)
    history.expire_grant(operation)
    return history.grant(operation, epoch=1)


@plants.breaks("grants")
def an_attempt_is_numbered_as_one_that_started(history: History) -> int:
    operation = started(history)
    history.not_sent(operation)
    return history.grant(operation, attempt=1)


# -- order -----------------------------------------------------------------------------------------


@plants.breaks("order")
def the_second_is_granted_first(history: History) -> int:
    history.submit("a")
    return history.grant(history.submit("b"))


@plants.breaks("order")
def a_returned_grant_loses_its_place(history: History) -> int:
    operation = granted(history)
    second = history.submit("b")
    history.expire_grant(operation)
    return history.grant(second)


@plants.breaks("order")
def an_unparked_operation_loses_its_place(history: History) -> int:
    operation, second = history.submit("a"), history.submit("b")
    history.append([], [e.OperationParked(tenant="t", operation=operation, reason="x")])
    history.append([], [e.OperationUnparked(tenant="t", operation=operation)])
    return history.grant(second)


# -- places ----------------------------------------------------------------------------------------


@plants.breaks("places")
def a_busy_member_gets_one_more(history: History) -> int:
    history.configure("domain", "d", domain=domain_of(REQUESTS, TOKENS))
    for key in "ab":
        started(history, key)
    return history.grant(history.submit("c"))


@plants.breaks("places")
def a_grant_names_an_earlier_life(history: History) -> int:
    history.join("m", member_epoch="1")
    return history.grant(history.submit("a"), member_epoch="0")


@plants.breaks("places")
def a_suspect_member_is_granted(history: History) -> int:
    operation = history.submit("a")
    history.append([], [e.MemberSuspected(member="m", member_epoch="1")])
    return history.grant(operation)


@plants.breaks("places")
def a_draining_member_is_granted(history: History) -> int:
    operation = history.submit("a")
    drain = e.MemberDrainRequested(member="m", member_epoch="1", reason="left")
    history.append([], [drain])
    return history.grant(operation)


@plants.breaks("places")
def a_member_of_another_pool_is_granted(history: History) -> int:
    history.configure("pool", "q", pool=i.PoolConfig())
    return history.grant(history.submit("a", pool="q"))


@plants.breaks("places")
def a_pool_grows_beyond_its_size(history: History) -> int:
    history.configure("pool", "p", pool=i.PoolConfig(members_max=1))
    return history.join("n") - 1


@plants.cases()
def test_a_planted_defect_is_named_at_its_position(check: str, plant: Plant) -> None:
    judge(check, plant)
