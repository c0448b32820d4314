"""How long a provider says to wait, in every form that its answers use."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

_NUMBER: Final = re.compile(r"\d{1,9}(\.\d{1,9})?")
"""Nine digits of seconds are 31 years; what is longer is no wait but a mistake."""


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """How long the headers of an answer ask to wait, never less; None if they say nothing.

    `retry-after-ms` wins over `Retry-After`. A date is read against the answer's own `Date`, so
    that a wrong clock here does not matter; without one against the clock here. A date in the past
    is 0. Names in any case.

    >>> retry_after_s({"Retry-After": "5", "retry-after-ms": "4321"})
    4.321
    """
    named = {name.lower(): value.strip() for name, value in headers.items()}
    millis, seconds = named.get("retry-after-ms", ""), named.get("retry-after", "")
    if _NUMBER.fullmatch(millis):
        return float(millis) / 1000
    if _NUMBER.fullmatch(seconds):
        return float(seconds)
    until = _instant(seconds)
    return None if until is None else left_s(until, now=_instant(named.get("date", "")))


def left_s(until: datetime, *, now: datetime | None = None) -> float:
    """Seconds until an instant, 0 if it has passed; now is that of the clock here by default."""
    # A provider's instant is one of the world's clock, so nothing else can be asked.
    now = now or datetime.now(UTC)  # noqa: TID251
    return max(0.0, (until - now).total_seconds())


def millis_up(seconds: float) -> int:
    """Whole milliseconds, rounded up: to come again too early is a call for nothing."""
    return math.ceil(seconds * 1000)


def _instant(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
