"""What is asked of the cluster and told to it: topics with their ids and settings, and offsets."""

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from contextlib import suppress
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined] # re-exported, not listed
    AdminClient,
    ConfigResource,
    NewTopic,
    OffsetSpec,
)

from schemas.ids import CellId
from schemas.topics import PARTITIONS, TOPICS, Topic, full_name
from streams.shell.kafka import config

MIN_IN_SYNC_MAX = 2
"""Of three copies two must be written: one broker may be lost, and appends go on."""

_RETRY_S = 0.05
_GRACE_S = 0.25
"""Futures are set by a thread of the client, a little after its own time-out."""

Place = tuple[str, int]

# Both are made by untyped class methods.
_EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]


class ClusterSilent(Exception):
    """The cluster did not answer or refused. Nothing is known; the operator tries again."""


class TopicsDiffer(Exception):
    """A topic exists and is not as declared. Nothing starts on it: its promises would not hold."""


class Described(NamedTuple):
    """A topic as the cluster knows it."""

    id: str
    partitions: int


class KafkaAdmin:
    """Questions to one cluster; safe to share between the ports of a process."""

    def __init__(self, bootstrap: str) -> None:
        # Kept for as long as the process: a client that is thrown away never resolves its futures.
        self._client = AdminClient(config.client(bootstrap))

    def describe(
        self, names: Iterable[str], wait_s: float = config.ASK_TIMEOUT_S
    ) -> dict[str, Described] | None:
        """Those of the topics that exist; None if the cluster did not answer in time."""
        asked = self._client.describe_topics(TopicCollection(list(names)), request_timeout=wait_s)
        found = {}
        for name, future in asked.items():
            try:
                topic = future.result(wait_s + _GRACE_S)
            except (KafkaException, NotInTime) as error:
                if not _is(error, KafkaError.UNKNOWN_TOPIC_OR_PART):
                    _look_anew(self._client)
                    return None
            else:
                found[name] = Described(str(topic.topic_id), len(topic.partitions))
        return found

    def starts(self, places: Iterable[Place]) -> dict[Place, int] | None:
        """The first offset still there, of every place; None if one did not answer in time."""
        return self._offsets(places, _EARLIEST)

    def ends(self, places: Iterable[Place]) -> dict[Place, int] | None:
        """The offset after the last record, of every place; None if one did not answer in time.

        Asked over a connection of its own: on a consumer's the question would wait behind a fetch.
        """
        return self._offsets(places, _LATEST)

    def send_ends(self, places: Iterable[Place]) -> "Asked":
        """As `ends`, without waiting for the answers."""
        return self._ask(places, _LATEST)

    def settings(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        """All settings of the topics in force.

        Raises:
            ClusterSilent: no answer.
        """
        resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in names]
        asked = self._client.describe_configs(resources, request_timeout=config.APPLY_TIMEOUT_S)
        return {
            resource.name: {name: entry.value for name, entry in _answer(future).items()}
            for resource, future in asked.items()
        }

    def create(self, topics: list[NewTopic]) -> None:
        """Create the topics and wait until they can be used; one that exists is left alone.

        Raises:
            ClusterSilent: no answer, or the cluster refused.
        """
        if not topics:
            return
        asked = self._client.create_topics(topics, operation_timeout=config.APPLY_TIMEOUT_S)
        for future in asked.values():
            try:
                _answer(future)
            except ClusterSilent as error:
                if not _is(error.__cause__, KafkaError.TOPIC_ALREADY_EXISTS):
                    raise
        self._wait_for_leaders([(t.topic, n) for t in topics for n in range(t.num_partitions)])

    def _wait_for_leaders(self, places: list[Place]) -> None:
        ends_at = time.monotonic() + config.APPLY_TIMEOUT_S
        while self.ends(places) is None:
            if time.monotonic() >= ends_at:
                raise ClusterSilent("Expected leaders for the new topics, but they have none yet")
            time.sleep(_RETRY_S)

    def _offsets(self, places: Iterable[Place], which: OffsetSpec) -> dict[Place, int] | None:
        return self._ask(places, which).answers(config.ASK_TIMEOUT_S + _GRACE_S)

    def _ask(self, places: Iterable[Place], which: OffsetSpec) -> "Asked":
        wanted = {TopicPartition(*place): which for place in places}
        return Asked(
            self._client,
            self._client.list_offsets(wanted, request_timeout=config.ASK_TIMEOUT_S),
        )


