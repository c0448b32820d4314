"""The input topics: order is kept inside a partition only, and readers are late."""

from collections.abc import Mapping, Sequence
from zlib import crc32

from schemas.inputs import Input
from schemas.topics import INPUT_TOPICS, TOPICS, Topic, input_key
from streams.core.outcomes import Unreadable
from streams.shell.inputs import InputTrimmed, Place, Source, Taken
from tests.simulation.host import Host

PARTITIONS = 2
SUBMISSIONS = INPUT_TOPICS.index(Topic.SUBMISSIONS)
URGENCY = [
    Place(topic, partition)
    for topic in (*range(1, len(INPUT_TOPICS)), SUBMISSIONS)
    for partition in range(PARTITIONS)
]
HOME = {kind: INPUT_TOPICS.index(t) for t in INPUT_TOPICS for kind in TOPICS[t].holds}


class InputTopics:
    """What clients and members wrote."""

    def __init__(self) -> None:
        self.records: dict[Place, list[Input | Unreadable]] = {place: [] for place in URGENCY}
        self.start: dict[Place, int] = {}

    def send(self, word: Input) -> Source:
        place = Place(HOME[type(word)], crc32(input_key(word).encode()) % PARTITIONS)
        return self.put(place, word)

    def put(self, place: Place, body: Input | Unreadable) -> Source:
        self.records[place].append(body)
        return Source(*place, len(self.records[place]) - 1)


class SimulatedInputs:
    """`Inputs` for one term of one host."""

    def __init__(self, host: Host, topics: InputTopics) -> None:
        self._host, self._topics = host, topics
        self._positions: dict[Place, int] | None = None

    def assign(self, positions: Mapping[Place, int]) -> None:
        self._positions = {place: positions.get(place, 0) for place in URGENCY}

    def take(self, submissions_max: int, wait_ms: int) -> Sequence[Taken]:
        self._host.point()
        assert self._positions is not None, "Expected positions before records"
        if self._host.is_cut:
            return ()
        taken: list[Taken] = []
        for place in URGENCY:
            taken += self._from(place, submissions_max if place.topic == SUBMISSIONS else 50)
        over = sum(one.source.topic == SUBMISSIONS for one in taken) - submissions_max
        for one in taken[len(taken) - max(0, over) :]:
            self._positions[Place(one.source.topic, one.source.partition)] -= 1
        return taken[: len(taken) - max(0, over)]

    def _from(self, place: Place, limit: int) -> list[Taken]:
        assert self._positions is not None, "Expected positions before records"
        first = self._positions[place]
        if first < self._topics.start.get(place, 0):
            raise InputTrimmed(f"Expected {first} of {place}, but it is gone")
        if self._host.random.random() < self._host.faults.reader_lag:
            limit = min(limit, self._host.random.randint(0, 2))
        found = self._topics.records[place][first : first + limit]
        self._positions[place] = first + len(found)
        return [Taken(Source(*place, first + n), body) for n, body in enumerate(found)]

    def ends(self) -> Mapping[Place, int] | None:
        if self._host.is_cut:
            return None
        return {place: len(records) for place, records in self._topics.records.items()}

    def readable(self) -> bool:
        return not self._host.is_cut

    def close(self) -> None:
        pass
