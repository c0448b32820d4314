"""The core alone, with everything on topics: what it was asked, its entries, and their copies."""

from typing import Any

from schemas.codec import encode
from schemas.entry import Entry, EntryEvent
from schemas.ids import OwnerId
from schemas.topics import Topic
from schemas.units import Millis
from streams.core.decider import CORE_VERSION, Acted, step
from streams.core.outcomes import Source, Taken
from streams.core.tables import chain_hash
from streams.shell.copies import runs_of
from streams.shell.restore import GENESIS_HASH
from tests.support import core as c
from tests.support.logs import Logs


class RecordedCore(c.Core):
    """A `Core` whose topics can be audited, and whose journal can be verified."""

    def __post_init__(self) -> None:
        self.logs = Logs()
        self.state_hash = GENESIS_HASH
        self.head_offset = -1
        self._decided: Any = None
        super().__post_init__()

    def run(self, *asked: Any, after_ms: int = 0, timers: bool = True) -> list[Any]:
        """One entry; its events. `after_ms` moves time first; no silence is longer."""
        silence_ms, self.silence_ms = min(self.silence_ms, after_ms), 0
        self.now_ms += after_ms
        self.height += 1
        taken = []
        for word in asked:
            run = self.logs.ask(word)
            taken.append(Taken(Source(run.topic, run.partition, run.first), word))
        made = c.Made(self.height, self.epoch, self.now_ms, inputs=runs_of(taken))
        self.state.begin(made)  # type: ignore[arg-type]
        decided = step(self.state, taken, Acted(timers, silence_ms))
        self._keep(made, decided)
        return [one.event for one in decided]

    def _keep(self, made: c.Made, decided: list[Any]) -> None:
        images = self.state.drain()
        self.rows.write(images)
        self.entries.append((made, decided))
        entry = Entry(
            generation=made.generation,
            previous=self.head_offset,
            height=made.height,
            epoch=made.epoch,
            owner=OwnerId(made.epoch.to_bytes(16, "big")),
            takeover=made.takeover,
            time_ms=Millis(made.time_ms),
            clock_shift_ms=Millis(0),
            time_step_ms=None if made.time_step_ms is None else Millis(made.time_step_ms),
            # A takeover copies it; every other entry may say that all before it is out.
            published=self.published if made.takeover else self.head_offset,
            core_version=CORE_VERSION,
            state_hash=self.state_hash,
            inputs=made.inputs,
            events=tuple(EntryEvent(cause=one.cause, body=encode(one.event)) for one in decided),
        )
        self.state_hash = chain_hash(self.state_hash, images)
        self.head_offset = self.logs.append(Topic.JOURNAL, 0, None, encode(entry))
        self.logs.publish(entry, self.head_offset)
        self.last = entry

    @property
    def published(self) -> int:
        """What the last entry said to be out."""
        last: Entry | None = getattr(self, "last", None)
        return -1 if last is None else last.published