class Asked:
    """Offsets that were asked for, answered in a while or never."""

    def __init__(
        self, client: AdminClient, futures: Mapping[TopicPartition, "Future[Any]"]
    ) -> None:
        self._client = client
        self._futures = futures

    def is_done(self) -> bool:
        """Whether every answer, or its failure, is there."""
        return all(future.done() for future in self._futures.values())

    def answers(self, wait_s: float) -> dict[Place, int] | None:
        """All offsets, waiting up to `wait_s` for each; None if one is missing."""
        found: dict[Place, int] = {}
        for place, future in self._futures.items():
            try:
                offset = future.result(wait_s).offset
            except (KafkaException, NotInTime):
                offset = None
            if offset is None or offset < 0:  # below zero while a leader is elected
                _look_anew(self._client)
                return None
            found[place.topic, place.partition] = offset
        return found


def _look_anew(client: AdminClient) -> None:
    """Who leads what, and who is the controller: else the client asks a dead broker for ever.

    By itself it looks again only for topics that it produces to or consumes, which are none here.
    """
    with suppress(KafkaException):
        client.list_topics(timeout=config.ASK_TIMEOUT_S)


def _is(error: BaseException | None, code: int) -> bool:
    return isinstance(error, KafkaException) and error.args[0].code() == code


class CellTopics:
    """The topics of one cell: created once, checked at every start."""

    def __init__(self, admin: KafkaAdmin, prefix: str, cell: CellId) -> None:
        self._admin = admin
        self.names = {topic: full_name(prefix, cell, topic) for topic in Topic}

    def ids(self) -> dict[str, str] | None:
        """Ids of those topics that exist, by full name; None if the cluster did not answer."""
        found = self._admin.describe(self.names.values())
        return None if found is None else {name: topic.id for name, topic in found.items()}

    def found(self) -> dict[Topic, Described]:
        """Those of the topics that exist.

        Raises:
            ClusterSilent: no answer.
        """
        found = self._admin.describe(self.names.values(), config.APPLY_TIMEOUT_S)
        if found is None:
            raise ClusterSilent("Expected the cluster to describe topics, but it did not answer")
        return {topic: found[name] for topic, name in self.names.items() if name in found}

    def was_written(self, topic: Topic, partitions: int) -> bool:
        """Whether a topic that exists has ever had a record.

        Raises:
            ClusterSilent: no answer.
        """
        ends = self._admin.ends((self.names[topic], number) for number in range(partitions))
        if ends is None:
            raise ClusterSilent(f"Expected the ends of {self.names[topic]}, but nobody answered")
        return any(ends.values())

    def create(self, partitions: int = PARTITIONS, replication: int = 1) -> None:
        """Create what is missing, as declared; what exists is left alone.

        Args:
            partitions: of every topic but journal and pulse; fixed for ever (R150).
            replication: copies of every partition; three in production.
        """
        found = self.found()
        missing = [topic for topic in self.names if topic not in found]
        self._admin.create([self._declared(topic, partitions, replication) for topic in missing])

    def check(self) -> dict[Topic, Described] | None:
        """All topics of the cell, exactly as declared; None if one is not there yet.

        Raises:
            ClusterSilent: no answer.
            TopicsDiffer: the message names every difference.
        """
        found = self.found()
        if len(found) < len(self.names):
            return None
        settings = self._admin.settings(self.names.values())
        differences = [
            difference
            for topic, name in self.names.items()
            for difference in _differences(topic, name, found[topic], settings[name])
        ]
        if differences:
            raise TopicsDiffer("; ".join(differences))
        return found

    def _declared(self, topic: Topic, partitions: int, replication: int) -> NewTopic:
        spec = TOPICS[topic]
        in_sync = min(MIN_IN_SYNC_MAX, max(1, replication - 1))
        return NewTopic(
            self.names[topic],
            num_partitions=1 if spec.single_partition else partitions,
            replication_factor=replication,
            config={**spec.all_settings, "min.insync.replicas": str(in_sync)},
        )


def _differences(
    topic: Topic, name: str, found: Described, settings: Mapping[str, str]
) -> Iterable[str]:
    spec = TOPICS[topic]
    if spec.single_partition and found.partitions != 1:
        yield f"{name}: expected one partition, but it has {found.partitions}"
    for setting, declared in spec.all_settings.items():
        # How long inputs are kept is the operator's choice; what is kept for ever is not.
        ours_to_say = setting != "retention.ms" or declared == "-1"
        if ours_to_say and settings.get(setting) != declared:
            yield f"{name}: expected {setting}={declared}, but it is {settings.get(setting)}"


def _answer(future: "Future[Any]") -> Any:
    try:
        return future.result(config.APPLY_TIMEOUT_S)
    except (KafkaException, NotInTime) as error:
        raise ClusterSilent(f"Expected an answer of the cluster, but {error}") from error
