"""Whose leases a member's heart renews, and how often it beats."""

import pytest

from evenhand._started import LEASES_PER_BEAT_MAX
from schemas import inputs as i
from tests.support.member import Life


def named(life: Life) -> list[list[tuple[int, int]]]:
    return [
        [(int.from_bytes(lease.operation, "big"), lease.epoch) for lease in beat.leases]
        for beat in life.membership.beat()
    ]


def test_a_beat_renews_what_is_started_and_nothing_else() -> None:
    life = Life(places=9)
    life.run(operation=1, epoch=1)
    life.run(operation=2, epoch=5)
    life.hear(life.grant(operation=3))
    assert named(life) == [[(1, 1), (2, 5)]]


def test_a_lease_is_renewed_until_the_result_is_durable() -> None:
    life = Life(places=9)
    attempt = life.run(operation=1)
    life.membership.ended()
    assert named(life) == [[(1, 1)]]
    life.membership.durable(attempt)
    assert named(life) == [[]]


def test_a_new_life_renews_nothing_of_the_one_before() -> None:
    life = Life(places=9)
    life.run(operation=1)
    life.hear(life.lost())
    life.hear(life.slot_granted())
    life.run(operation=2)
    assert named(life) == [[(2, 1)]]


def test_a_member_that_leaves_goes_on_renewing() -> None:
    life = Life()
    life.run(operation=1)
    life.membership.leave()
    assert named(life) == [[(1, 1)]]


@pytest.mark.parametrize(("leases", "beats"), [(0, 1), (1, 1), (1024, 1), (1025, 2), (2049, 3)])
def test_many_leases_take_more_than_one_beat(leases: int, beats: int) -> None:
    life = Life(places=leases or 1)
    for operation in range(leases):
        life.run(operation=operation)
    told = life.membership.beat()
    assert len(told) == beats
    assert max(len(beat.leases) for beat in told) <= LEASES_PER_BEAT_MAX
    everything = {lease.operation for beat in told for lease in beat.leases}
    assert len(everything) == leases
    assert all(isinstance(beat, i.HeartbeatReported) for beat in told)


@pytest.mark.parametrize(
    ("lease_ms", "every_s"), [(None, 1.0), (60_000, 1.0), (3_000, 1.0), (1_500, 0.5), (300, 0.1)]
)
def test_the_heart_beats_three_times_a_lease_and_at_least_every_second(
    lease_ms: int | None, every_s: float
) -> None:
    life = Life(joined=False)
    life.hear(life.slot_granted(lease_ms=lease_ms))
    assert life.membership.beat_every_s == pytest.approx(every_s)


def test_the_first_beat_of_a_short_lease_is_not_late() -> None:
    life = Life(joined=False)
    assert life.membership.beat_every_s <= 0.1
    life.hear(life.slot_granted(lease_ms=300))
    life.hear(life.lost())
    assert life.membership.beat_every_s <= 0.1
