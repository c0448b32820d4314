"""An entry on its way: decided, not yet known to be accepted."""

from collections.abc import Sequence
from dataclasses import dataclass

from schemas.events import Event
from schemas.journal import Entry
from streams.core.tables import Image
from streams.shell.journal import Landing
from streams.shell.outbox import Outgoing


@dataclass(slots=True, kw_only=True)
class Decided:
    """All that the loop keeps of it from one step to the next."""

    entry: Entry
    events: Sequence[Event]
    images: Sequence[Image]
    value: bytes
    """The entry's bytes."""
    outgoing: Sequence[Outgoing] = ()
    """Its copies, each with its position."""
    sent_ms: int = 0
    append_ms: int = 0
    """How long it took until its landing was seen."""
    landing: Landing | None = None
