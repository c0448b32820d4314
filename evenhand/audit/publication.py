"""Public topics equal the journal: every event's copies, on their partition, in order (R165, R166).

As the journal is read, each copy that it demands is compared with the next record of its partition,
after dropping what repeats a position, as every reader does. What the journal demands and nobody
has published yet is pending, unless an entry has said that it is out.
"""

from collections.abc import Iterator
from typing import Any

from schemas.envelope import position_of
from schemas.journal import Position
from schemas.topics import OUTPUT_TOPICS, Topic, routes

from .asked import PartitionOf
from .cursor import Cursor
from .logs import Logs, Record

CHECK = "publication"

_Place = tuple[int, int, int]
"""Generation, offset and index: a position within the cell."""


class _Stream:
    """One public partition, read forward only, repeats dropped."""

    def __init__(self, records: Iterator[Record], topic: Topic, partition: int) -> None:
        self.name = f"{topic}:{partition}"
        self.missing: Position | None = None
        """The first copy beyond the end of the partition."""
        self.missing_count = 0
        self.record: Record | None = None
        self.place: _Place = (-1, -1, -1)
        self.strangers: list[int] = []
        """Offsets of records without a position that were passed."""
        self._records = records
        self.advance()

    def advance(self) -> None:
        """Go on to the next record with a position above all before it."""
        for record in self._records:
            position = position_of(record.headers)
            if position is None:
                self.strangers.append(record.offset)
                continue
            place = (position.generation, position.offset, position.index)
            if place > self.place:
                self.record, self.place = record, place
                return
        self.record = None


class Publication:
    """All public partitions of a cell beside the copies that its journal demands."""

    def __init__(self, cursor: Cursor, logs: Logs, partition_of: PartitionOf) -> None:
        self._cursor = cursor
        self._logs = logs
        self._partition_of = partition_of
        self._counts = {topic: logs.partitions(topic) for topic in OUTPUT_TOPICS}
        self._homes: dict[tuple[Topic, str], int] = {}
        self._streams: dict[tuple[Topic, int], _Stream] = {}

    def see(self, event: Any, body: bytes) -> None:
        """Expect the copies of the event under audit next on their partitions."""
        for topic, key in routes(event):
            self._expect(self._stream(topic, self._home(topic, key)), key.encode(), body)

    def finish(self, published: int, *, strict: bool) -> int:
        """What is left over or missing at the end.

        Args:
            published: offset up to which the journal says that everything is out.
            strict: whether a copy that is not out yet is a finding too.

        Returns: how many copies are pending.
        """
        for topic, count in self._counts.items():
            for partition in range(count):
                self._stream(topic, partition)
        pending = 0
        for stream in self._streams.values():
            self._strangers(stream)
            self._leftovers(stream)
            missing = stream.missing
            if missing is not None and (strict or missing.offset <= published):
                said = f"`published` is {published}"
                detail = f"Expected {stream.missing_count} more copies on {stream.name}; {said}"
                self._cursor.found(CHECK, detail, missing)
            else:
                pending += stream.missing_count
        return pending

    def _expect(self, stream: _Stream, key: bytes, body: bytes) -> None:
        cursor = self._cursor
        wanted = (cursor.generation, cursor.offset, cursor.index)
        while stream.record is not None and stream.place < wanted:
            self._extra(stream)
            stream.advance()
        record = stream.record
        if stream.strangers:
            self._strangers(stream)
        if record is None:
            stream.missing = stream.missing or cursor.position
            stream.missing_count += 1
        elif stream.place > wanted:
            self._found(f"Expected a copy on {stream.name} before offset {record.offset}")
        else:
            if record.value != body:
                self._found(f"Expected the event's bytes at {stream.name}:{record.offset}")
            if record.key != key:
                self._found(f"Expected the key {key!r} at {stream.name}:{record.offset}")
            stream.advance()

    def _leftovers(self, stream: _Stream) -> None:
        """Copies of entries after the last one audited are no business of this audit."""
        end = (self._cursor.generation, self._cursor.offset + 1, 0)
        while stream.record is not None and stream.place < end:
            self._extra(stream)
            stream.advance()
        self._strangers(stream)

    def _extra(self, stream: _Stream) -> None:
        generation, offset, index = stream.place
        if generation == self._cursor.generation:
            assert stream.record is not None
            where = f"{stream.name}:{stream.record.offset}"
            position = Position(self._cursor.cell, generation, offset, index)
            self._cursor.found(CHECK, f"Expected no such record as {where}", position)

    def _strangers(self, stream: _Stream) -> None:
        for offset in stream.strangers:
            self._found(f"Expected only the owner's records, but {stream.name}:{offset} is not")
        stream.strangers.clear()

    def _home(self, topic: Topic, key: str) -> int:
        home = self._homes.get((topic, key))
        if home is None:
            home = self._partition_of(key.encode(), self._counts[topic])
            if topic is not Topic.QUARANTINE:  # its keys never come again
                self._homes[topic, key] = home
        return home

    def _stream(self, topic: Topic, partition: int) -> _Stream:
        place = (topic, partition)
        if place not in self._streams:
            start = self._logs.start(topic, partition)
            records = self._logs.read(topic, partition, start)
            self._streams[place] = _Stream(records, topic, partition)
        return self._streams[place]

    def _found(self, detail: str) -> None:
        self._cursor.found(CHECK, detail)
