"""Days of a time zone in a configuration file: instants that the owner takes, one reset a day."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.cli.configuration import read, stages
from evenhand.cli.zones import DAY_MS, YEARS, resets_of
from schemas import events as e
from schemas.inputs import DimensionConfig
from schemas.units import Millis
from streams.core.exits import exit_ms
from tests.support import cells as s
from tests.support import core as c

DAY = """
[domains.d]
[[domains.d.dimensions]]
name = "tokens"
unit = "tokens"
kind = "fixed"
limit = 100
reset_zone = "Europe/Berlin"
[[tenants.acme.budgets]]
domain = "d"
[[tenants.acme.budgets.dimensions]]
name = "requests"
unit = "requests"
kind = "fixed"
limit = 9
reset_zone = "America/Santiago"
"""


def local_day(zone: str, year: int) -> DimensionConfig:
    return c.dimension("tokens", 100, kind="fixed", pace_percent=None, **resets_of(zone, year))


def resets(one: DimensionConfig, days: int) -> list[int]:
    """When windows begin, by the core, from the first known reset on."""
    assert one.reset_ms is not None
    found = [int(one.reset_ms)]
    while len(found) < days:
        found.append(exit_ms(one, latest_ms=Millis(found[-1]), send_within_ms=Millis(1)))
    return found


def utc(instant: str) -> int:
    return int(datetime.fromisoformat(instant).replace(tzinfo=UTC).timestamp()) * 1_000


BERLIN = [
    ["2026-10-24T22:00", "2026-10-25T23:00", "2026-10-26T23:00"],
    ["2027-03-26T23:00", "2027-03-27T23:00", "2027-03-28T22:00", "2027-03-29T22:00"],
]


@pytest.mark.parametrize("told", BERLIN)
def test_a_day_of_25_hours_and_one_of_23_have_one_reset_each(told: list[str]) -> None:
    begun = resets(local_day("Europe/Berlin", 2026), 600)
    expected = [utc(one) for one in told]
    assert [one for one in begun if expected[0] <= one <= expected[-1]] == expected


ZONES = sorted(available_timezones())


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(ZONES), st.integers(1971, 2100))
def test_in_every_zone_and_year_each_local_day_has_exactly_one_reset(name: str, year: int) -> None:
    zone, one = ZoneInfo(name), local_day(name, year)
    begun = resets(one, 365 * YEARS)
    days = [datetime.fromtimestamp(at / 1_000, zone).date() for at in begun]
    before = [datetime.fromtimestamp(at / 1_000 - 1, zone).date() for at in begun]
    assert days[0] == date(year, 1, 1)
    for n, (day, after) in enumerate(pairwise(days), start=1):
        midnight = datetime.combine(day + timedelta(1), datetime.min.time(), zone)
        is_skipped = midnight.astimezone(UTC).astimezone(zone).date() != day + timedelta(1)
        assert after == day + timedelta(1 + is_skipped)
        assert before[n] < after
    proposed = c.domain(one)
    assert c.only(e.ConfigActivated, s.cell().run(proposed))


def test_after_the_last_known_reset_days_of_24_hours_follow() -> None:
    one = local_day("Europe/Berlin", 2026)
    last = one.later_resets_ms[-1]
    assert utc("2036-10-26T23:00") == last
    assert [after - before for before, after in pairwise(resets(one, 6_000)) if before >= last] == (
        [DAY_MS] * (6_000 - 1 - resets(one, 6_000).index(last))
    )


def test_a_file_names_zones_and_the_owner_takes_instants(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(DAY)
    cell = s.cell()
    for stage in stages(read(file, 2026), cell="cell", author="me", reason="a test"):
        events = cell.run(*stage)
        assert not c.only(e.ConfigRefused, events)
    windows = cell.state.config.windows
    assert windows["domain", "d", "tokens"].config == local_day("Europe/Berlin", 2026)
    own = windows["tenant:acme", "d", "requests"].config
    assert own.reset_ms == utc("2026-01-01T03:00")
    assert utc("2026-09-07T03:00") in own.later_resets_ms


def test_in_one_year_a_file_says_the_same_whenever_it_is_applied(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(DAY)
    assert read(file, 2026) == read(file, 2026) != read(file, 2027)
    (tokens,) = read(file).domains["d"].dimensions
    assert tokens.later_resets_ms


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ('reset_zone = "Europe/Bärlin"', "zone such as Europe/Berlin"),
        ('reset_zone = "../passwd"', "zone such as Europe/Berlin"),
        ("reset_zone = 2", "zone such as Europe/Berlin"),
        ('reset_zone = ["UTC"]', "zone such as Europe/Berlin"),
        ('reset_zone = "UTC"\nwindow_ms = 3_600_000', "reset_zone or window_ms"),
        ('reset_zone = "UTC"\nreset_ms = 0', "reset_zone or reset_ms"),
        ('reset_zone = "UTC"\nlater_resets_ms = [1]', "reset_zone or later_resets_ms"),
    ],
)
def test_a_zone_that_is_none_or_not_alone_is_named_before_anything_is_sent(
    tmp_path: Path, said: str, named: str
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(DAY.replace('reset_zone = "Europe/Berlin"', said))
    with pytest.raises(ValueError, match=named):
        read(file)


@pytest.mark.parametrize("kind", ["sliding", "bucket"])
def test_only_a_fixed_window_is_reset_by_a_zone(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(DAY.replace('"fixed"', f'"{kind}"'))
    (proposed,) = stages(read(file, 2026), cell="cell", author="me", reason="no")[0]
    (refused,) = c.only(e.ConfigRefused, s.cell().run(proposed))
    assert "only a fixed window is reset" in refused.detail
