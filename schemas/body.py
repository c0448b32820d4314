"""How an HTTP body is declared: strict where users write, lenient where they read."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer

COUNT_MAX = 2**53 - 1
"""The largest integer that every JSON reader keeps exact (RFC 8259 section 6)."""
NAME_CHARS_MAX = 200
REASON_CHARS_MAX = 500
"""Of what a person writes; below what a cell keeps."""
REFERENCE_CHARS_MAX = 65_536
"""Far above any cell's own bound, which refuses with a code that says so."""


def _rfc3339(instant: datetime) -> str:
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


Instant = Annotated[datetime, PlainSerializer(_rfc3339, when_used="json")]
"""RFC 3339 in UTC with milliseconds."""
Name = Annotated[str, Field(min_length=1, max_length=NAME_CHARS_MAX)]
Count = Annotated[int, Field(ge=0, le=COUNT_MAX)]


class Request(BaseModel):
    """A body that users send: unknown fields are refused, so that a misspelt one is noticed."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Reply(BaseModel):
    """A body that users get: readers ignore fields that they do not know."""

    model_config = ConfigDict(extra="ignore")
