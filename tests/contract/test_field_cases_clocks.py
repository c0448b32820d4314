"""Field cases about days and clocks, by their numbers: when a budget of a day opens again."""

import pytest

from tests.support import core as c
from tests.support.scene import BASE_MS, Scene

DAY_MS, HOUR_MS = 86_400_000, 3_600_000
SOON = {"send_within_ms": 1, "call_s": 0.1}


def day(reset_h, uncertainty_h=0):
    """A daily budget of tokens that is reset at this hour, by UTC."""
    return c.dimension(
        "tokens",
        100,
        kind="fixed",
        window_ms=DAY_MS,
        reset_ms=reset_h * HOUR_MS,
        reset_uncertainty_ms=uncertainty_h * HOUR_MS,
        pace_percent=None,
    )


def at_s(days, hour):
    """Seconds of the scene at an hour of one of its days, by UTC."""
    return (days * DAY_MS + hour * HOUR_MS - BASE_MS) / 1_000


def test_f13_a_local_day_opens_at_its_own_midnight_and_not_at_that_of_utc():
    scene = Scene(day(15), **SOON)  # midnight in Tokyo
    scene.at(at_s(1, 12), scene.job("all of it", 100))
    scene.at(at_s(1, 12) + 1, scene.job("next day", 100, start_within_ms=2 * DAY_MS))
    scene.at(at_s(1, 15) - 0.001)
    assert list(scene.times()) == ["all of it"]
    scene.at(at_s(1, 15))
    assert scene.times()["next day"] == at_s(1, 15)


@pytest.mark.parametrize(("used_h", "opens_h"), [(21, 24), (23, 48), (30, 48)])
def test_f13_where_the_clocks_change_the_later_of_both_midnights_opens_the_day(used_h, opens_h):
    """In Berlin midnight is 22:00 or 23:00 by UTC: 23:00 give or take an hour is never too early.

    What is used near the edge counts in both days, since nobody here knows which one it was.
    """
    scene = Scene(day(23, uncertainty_h=1), **SOON)
    scene.at(at_s(0, used_h), scene.job("all of it", 100))
    scene.at(at_s(0, used_h) + 1, scene.job("next day", 100, start_within_ms=3 * DAY_MS))
    scene.at(at_s(3, 0))
    assert scene.times()["next day"] == at_s(0, opens_h)
