"""Field cases about days and clocks, by their numbers: when a budget of a day opens again."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from evenhand.cli.zones import DAY_MS, resets_of
from tests.support import core as c
from tests.support.scene import Scene, requests

SOON = {"send_within_ms": 1, "call_s": 0.1}
MILLI = 0.001


def local_day(zone, **over):
    """A budget of tokens for a calendar day in this zone."""
    return c.dimension(
        "tokens", 100, kind="fixed", **{**resets_of(zone, 2026), "pace_percent": None, **over}
    )


def at_ms(instant):
    """An instant by UTC, such as 2026-07-25T12:00."""
    return round(datetime.fromisoformat(instant).replace(tzinfo=UTC).timestamp() * 1_000)


def used_up(zone, instant, **over):
    """All of a day is used at this instant, and more work waits."""
    scene = Scene(local_day(zone, **over), base_ms=at_ms(instant), **SOON)
    scene.at(0, scene.job("all of it", 100))
    scene.at(1, scene.job("next day", 100, start_within_ms=3 * DAY_MS))
    return scene


LOCAL_DAYS = [
    # zone, when the day is used up, when the next one begins
    ("Asia/Tokyo", "2026-07-25T12:00", "2026-07-25T15:00"),
    ("Europe/Berlin", "2026-10-24T12:00", "2026-10-24T22:00"),
    ("Europe/Berlin", "2026-10-24T22:00", "2026-10-25T23:00"),  # 25 h
    ("Europe/Berlin", "2026-10-25T22:30", "2026-10-25T23:00"),
    ("Europe/Berlin", "2026-10-25T23:00", "2026-10-26T23:00"),
    ("Europe/Berlin", "2027-03-27T12:00", "2027-03-27T23:00"),
    ("Europe/Berlin", "2027-03-27T23:00", "2027-03-28T22:00"),  # 23 h
    ("Europe/Berlin", "2027-03-28T22:00", "2027-03-29T22:00"),
    # Where the clocks change at midnight.
    ("America/Santiago", "2026-09-05T12:00", "2026-09-06T04:00"),
    ("America/Santiago", "2026-09-06T04:00", "2026-09-07T03:00"),  # begins at 01:00
    ("Africa/Cairo", "2026-10-28T21:00", "2026-10-29T22:00"),  # has 23:00 to 24:00 twice
]


@pytest.mark.parametrize(("zone", "used", "opens"), LOCAL_DAYS)
def test_f13_a_local_day_opens_at_its_own_midnight_and_not_at_that_of_utc(zone, used, opens):
    scene, opens_s = used_up(zone, used), (at_ms(opens) - at_ms(used)) / 1_000
    scene.at(opens_s - MILLI)
    assert list(scene.times()) == ["all of it"]
    scene.at(opens_s)
    assert scene.times()["next day"] == opens_s


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/Santiago", "Africa/Cairo"])
def test_f13_where_the_clocks_change_each_local_day_has_one_reset(zone):
    waits = {"start_within_ms_max": 200 * DAY_MS}
    scene = Scene(local_day(zone), base_ms=at_ms("2026-08-15T12:00"), bounds=waits, **SOON)
    jobs = [scene.job(f"{n}", 100, start_within_ms=200 * DAY_MS) for n in range(150)]
    scene.at(0, *jobs)
    scene.at(100 * DAY_MS / 1_000)
    granted = [scene.base_ms / 1_000 + at for at in scene.times().values()]
    days = [datetime.fromtimestamp(at, ZoneInfo(zone)).date() for at in granted]
    assert days == [date(2026, 8, 15) + timedelta(n) for n in range(101)]


def test_f13_near_an_uncertain_midnight_a_call_counts_in_both_days():
    scene = used_up("Europe/Berlin", "2026-10-25T22:59", reset_uncertainty_ms=60_000)
    opens_s = (at_ms("2026-10-26T23:01") - scene.base_ms) / 1_000
    scene.at(opens_s - MILLI)
    assert list(scene.times()) == ["all of it"]
    scene.at(opens_s)
    assert scene.times()["next day"] == opens_s


@pytest.mark.parametrize("kind", [{}, {"kind": "sliding", "reset_ms": None}])
def test_f13_a_minute_that_crosses_midnight_opens_again(kind):
    scene = Scene(requests(1, **kind), base_ms=at_ms("2026-07-25T23:59"), **SOON)
    scene.at(30, scene.job("before midnight"))
    scene.at(120, scene.job("after midnight"))
    assert scene.times() == {"before midnight": 30, "after midnight": 120}
