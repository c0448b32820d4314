"""The input topics for verify, over the same reader that the audit has."""

from collections.abc import Iterator, Sequence

from evenhand.audit.logs import Logs, Record
from projections.replay import InputRecord
from schemas.journal import InputRun
from schemas.topics import INPUT_TOPICS


class LoggedInputs:
    """`RecordedInputs` over the topics of a cell; every partition is read forward once."""

    def __init__(self, logs: Logs) -> None:
        self._logs = logs
        self._streams: dict[tuple[int, int], Iterator[Record]] = {}
        self._ahead: dict[tuple[int, int], Record | None] = {}

    def read(self, run: InputRun) -> Sequence[InputRecord]:
        """The records behind a run; runs of one partition come in the order taken."""
        place = (run.topic, run.partition)
        if place not in self._streams:
            topic = INPUT_TOPICS[run.topic]
            start = self._logs.start(topic, run.partition)
            self._streams[place] = self._logs.read(topic, run.partition, start)
            self._ahead[place] = next(self._streams[place], None)
        found = []
        ahead = self._ahead[place]
        while ahead is not None and ahead.offset < run.next:
            if ahead.offset >= run.first:
                found.append(InputRecord(ahead.offset, ahead.key, ahead.value))
            ahead = next(self._streams[place], None)
        self._ahead[place] = ahead
        return found
