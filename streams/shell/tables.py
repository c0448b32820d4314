"""Port to the tables: all changed rows of an entry and its position in one batch."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from schemas.ids import StateHash
from schemas.journal import Head
from streams.core.tables import Image, Rows


class WrongStore(Exception):
    """The store was folded from another journal. Stop with an alert; deleting it is always safe."""


class TablesInUse(Exception):
    """Another process has the folder open. Stop with an alert: each needs a folder of its own."""


class Applied(NamedTuple):
    """How far the store is: which journal, the last folded entry and the hash after it."""

    topic_id: str
    core_version: int
    """Whose rows these are; under another version they are folded again from the journal."""
    head: Head
    next_offset: int
    """Where to read on; noise after the head may already be passed."""
    entry_digest: bytes
    """SHA-256 of the head's record, compared on opening with what the journal has there."""
    state_hash: StateHash
    time_ms: int
    published: int
    anchor_append_ms: int
    anchor_time_ms: int
    anchor_leader_epoch: int
    """Append time, entry time and leader epoch of the last entry that is not a takeover."""


class TableStore(Rows, Protocol):
    """The rows of one cell; may be deleted at any time, since the journal is the truth."""

    def applied(self) -> Applied | None:
        """What the last batch recorded; None for an empty store."""
        ...

    def write(self, images: Sequence[Image], applied: Applied) -> None:
        """Write all images and `applied` atomically; later reads see them."""
        ...

    def clear(self) -> None:
        """Forget all rows and `applied`; what follows is a fold from the journal's start."""
        ...

    def close(self) -> None:
        """Free every handle and the lock."""
        ...
