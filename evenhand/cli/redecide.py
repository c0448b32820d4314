"""The write side's rules for verify: one cell's state in tables that are thrown away afterwards."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from projections.replay import Taken
from schemas.codec import decode, encode
from schemas.ids import StateHash
from schemas.journal import Entry, EntryEvent, Head
from schemas.topics import INPUT_TOPICS, Topic
from streams.core import outcomes
from streams.core.decider import CORE_VERSION, Decided, as_recorded, step
from streams.core.evolution import evolve
from streams.core.opening import open_state
from streams.core.tables import chain_hash
from streams.shell.kafka.inputs import input_topic, read_input
from streams.shell.restore import GENESIS_HASH
from streams.shell.rocks import RocksTables
from streams.shell.tables import Applied, TableStore


class Redecider:
    """`Decider` over the core as it is shipped.

    Args:
        store: empty; every entry's rows are written to it.
        partitions: how many each input topic has.
    """

    def __init__(self, store: TableStore, partitions: Mapping[Topic, int]) -> None:
        self._store = store
        self._state = open_state(store)
        self._topics = [input_topic(topic, partitions[topic]) for topic in INPUT_TOPICS]
        self._hash = GENESIS_HASH

    @property
    def core_version(self) -> int:
        """Version of the rules."""
        return CORE_VERSION

    @property
    def state_hash(self) -> StateHash:
        """The running hash so far."""
        return self._hash

    def decide(self, entry: Entry, taken: Sequence[Taken]) -> Sequence[EntryEvent]:
        """As the owner did."""
        self._state.begin(entry)
        acted = as_recorded(Decided(one.cause, decode(one.body)) for one in entry.events)
        decided = step(self._state, self._read(taken), acted)
        self._keep(entry)
        return [EntryEvent(cause=one.cause, body=encode(one.event)) for one in decided]

    def fold(self, entry: Entry) -> None:
        """As a standby does."""
        self._state.begin(entry)
        for recorded in entry.events:
            evolve(self._state, decode(recorded.body))
        self._keep(entry)

    def _read(self, taken: Sequence[Taken]) -> list[outcomes.Taken]:
        read = []
        for run, records in taken:
            topic = self._topics[run.topic]
            for offset, key, value in records:
                body = read_input(topic, run.partition, key, value)
                source = outcomes.Source(run.topic, run.partition, offset)
                read.append(outcomes.Taken(source, body))
        return read

    def _keep(self, entry: Entry) -> None:
        images = self._state.drain()
        self._hash = chain_hash(self._hash, images)
        head = Head(-1, entry.height, entry.epoch, entry.owner, entry.generation)
        # The next entry reads these rows; nobody will ever open the store again.
        applied = Applied(
            topic_id="",
            core_version=CORE_VERSION,
            head=head,
            next_offset=-1,
            entry_digest=b"",
            state_hash=self._hash,
            time_ms=entry.time_ms,
            published=entry.published,
            anchor_append_ms=0,
            anchor_time_ms=0,
            anchor_leader_epoch=-1,
        )
        self._store.write(images, applied)


@contextmanager
def redecider(partitions: Mapping[Topic, int]) -> Iterator[Redecider]:
    """A decider at a cell's beginning; its tables go when the block is left."""
    with TemporaryDirectory(prefix="evenhand-verify-") as directory:
        store = RocksTables(Path(directory))
        try:
            yield Redecider(store, partitions)
        finally:
            store.close()
