"""The outbox and the topics themselves on a real broker."""

from collections.abc import Iterator, Sequence

import pytest
from confluent_kafka import murmur2

from schemas.topics import Topic
from streams.shell.kafka.admin import CellTopics, KafkaAdmin, TopicsDiffer
from streams.shell.kafka.outbox import KafkaOutbox
from streams.shell.outbox import Outbox, Outgoing, PublishFailed
from tests.contract.outbox_contract import OutboxContract, outgoing, wait_for
from tests.support.kafka import PARTITIONS, Log


class OutboxWorld:
    def __init__(self, log: Log) -> None:
        self.log = log
        self.outbox: Outbox = KafkaOutbox(log.bootstrap, {t: log.name(t) for t in Topic})

    def pass_time(self) -> None:
        """The broker's own time passes."""

    def read(self, topic: Topic) -> Sequence[tuple[int, str, bytes]]:
        return [(r.partition, r.key or "", r.value or b"") for r in self.log.read(topic)]


class TestKafkaOutbox(OutboxContract):
    @pytest.fixture
    def world(self, log: Log, topics: CellTopics) -> Iterator[OutboxWorld]:
        world = OutboxWorld(log)
        yield world
        world.outbox.close()

    def test_headers_travel_and_partitions_are_javas(self, world: OutboxWorld) -> None:
        world.outbox.publish(0, [outgoing(Topic.GRANTS, f"t{n}", 0, n) for n in range(20)])
        wait_for(world, 0)
        records = world.log.read(Topic.GRANTS)
        assert len(records) == 20
        for record in records:
            assert record.partition == murmur2((record.key or "").encode(), PARTITIONS)
            assert record.headers == {"position": (record.value or b"").decode()}

    @pytest.mark.parametrize("topic", [Topic.GRANTS, Topic.DELIVERIES])
    def test_a_refused_record_ends_the_term(self, world: OutboxWorld, topic: Topic) -> None:
        huge = Outgoing(topic, "k", b"x" * (9 * 1024 * 1024), [])
        with pytest.raises(PublishFailed):
            world.outbox.publish(0, [huge])
            world.outbox.send_rest()

    def test_what_the_broker_refuses_ends_the_term(self, world: OutboxWorld) -> None:
        world.log.configure(Topic.GRANTS, "max.message.bytes", "1000")
        world.outbox.publish(0, [Outgoing(Topic.GRANTS, "k", b"x" * 5_000, [])])
        world.outbox.publish(1, [Outgoing(Topic.GRANTS, "k", b"x", [])])
        with pytest.raises(PublishFailed):
            wait_for(world, 1)
        with pytest.raises(PublishFailed):
            world.outbox.published(0)


class TestCellTopics:
    def test_creating_twice_is_harmless_and_the_result_is_as_declared(
        self, topics: CellTopics
    ) -> None:
        before = topics.ids()
        topics.create(PARTITIONS)
        assert topics.ids() == before
        found = topics.check()
        assert found is not None
        assert {t: d.partitions for t, d in found.items()} == {
            t: 1 if t in (Topic.JOURNAL, Topic.PULSE) else PARTITIONS for t in Topic
        }

    def test_topics_that_are_not_all_there_are_no_cell(self, log: Log, admin: KafkaAdmin) -> None:
        topics = CellTopics(admin, log.prefix, log.cell)
        assert topics.check() is None
        assert topics.ids() == {}

    def test_every_difference_is_named(self, topics: CellTopics, log: Log) -> None:
        log.configure(Topic.JOURNAL, "message.timestamp.type", "CreateTime")
        log.configure(Topic.GRANTS, "max.message.bytes", "1000")
        with pytest.raises(TopicsDiffer) as refused:
            topics.check()
        assert "journal: expected message.timestamp.type=LogAppendTime" in str(refused.value)
        assert "grants: expected max.message.bytes" in str(refused.value)

    def test_how_long_inputs_are_kept_is_the_operators_choice(
        self, topics: CellTopics, log: Log
    ) -> None:
        log.configure(Topic.SUBMISSIONS, "retention.ms", "86400000")
        assert topics.check() is not None
        log.configure(Topic.JOURNAL, "retention.ms", "86400000")
        with pytest.raises(TopicsDiffer):
            topics.check()
