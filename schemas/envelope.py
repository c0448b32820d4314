"""What every public record carries beside its value: its position, its cause and its kind."""

from functools import cache

from .ids import CellId
from .journal import Position

Headers = list[tuple[str, str | bytes | None]]
Header = tuple[str, str]


class Envelopes:
    """The headers of one entry's public records.

    Three, since each costs every broker and reader a share of a microsecond: `position`, which
    orders records over all topics and dedupes them; `cause`; and `ce_type`, CloudEvents' name for
    what it is, so that tools may choose records without reading Avro.
    """

    def __init__(self, cell: CellId, generation: int, offset: int) -> None:
        self._where = f"{cell}:{generation}:{offset}:"

    def headers(self, index: int, *, kind: type, cause: str) -> Headers:
        """Of the event at `index`.

        Args:
            index: place in the entry.
            kind: class of the event.
            cause: `<topic>:<partition>:<offset>` of the input, `time`, or `dispatch`.
        """
        return [("position", f"{self._where}{index}"), ("cause", cause), _named(kind)]


@cache
def _named(kind: type) -> Header:
    return "ce_type", f"evenhand.{kind.__name__}.v1"


def position_of(headers: Headers | None) -> Position | None:
    """The position in a public record's headers, or None for a stranger's record."""
    for name, value in headers or ():
        if name == "position" and isinstance(value, bytes):
            return Position.parse(value.decode())
    return None
