"""What every public record carries beside its value: position, cause and CloudEvents names."""

from datetime import UTC, datetime

from .ids import CellId
from .journal import Position
from .units import Millis

Headers = list[tuple[str, str | bytes | None]]


class Envelopes:
    """The headers of one entry's public records; what they share is written once.

    Position and cause beside the names of CloudEvents 1.0 in Kafka's binary mode; `ce_id` is the
    position, so that it dedupes, and `position` orders records over all topics.
    """

    def __init__(self, cell: CellId, generation: int, offset: int, time_ms: Millis) -> None:
        instant = datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
        self._where = f"{cell}:{generation}:{offset}:"
        self._shared: Headers = [
            ("ce_specversion", "1.0"),
            ("content-type", "application/avro"),
            ("ce_source", f"/cells/{cell}"),
            ("ce_time", f"{instant[:-6]}Z"),
        ]

    def headers(self, index: int, *, kind: str, cause: str) -> Headers:
        """Of the event at `index`.

        Args:
            index: place in the entry.
            kind: name of the record class.
            cause: `<topic>:<partition>:<offset>` of the input, `time`, or `dispatch`.
        """
        position = f"{self._where}{index}"
        return [
            *self._shared,
            ("ce_id", position),
            ("ce_type", f"evenhand.{kind}.v1"),
            ("position", position),
            ("cause", cause),
        ]


def position_of(headers: Headers | None) -> Position | None:
    """The position in a public record's headers, or None for a stranger's record."""
    for name, value in headers or ():
        if name == "position" and isinstance(value, bytes):
            return Position.parse(value.decode())
    return None
