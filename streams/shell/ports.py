"""Everything that a cell's process is given from outside, in one value."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from schemas.ids import CellId, OwnerId
from streams.shell.clock import Monotonic
from streams.shell.inputs import Inputs
from streams.shell.journal import Journal, Pulses, Writer
from streams.shell.outbox import Outbox
from streams.shell.tables import TableStore
from streams.shell.watch import Watch


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Spans of the engine; none of them can change what is decided, only when."""

    pulse_ms: int = 100
    """How often an owner that appends nothing shows that it lives."""
    takeover_ms: int = 600
    """Silence after which a standby takes over; at least twice the longest append round trip."""
    takeover_spread_ms: int = 300
    """A random part up to this is added, so that two standbys seldom collide."""
    append_timeout_ms: int = 5_000
    """An append without answer for this long ends the term; equals `message.timeout.ms`."""
    publish_stall_ms: int = 10_000
    """An owner that waits for a slow public partition looks alive for this long."""
    first_read_ms: int = 10_000
    """A new owner may pulse for this long before its first successful read."""
    lag_entries_max: int = 256
    """Entries not yet known to be out; a new owner publishes at most these again."""
    lag_bytes_max: int = 16 * 1024 * 1024
    """The same in bytes, far below the producer's buffer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The world of one cell. Factories make what one standby or term uses and then throws away."""

    cell: CellId
    prefix: str
    """First part of every topic's name."""
    journal: Journal
    pulses: Callable[[], Pulses]
    inputs: Callable[[], Inputs]
    outbox: Callable[[], Outbox]
    tables: Callable[[], TableStore]
    topic_ids: Callable[[], Mapping[str, str] | None]
    """Ids of the cell's topics by full name, asked afresh; None if the broker did not answer."""
    monotonic: Monotonic
    watch: Watch
    owner_id: Callable[[], OwnerId]
    """A fresh random id for each term."""
    chance_ms: Callable[[int], int]
    """A random span from 0 up to the argument."""
    timing: Timing


@dataclass(slots=True, kw_only=True)
class Gear:
    """What one term uses and then throws away; made and primed while still a standby."""

    owner: OwnerId
    pulses: Pulses
    writer: Writer
    inputs: Inputs
    outbox: Outbox

    def close(self) -> None:
        """Purge and let go of everything; abandoned appends may still land."""
        self.writer.close()
        self.outbox.close()
        self.inputs.close()
        self.pulses.close()
