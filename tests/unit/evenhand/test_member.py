"""A member's life: what it says, and what it never does."""

import pytest

from evenhand._life import Barred, Joining, Run, Told
from schemas import events as e
from schemas import inputs as i
from tests.support.member import Life


def test_it_joins_with_what_it_is() -> None:
    life = Life(joined=False)
    assert life.first == i.JoinRequested(member="m1", member_epoch="e1", pool="p", places=1)


def test_its_heart_beats_from_the_moment_in_which_it_is_a_member() -> None:
    life = Life(joined=False)
    assert life.membership.beat() == []
    beat = i.HeartbeatReported(member="m1", member_epoch="e1", sent_ms=1_000)
    assert life.hear(life.slot_granted()) == [beat]
    assert life.membership.beat() == [beat]


def test_a_grant_is_answered_by_a_start_request_and_nothing_runs_yet() -> None:
    life = Life()
    (step,) = life.hear(life.grant())
    assert isinstance(step, i.StartRequested)


def test_only_an_accepted_start_runs() -> None:
    life = Life()
    grant = life.grant()
    assert life.hear(life.accepted(grant)) == []
    life.hear(grant)
    (step,) = life.hear(life.accepted(grant))
    assert isinstance(step, Run)


@pytest.mark.parametrize("ended", [Life.refused, Life.revoked])
def test_what_was_refused_or_revoked_never_runs(ended: object) -> None:
    life = Life()
    grant = life.grant()
    life.hear(grant)
    life.hear(ended(life, grant))  # type: ignore[operator]
    assert life.hear(life.accepted(grant)) == []
    assert life.membership.resting


def test_a_copy_of_a_grant_or_of_an_answer_authorises_nothing() -> None:
    life = Life(places=4)
    grant = life.grant()
    life.hear(grant)
    assert life.hear(grant) == []
    life.hear(life.accepted(grant))
    assert life.hear(life.accepted(grant)) == []
    assert life.hear(grant) == []


def test_a_grant_to_an_earlier_life_is_left_alone() -> None:
    life = Life()
    assert life.hear(life.grant(member_epoch="e0")) == []


def test_a_delivery_is_given_up_only_when_its_result_is_durable() -> None:
    life = Life()
    attempt = life.run()
    life.membership.ended()
    assert not life.membership.resting
    life.membership.durable(attempt)
    assert life.membership.resting


@pytest.mark.parametrize("reason", ["lost", "superseded"])
def test_a_member_that_is_none_any_more_joins_again_with_a_fresh_epoch(reason: str) -> None:
    life = Life()
    event = life.lost() if reason == "lost" else life.join_refused("epoch-superseded")
    (step,) = life.hear(event)
    assert isinstance(step, i.JoinRequested)
    assert step.member_epoch == "e2"
    assert life.membership.beat() == []


def test_a_full_pool_is_asked_again_after_a_second() -> None:
    life = Life(joined=False)
    assert life.hear(life.join_refused("pool-full")) == []
    life.now_ms += 999
    assert life.membership.tick() == []
    life.now_ms += 1
    (step,) = life.membership.tick()
    assert isinstance(step, i.JoinRequested)
    assert life.membership.tick() == []


def test_a_pool_that_will_never_take_it_bars_it() -> None:
    life = Life(joined=False)
    assert life.hear(life.join_refused("unknown-pool")) == [Barred("unknown-pool")]


def test_news_of_an_earlier_life_changes_nothing() -> None:
    life = Life()
    old = life.lost()
    life.hear(life.lost())
    life.hear(life.slot_granted())
    assert life.hear(old) == []


def test_handlers_of_the_life_before_keep_their_places() -> None:
    life = Life(places=1)
    life.run(operation=1)
    life.hear(life.lost())
    life.hear(life.slot_granted())
    assert life.hear(life.grant(operation=2)) == []
    (step,) = life.membership.ended()
    assert isinstance(step, i.StartRequested)


def test_a_held_grant_that_is_revoked_is_not_started_later() -> None:
    life = Life(places=1)
    life.run(operation=1)
    held = life.grant(operation=2)
    life.hear(held)
    life.hear(life.revoked(held))
    assert life.membership.ended() == []


def test_who_leaves_takes_no_more_and_goes_on_beating() -> None:
    life = Life(places=2)
    attempt = life.run(operation=1)
    assert life.membership.leave() == i.LeaveAnnounced(member="m1", member_epoch="e1")
    assert life.hear(life.grant(operation=2)) == []
    assert life.hear(life.lost()) == []
    assert life.membership.beat() != []
    life.membership.ended()
    life.membership.durable(attempt)
    assert life.membership.resting


def test_a_start_that_was_asked_for_before_leaving_is_finished() -> None:
    life = Life()
    grant = life.grant()
    life.hear(grant)
    life.membership.leave()
    assert not life.membership.resting
    (step,) = life.hear(life.accepted(grant))
    assert isinstance(step, Run)


def test_answers_to_submissions_are_told() -> None:
    life = Life()
    expired = e.OperationExpired(tenant="t", operation=bytes(16), reason="deadline")
    assert life.hear(expired) == [Told(expired)]


def test_a_member_has_a_place() -> None:
    with pytest.raises(ValueError, match="at least one place"):
        Joining(pool="p", member="m", places=0)
