"""What we assume of a broker, asked of a Kafka in a container: another build, an older release.

An opt-in tier, since the image is half a gigabyte: EVENHAND_TEST_CONTAINERS=1. Without a container
engine it is reported as not run. Where this was written there was none, so that only the reports
of what is missing have been seen; the promises have been seen on the other broker of these tests.
"""

import os
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from testcontainers.community.kafka import KafkaContainer

from evenhand.dev.container import find_engine
from schemas.topics import TOPICS, Topic
from streams.shell.journal import Journal
from streams.shell.kafka import config
from streams.shell.kafka.admin import CellTopics, KafkaAdmin
from streams.shell.kafka.journal import KafkaJournal
from tests.contract.journal_contract import JournalContract, Pass
from tests.support.kafka import DEADLINE_S, PARTITIONS, Log

OPT_IN = "EVENHAND_TEST_CONTAINERS"
IMAGE = "confluentinc/cp-kafka:7.6.0"
"""Kafka 3.6, the release that the launcher of the container is made for."""
START_TIMEOUT_S = 120
APPEND_TIMEOUT_MS = 5_000


@pytest.fixture(scope="module")
def container() -> Iterator[KafkaContainer]:
    """Started once, gone at the end even if this process is killed (the library's reaper)."""
    if find_engine() is None:
        pytest.skip("no container engine: neither docker nor podman answers")
    if not os.environ.get(OPT_IN):
        pytest.skip(f"opt-in: {OPT_IN}=1 starts Kafka in a container")
    container = KafkaContainer(IMAGE).with_kraft()
    container.start(timeout=START_TIMEOUT_S)
    yield container
    container.stop()


@pytest.fixture(scope="module")
def bootstrap(container: KafkaContainer) -> str:
    return container.get_bootstrap_server()


class TestJournal(JournalContract):
    """Dense offsets, append times of the broker, true reports, one order for all readers."""

    @pytest.fixture
    def pass_time(self) -> Pass:
        return lambda: None

    @pytest.fixture
    def journal(self, log: Log, admin: KafkaAdmin, topics: CellTopics) -> Journal:
        return KafkaJournal(log.bootstrap, admin, log.name(Topic.JOURNAL), APPEND_TIMEOUT_MS)


def test_every_topic_has_the_settings_that_were_declared(topics: CellTopics) -> None:
    found = topics.check()
    assert found is not None
    shapes = {topic: described.partitions for topic, described in found.items()}
    assert shapes == {
        topic: 1 if spec.single_partition else PARTITIONS for topic, spec in TOPICS.items()
    }


def test_an_idempotent_producer_with_many_in_flight_keeps_order_and_doubles_nothing(
    log: Log, topics: CellTopics
) -> None:
    name = log.name(Topic.DECISIONS)
    producer = Producer(config.public(log.bootstrap))
    for number in range(5_000):
        producer.produce(name, b"%d" % number, partition=0)
        producer.poll(0)
    assert producer.flush(DEADLINE_S) == 0
    assert [got.value for got in log.read(Topic.DECISIONS)] == [b"%d" % n for n in range(5_000)]
