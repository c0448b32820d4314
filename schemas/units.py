"""Quantities, each with its unit in the type."""

from typing import NewType

Millis = NewType("Millis", int)
"""Milliseconds; an instant counts from 1970-01-01 UTC on the broker's clock."""
Nanos = NewType("Nanos", int)
Requests = NewType("Requests", int)
Tokens = NewType("Tokens", int)
Slots = NewType("Slots", int)
Micros = NewType("Micros", int)
"""Millionths of a unit of currency."""

NANOS_PER_MILLI = 1_000_000
