"""Spans of time as people write them.

>>> span_ms("10m"), span_ms("1.5s"), span_ms("250ms"), as_text(605_000)
(600000, 1500, 250, '10m5s')
"""

import re
from typing import Final

import typer

_UNITS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SPAN: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


def span_ms(text: str) -> int:
    """Milliseconds of a span such as 10m.

    Raises:
        BadParameter: it is none.
    """
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        raise typer.BadParameter(f"Expected a span such as 30s, 10m or 2h, but got {text!r}")
    return round(float(found[1]) * _UNITS[found[2]])


def as_text(span: int) -> str:
    """A span in its two largest units."""
    parts = []
    for unit in ("d", "h", "m", "s", "ms"):
        count, span = divmod(span, _UNITS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts[:2]) or "0s"
