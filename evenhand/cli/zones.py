"""The days of a time zone as resets of a fixed window, since no decision reads a clock's zone.

A day begins at the first instant whose date in the zone is its own, also where the clocks change
at midnight. Told are the first day of a year, and each day that does not begin 24 hours after the
one before; after the last of them days of 24 hours follow.
"""

from datetime import date, datetime, time, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

DAY_MS = 86_400_000
YEARS = 11
"""From the year that is told on: at least ten whole ones after any day of it."""


def filled_in(said: Any, year: int) -> Any:
    """What a file says, with resets from that year on in place of each `reset_zone`.

    Raises:
        ValueError: there is no such zone, or what it stands for is said too.
    """
    match said:
        case {"reset_zone": zone, **others}:
            resets = resets_of(zone, year)
            twice = [name for name in resets if name in others]
            if twice:
                raise ValueError(f"Expected reset_zone or {twice[0]}, but got both")
            return {**others, **resets}
        case dict():
            return {name: filled_in(value, year) for name, value in said.items()}
        case list():
            return [filled_in(value, year) for value in said]
        case _:
            return said


def resets_of(name: Any, year: int) -> dict[str, Any]:
    """The fields of a dimension that is reset when a day begins in the zone of this name.

    Raises:
        ValueError: there is no such zone.
    """
    if not isinstance(name, str) or name not in available_timezones():
        raise ValueError(f"Expected a zone such as Europe/Berlin as reset_zone, but got {name!r}")
    zone, first = ZoneInfo(name), date(year, 1, 1)
    days = (date(year + YEARS, 1, 1) - first).days
    begins_ms = sorted({_begins_ms(first + timedelta(n), zone) for n in range(days + 1)})
    later = (after for before, after in pairwise(begins_ms) if after - before != DAY_MS)
    return {"window_ms": DAY_MS, "reset_ms": begins_ms[0], "later_resets_ms": tuple(later)}


def _begins_ms(day: date, zone: ZoneInfo) -> int:
    """The first of what its midnight may be: two instants when it comes twice, or between them."""
    midnight = datetime.combine(day, time(), zone)
    first, last = sorted(int(midnight.replace(fold=fold).timestamp()) for fold in (0, 1))
    instants = range(first, last + 1)
    return 1_000 * next(at for at in instants if datetime.fromtimestamp(at, zone).date() >= day)
