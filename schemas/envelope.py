"""What every public record carries beside its value: position, cause and CloudEvents names."""

from dataclasses import dataclass
from datetime import UTC, datetime

from .journal import Position
from .units import Millis

Headers = list[tuple[str, str | bytes | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """Position and cause of one event; `position` orders records over all topics."""

    position: Position
    cause: str
    """`<topic>:<partition>:<offset>` of the input, `time`, or `dispatch`."""
    type: str
    """Name of the record class."""
    time_ms: Millis

    def headers(self) -> Headers:
        """CloudEvents 1.0 in Kafka's binary mode, with `position` and `cause` beside them."""
        position = str(self.position)
        instant = datetime.fromtimestamp(self.time_ms / 1000, UTC)
        return [
            ("ce_specversion", "1.0"),
            ("ce_id", position),
            ("ce_source", f"/cells/{self.position.cell}"),
            ("ce_type", f"evenhand.{self.type}.v1"),
            ("ce_time", instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")),
            ("content-type", "application/avro"),
            ("position", position),
            ("cause", self.cause),
        ]


def position_of(headers: Headers | None) -> Position | None:
    """The position in a public record's headers, or None for a stranger's record."""
    for name, value in headers or ():
        if name == "position" and isinstance(value, bytes):
            return Position.parse(value.decode())
    return None
