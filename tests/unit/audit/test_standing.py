"""Defects in standing starts: each is named at its position, and a true story has none."""

from typing import Any

from msgspec.structs import replace

from schemas.ids import OperationId
from tests.support.history import History
from tests.support.plants import Plant, Plants, judge
from tests.support.words import e, i

plants = Plants()
ABOUT: dict[str, Any] = {"member": "m", "member_epoch": "1"}


def offering(history: History, **changes: Any) -> list[Any]:
    """The events that answer a heartbeat at the member's clock 7."""
    assert history.head is not None
    offered = e.PlacesOffered(
        **ABOUT, sent_ms=7, time_ms=history.now_ms + 1, authority_epoch=history.head.epoch
    )
    return [e.HeartbeatRecorded(**ABOUT), replace(offered, **changes)]


def offer(history: History, **changes: Any) -> int:
    """Member `m` gives a sign of life, and its places stand."""
    beat = i.HeartbeatReported(**ABOUT, sent_ms=7)
    return history.append([beat], offering(history, **changes))


def ready(history: History, effect: str = "read_only") -> OperationId:
    """Pool `p` has standing starts, `m` offers its places, and something waits."""
    history.configure("pool", "p", pool=i.PoolConfig(standing=True))
    offer(history)
    return history.submit("a", effect=effect)


def at_once(history: History, operation: OperationId, **changes: Any) -> list[Any]:
    """Grant, claim and start."""
    stands = {"started_ms": history.now_ms + 1, **changes}
    return [history.granting(operation, **stands), *history.starting(operation)]


def test_a_standing_start_under_every_rule_is_clean() -> None:
    history = History()
    operation = ready(history)
    history.append([], at_once(history, operation))
    history.sent(operation, delay_ms=1, latest_ms=history.now_ms + 6)
    history.result(operation)
    unsafe = history.submit("b")
    history.run(unsafe)
    assert history.audit().clean, history.audit().findings


def test_after_a_step_of_time_the_times_are_told_without_it() -> None:
    history = History()
    operation = ready(history)
    history.wait(5_000)
    history.append([], [], time_step_ms=5_000)
    offer(history, time_ms=history.now_ms + 1 - 5_000)
    history.append([], at_once(history, operation, started_ms=history.now_ms + 1 - 5_000))
    assert history.audit().clean, history.audit().findings


@plants.breaks("standing")
def unsafe_work_starts_at_once(history: History) -> int:
    return history.append([], at_once(history, ready(history, "unsafe")))


@plants.breaks("standing")
def a_start_at_once_in_another_pool(history: History) -> int:
    operation = history.submit("a", effect="keyed")
    return history.append([], at_once(history, operation))


@plants.breaks("standing")
def a_start_at_once_without_an_offer(history: History) -> int:
    operation = ready(history)
    history.append([i.HeartbeatReported(**ABOUT)], [e.HeartbeatRecorded(**ABOUT)])
    return history.append([], at_once(history, operation))


@plants.breaks("standing")
def a_start_at_once_by_an_offer_to_the_owner_before(history: History) -> int:
    operation = ready(history)
    history.takeover()
    return history.append([], at_once(history, operation))


@plants.breaks("standing")
def a_place_that_stands_must_ask_for_its_start(history: History) -> int:
    return history.grant(ready(history))


@plants.breaks("standing")
def a_grant_that_starts_at_once_comes_without_its_start(history: History) -> int:
    operation = ready(history)
    return history.append([], at_once(history, operation)[:2])


@plants.breaks("standing")
def a_start_at_once_at_another_time(history: History) -> int:
    operation = ready(history)
    return history.append([], at_once(history, operation, started_ms=history.now_ms))


@plants.breaks("standing")
def a_start_of_an_ordinary_grant_in_its_entry(history: History) -> int:
    operation = ready(history, "unsafe")
    return history.append([], at_once(history, operation, started_ms=None))


@plants.breaks("standing")
def an_offer_tells_another_time(history: History) -> int:
    ready(history)
    return offer(history, time_ms=history.now_ms)


@plants.breaks("standing")
def an_offer_tells_another_clock(history: History) -> int:
    ready(history)
    return offer(history, sent_ms=8)


@plants.breaks("standing")
def an_offer_under_another_owner(history: History) -> int:
    ready(history)
    return offer(history, authority_epoch=9)


@plants.breaks("standing")
def an_offer_in_another_pool(history: History) -> int:
    return offer(history)


@plants.cases()
def test_a_planted_defect_is_named_at_its_position(check: str, plant: Plant) -> None:
    judge(check, plant)
