"""A member of a pool with standing starts: what runs, what is given back, what is too late."""

from typing import Any

import pytest

from evenhand import NotSent, Result
from evenhand._life import Run
from schemas import events as e
from schemas import inputs as i
from tests.support.member import MEMBER, Life

OWNER_MS = 500_000
"""The owner's time when the member's clock shows 1,000 ms."""


class Standing(Life):
    """A life whose first heartbeat was answered after `way_ms`."""

    def __init__(self, *, places: int = 1, way_ms: int = 0) -> None:
        super().__init__(places=places)
        (beat,) = self.membership.beat()
        self.now_ms += way_ms
        self.offer(beat.sent_ms, OWNER_MS)

    def offer(self, sent_ms: int | None, time_ms: int, authority_epoch: int = 1) -> None:
        assert sent_ms is not None
        offered = e.PlacesOffered(
            member=MEMBER,
            member_epoch=self.membership.epoch,
            sent_ms=sent_ms,
            time_ms=time_ms,
            authority_epoch=authority_epoch,
        )
        assert self.hear(offered) == []

    def stands(self, operation: int = 0, *, started_ms: int = OWNER_MS, **fields: Any) -> list[Any]:
        """What it does with a standing start."""
        granted = self.grant(operation, started_ms=started_ms, effect="read_only", **fields)
        return [*self.hear(granted), *self.hear(self.accepted(granted))]


def late(attempt: Any) -> bool:
    try:
        attempt.sending()
    except NotSent:
        return True
    return False


def test_it_runs_at_once_and_asks_for_nothing() -> None:
    (step,) = Standing().stands()
    assert isinstance(step, Run)
    assert not late(step.attempt)


@pytest.mark.parametrize(("after_ms", "is_late"), [(199, False), (201, True)])
def test_it_does_not_send_later_than_send_within_after_the_grant(
    after_ms: int, is_late: bool
) -> None:
    life = Standing()
    life.now_ms += after_ms
    (step,) = life.stands()
    assert late(step.attempt) is is_late


def test_what_a_process_slept_through_is_not_sent() -> None:
    life = Standing()
    (step,) = life.stands()
    life.now_ms += 5_000
    assert late(step.attempt)


def test_the_way_of_the_heartbeat_counts_against_the_member() -> None:
    life = Standing(way_ms=150)
    (step,) = life.stands()
    step.attempt.sent()
    (word,) = life.reported or [step.attempt.ended(Result())]
    assert word.send_delay_ms == 151


def test_of_several_answers_of_one_owner_the_tightest_counts() -> None:
    life = Standing()
    life.now_ms += 100
    sent_ms = life.now_ms
    life.now_ms += 150
    life.offer(sent_ms, OWNER_MS + 240)  # it was 140 ms under way, and tells less
    (step,) = life.stands(started_ms=OWNER_MS + 250)
    step.attempt.sent()
    assert step.attempt.ended(Result()).send_delay_ms == 1


def test_a_newer_owner_is_known_by_its_own_answer_only() -> None:
    life = Standing()
    (step,) = life.stands(authority_epoch=2)
    assert late(step.attempt)
    life.membership.ended()
    life.membership.durable(step.attempt)
    life.offer(life.now_ms, OWNER_MS + 80, authority_epoch=2)
    (step,) = life.stands(1, authority_epoch=2, started_ms=OWNER_MS + 80)
    assert not late(step.attempt)


def test_a_report_is_never_negative() -> None:
    (step,) = Standing().stands(started_ms=OWNER_MS + 40)
    step.attempt.sent()
    assert step.attempt.ended(Result()).send_delay_ms == 0


def test_a_copy_of_a_standing_start_runs_nothing_not_even_after_its_end() -> None:
    life = Standing(places=4)
    (step,) = life.stands()
    assert life.stands() == []
    life.membership.ended()
    life.membership.durable(step.attempt)
    assert life.stands() == []
    (other,) = life.stands(1)
    assert isinstance(other, Run)
    assert life.stands(2, started_ms=OWNER_MS - 1) == []


def test_a_standing_start_of_an_earlier_life_is_left_alone() -> None:
    assert Standing().stands(member_epoch="e0") == []


def test_a_standing_start_for_which_there_is_no_place_is_given_back_after_the_offer() -> None:
    life = Standing(places=1)
    life.stands()
    alive, given_back = life.stands(1)
    assert alive == i.HeartbeatReported(member=MEMBER, member_epoch="e1")
    assert isinstance(given_back, i.ResultReported)
    assert given_back.outcome == "not_sent"
    assert life.membership.running == 1


def test_who_leaves_gives_back_what_comes_then_and_waits_for_its_slot_to_return() -> None:
    life = Standing(places=2)
    life.membership.leave()
    assert not life.membership.resting
    assert [step.outcome for step in life.stands() if isinstance(step, i.ResultReported)] == [
        "not_sent"
    ]
    assert all(beat.sent_ms is None for beat in life.membership.beat())
    life.hear(e.MemberSlotReturned(member=MEMBER, member_epoch="e1", reason="left"))
    assert life.membership.resting


def test_a_heartbeat_tells_the_members_clock_rounded_down() -> None:
    life = Life()
    (beat,) = life.membership.beat()
    assert beat.sent_ms == life.now_ms


def test_no_place_is_offered_while_a_handler_keeps_one_that_the_owner_takes_for_free() -> None:
    life = Standing(places=2)
    (step,) = life.stands()
    step.attempt.lose_lease()
    (beat,) = life.membership.beat()
    assert beat.sent_ms is None
    life.membership.ended()
    life.membership.durable(step.attempt)
    (beat,) = life.membership.beat()
    assert beat.sent_ms is not None


def test_a_new_life_offers_nothing_while_handlers_of_the_one_before_are_at_work() -> None:
    life = Standing(places=2)
    life.stands()
    life.hear(life.lost())
    life.hear(life.slot_granted())
    assert all(beat.sent_ms is None for beat in life.membership.beat())
