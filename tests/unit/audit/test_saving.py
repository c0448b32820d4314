"""Defects in saving mode: each is named at its position."""

from typing import Any

from msgspec.structs import replace

from schemas.ids import OperationId
from tests.support.budget import TOKENS, domain_of
from tests.support.history import History
from tests.support.plants import Plant, Plants, judge
from tests.support.words import e, i

plants = Plants()
DOMAIN = replace(domain_of(TOKENS), skips_max=2)


def large(history: History) -> OperationId:
    """One of 80 tokens waits in a domain of 90."""
    history.configure("domain", "d", domain=DOMAIN)
    history.join("n", places=9)
    return history.submit("large", output_tokens_max=70)


def pass_over(history: History, operation: OperationId, key: str) -> int:
    """Another is granted, and has left again before the next."""
    return run(history, history.submit(key, lane="decision"), skipped=operation)


def skipped(history: History) -> OperationId:
    """The large one, passed over often enough to save."""
    operation = large(history)
    for key in "ab":
        pass_over(history, operation, key)
    return operation


def run(history: History, operation: OperationId, **changes: Any) -> int:
    offset = history.grant(operation, **changes)
    history.start(operation)
    history.result(operation)
    history.wait(5_000)
    return offset


def leave(history: History, member: str) -> int:
    about = {"member": member, "member_epoch": "1"}
    gone = [
        e.MemberDrainRequested(**about, reason="left"),
        e.MemberSlotReturned(**about, reason="left"),
    ]
    return history.append([i.LeaveAnnounced(**about)], gone)


def save(history: History, operation: OperationId) -> int:
    admitted = history.admitted[operation]
    event = e.SavingStarted(
        tenant="t", operation=operation, domain="d", lane=admitted.lane, skips=2, since_ms=0
    )
    return history.append([], [event])


@plants.breaks("saving")
def a_head_saves_that_was_not_passed_over(history: History) -> int:
    return save(history, large(history))


@plants.breaks("saving")
def a_head_saves_too_early(history: History) -> int:
    operation = large(history)
    pass_over(history, operation, "a")
    return save(history, operation)


@plants.breaks("saving")
def what_was_counted_before_a_configuration_counts(history: History) -> int:
    operation = skipped(history)
    history.configure("domain", "d", domain=DOMAIN)
    return save(history, operation)


@plants.breaks("saving")
def two_save_at_once(history: History) -> int:
    first, second = large(history), history.submit("other", lane="bulk")
    for key in "ab":
        pass_over(history, first, key)
    for key in "cd":
        pass_over(history, second, key)
    save(history, first)
    return save(history, second)


@plants.breaks("saving")
def whoever_is_running_was_passed_over(history: History) -> int:
    operation = history.submit("a")
    history.grant(operation)
    return history.grant(history.submit("b"), skipped=operation)


@plants.breaks("budgets")
def a_lower_lane_takes_what_the_saver_needs(history: History) -> int:
    operation = skipped(history)
    save(history, operation)
    return history.grant(history.submit("c", lane="decision"))


@plants.breaks("saving")
def a_head_saves_that_nobody_can_run(history: History) -> int:
    operation = skipped(history)
    leave(history, "m")
    leave(history, "n")
    return save(history, operation)


@plants.breaks("budgets")
def a_saver_is_forgotten_while_somebody_can_run_it(history: History) -> int:
    operation = skipped(history)
    save(history, operation)
    leave(history, "m")
    return history.grant(history.submit("c", lane="decision"), member="n")


@plants.cases()
def test_a_planted_defect_is_named_at_its_position(check: str, plant: Plant) -> None:
    judge(check, plant)


def test_a_higher_lane_and_the_saver_itself_take_what_they_want() -> None:
    history = History(places=9)
    history.configure("domain", "d", domain=DOMAIN)
    operation = history.submit("large", output_tokens_max=70, lane="decision")
    for key in "ab":
        run(history, history.submit(key), skipped=operation)
    save(history, operation)
    run(history, history.submit("c"))
    run(history, operation)
    run(history, history.submit("d", lane="decision"))
    assert history.audit().clean


def test_others_take_what_a_saver_needs_that_nobody_is_left_to_run() -> None:
    history = History(places=9)
    history.configure("domain", "d", domain=DOMAIN)
    history.configure("pool", "q", pool=i.PoolConfig())
    history.join("o", pool="q")
    operation = history.submit("large", output_tokens_max=70, pool="q")
    for key in "ab":
        run(history, history.submit(key, lane="decision"), skipped=operation)
    save(history, operation)
    leave(history, "o")
    run(history, history.submit("c", lane="decision"))
    assert history.audit().clean
    history.join("r", pool="q")
    save(history, operation)
    assert history.audit().clean
