"""Every form in which a provider says how long to wait (field case F14)."""

from datetime import UTC, datetime, timedelta

import pytest

from evenhand import retry_after_s
from evenhand._retry_after import left_s, millis_up

NOW = "Sat, 25 Jul 2026 12:00:00 GMT"


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("Sat, 25 Jul 2026 12:05:00 GMT", 300),
        ("Saturday, 25-Jul-26 12:05:00 GMT", 300),
        ("Sat Jul 25 12:05:00 2026", 300),
        ("Sat, 25 Jul 2026 11:59:50 GMT", 0),
        ("5", 5),
        (" 5 ", 5),
        ("0", 0),
        ("0.5", 0.5),
        ("61", 61),
        ("120", 120),
        ("86400", 86_400),
        ("-1", None),
        ("abc", None),
        ("30 seconds", None),
        ("Infinity", None),
        ("9" * 400, None),
        ("Sat, 99 Jul 2026 99:05:00 GMT", None),
        ("", None),
    ],
)
def test_every_form_is_read(value: str, seconds: float | None) -> None:
    assert retry_after_s({"retry-after": value, "DATE": NOW}) == seconds


def test_the_millisecond_form_wins_if_it_is_one() -> None:
    assert retry_after_s({"Retry-After": "5", "Retry-After-Ms": "4321"}) == 4.321
    assert retry_after_s({"Retry-After": "5", "retry-after-ms": "soon"}) == 5


def test_no_header_says_nothing() -> None:
    assert retry_after_s({}) is None


def test_without_a_date_of_its_own_an_instant_is_read_by_the_clock_here() -> None:
    ahead = retry_after_s({"retry-after": "Fri, 01 Jan 2100 00:00:00 GMT"})
    assert ahead is not None
    assert ahead > 86_400


def test_a_wait_is_never_rounded_down() -> None:
    assert [millis_up(seconds) for seconds in (0, 0.0001, 4.321, 5)] == [0, 1, 4321, 5000]


def test_what_is_past_is_no_wait() -> None:
    now = datetime(2026, 7, 25, 12, tzinfo=UTC)
    assert left_s(now - timedelta(seconds=1), now=now) == 0
