"""What the loop assumes about the outbox."""

from collections.abc import Sequence
from typing import Protocol

import pytest

from schemas.ids import CellId
from schemas.journal import Position
from schemas.topics import Topic
from streams.shell.outbox import Outbox, Outgoing

WAIT_MS = 10
ROUNDS = 500


class World(Protocol):
    """Output topics that nobody else writes, and a fresh port to them."""

    outbox: Outbox

    def pass_time(self) -> None:
        """Let time pass where it does not by itself."""
        ...

    def read(self, topic: Topic) -> Sequence[tuple[int, str, bytes]]:
        """Partition, key and value of every record, each partition in its order."""
        ...


def outgoing(topic: Topic, key: str, offset: int, index: int = 0) -> Outgoing:
    position = str(Position(CellId("main"), 1, offset, index))
    return Outgoing(topic, key, position.encode(), [("position", position)])


def wait_for(world: World, offset: int) -> None:
    outbox = world.outbox
    outbox.send_rest()
    for _ in range(ROUNDS):
        if outbox.published(WAIT_MS) >= offset:
            return
        world.pass_time()
    pytest.fail(f"Expected {offset} to be out, but {outbox.published(0)} is, lag {outbox.lag()}")


class OutboxContract:
    """Subclasses give the fixture `world`."""

    def test_nothing_is_out_before_anything_was_handed_over(self, world: World) -> None:
        assert world.outbox.published(0) == -1
        assert world.outbox.lag() == (0, 0)

    def test_what_is_published_can_be_read(self, world: World) -> None:
        world.outbox.publish(
            4, [outgoing(Topic.DELIVERIES, "m1", 4, 0), outgoing(Topic.GRANTS, "t1", 4, 1)]
        )
        wait_for(world, 4)
        assert world.outbox.lag() == (0, 0)
        ((_, member, delivery),) = world.read(Topic.DELIVERIES)
        ((_, tenant, grant),) = world.read(Topic.GRANTS)
        assert (member, delivery) == ("m1", b"main:1:4:0")
        assert (tenant, grant) == ("t1", b"main:1:4:1")

    def test_deliveries_do_not_wait_for_the_rest(self, world: World) -> None:
        rest = outgoing(Topic.GRANTS, "t1", 0, 1)
        world.outbox.publish(0, [rest, outgoing(Topic.DELIVERIES, "m1", 0, 0)])
        for _ in range(ROUNDS):
            assert world.outbox.published(WAIT_MS) == -1
            if world.read(Topic.DELIVERIES):
                break
            world.pass_time()
        assert [len(world.read(topic)) for topic in (Topic.DELIVERIES, Topic.GRANTS)] == [1, 0]
        wait_for(world, 0)
        assert len(world.read(Topic.GRANTS)) == 1

    def test_each_partition_has_the_journals_order(self, world: World) -> None:
        for n in range(100):
            decisions = [outgoing(Topic.DECISIONS, f"t{n % 5}", n, k) for k in range(3)]
            world.outbox.publish(n, [*decisions, outgoing(Topic.DELIVERIES, f"m{n % 3}", n, 3)])
        wait_for(world, 99)
        for topic, count in ((Topic.DECISIONS, 300), (Topic.DELIVERIES, 100)):
            records = world.read(topic)
            assert len(records) == count
            for partition in {p for p, _, _ in records}:
                positions = [Position.parse(v.decode()) for p, _, v in records if p == partition]
                assert positions == sorted(positions)

    def test_an_entry_without_outputs_is_out_when_those_before_it_are(self, world: World) -> None:
        world.outbox.publish(1, [])
        wait_for(world, 1)
        world.outbox.publish(2, [outgoing(Topic.CAPACITY, "c", 2)])
        world.outbox.publish(3, [])
        wait_for(world, 3)
        assert len(world.read(Topic.CAPACITY)) == 1

    def test_published_never_passes_what_is_out(self, world: World) -> None:
        for n in range(50):
            world.outbox.publish(n, [outgoing(Topic.SETTLEMENTS, "t1", n)])
            out = world.outbox.published(0)
            entries, size = world.outbox.lag()
            assert out + entries == n
            assert (size > 0) == (entries > 0)
        wait_for(world, 49)
