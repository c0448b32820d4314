"""What the loop assumes about inputs."""

from collections.abc import Sequence
from typing import Any, Protocol

from schemas import inputs as i
from schemas.ids import OperationId, TenantId
from schemas.topics import INPUT_TOPICS, Topic
from streams.core.outcomes import Taken
from streams.shell.inputs import Inputs, Place
from tests.support.asked import heartbeat, result, start, submission

OPERATION = OperationId(bytes(16))


class World(Protocol):
    """Input topics that nobody else writes, and a port to them that is not assigned yet."""

    inputs: Inputs

    def send(self, topic: Topic, *words: Any) -> Sequence[tuple[int, int]]:
        """Append under the words' own keys; where each landed."""
        ...


def take(inputs: Inputs, count: int, cap: int = 16) -> list[Taken]:
    taken: list[Taken] = []
    for _ in range(200):
        taken += inputs.take(cap, 50)
        if len(taken) >= count:
            return taken
    raise AssertionError(f"Expected {count} inputs, but got {len(taken)}")


class InputsContract:
    """Subclasses give the fixture `world`."""

    def test_ends_are_known_before_anything_is_assigned(self, world: World) -> None:
        ends = world.inputs.ends()
        assert ends is not None
        assert {place.topic for place in ends} == set(range(len(INPUT_TOPICS)))
        assert set(ends.values()) == {0}
        ((partition, offset),) = world.send(Topic.STARTS, start("t1"))
        ends = world.inputs.ends()
        assert ends is not None
        assert ends[Place(INPUT_TOPICS.index(Topic.STARTS), partition)] == offset + 1

    def test_the_urgent_come_first_and_submissions_last(self, world: World) -> None:
        cancel = i.CancellationRequested(tenant=TenantId("t1"), operation=OPERATION)
        propose = i.ConfigProposed(scope="tenant", name="t1", author="a", reason="r")
        world.send(Topic.SUBMISSIONS, submission("t1", 1))
        world.send(Topic.CONTROL, propose)
        world.send(Topic.MEMBERS, heartbeat("m1"))
        world.send(Topic.CANCELLATIONS, cancel)
        world.send(Topic.RESULTS, result("t1"))
        world.send(Topic.STARTS, start("t1"))
        world.inputs.assign({})
        seen = set()
        for _ in range(200):
            kinds = [INPUT_TOPICS[t.source.topic] for t in world.inputs.take(16, 50)]
            seen |= set(kinds)
            assert Topic.SUBMISSIONS not in kinds[:-1]
            if len(seen) == len(INPUT_TOPICS):
                return
        raise AssertionError(f"Expected inputs of every topic, but got {seen}")

    def test_a_partition_keeps_its_order_and_each_record_comes_once(self, world: World) -> None:
        words = [submission(f"t{n % 7}", n) for n in range(200)]
        landed = world.send(Topic.SUBMISSIONS, *words)
        world.inputs.assign({})
        taken = take(world.inputs, 200)
        places = [(t.source.partition, t.source.offset) for t in taken]
        assert sorted(places) == sorted(landed)
        for partition in {p for p, _ in places}:
            offsets = [offset for p, offset in places if p == partition]
            assert offsets == sorted(offsets)
        bodies = {(t.source.partition, t.source.offset): t.body for t in taken}
        assert [bodies[place] for place in landed] == words
        assert list(world.inputs.take(16, 20)) == []

    def test_submissions_are_capped(self, world: World) -> None:
        world.send(Topic.SUBMISSIONS, *(submission(f"t{n % 5}", n) for n in range(50)))
        world.inputs.assign({})
        taken = 0
        while taken < 50:
            some = world.inputs.take(4, 50)
            assert len(some) <= 4
            taken += len(some)

    def test_a_cap_of_zero_leaves_submissions_and_takes_the_rest(self, world: World) -> None:
        world.send(Topic.SUBMISSIONS, submission("t1", 1))
        world.send(Topic.STARTS, start("t1"))
        world.inputs.assign({})
        (only,) = take(world.inputs, 1, cap=0)
        assert isinstance(only.body, i.StartRequested)
        (left,) = take(world.inputs, 1)
        assert isinstance(left.body, i.OperationSubmitted)

    def test_reading_begins_where_it_was_assigned(self, world: World) -> None:
        landed = world.send(Topic.STARTS, *(start("t1", n) for n in range(5)))
        place = Place(INPUT_TOPICS.index(Topic.STARTS), landed[0][0])
        world.inputs.assign({place: landed[3][1]})
        assert [t.source.offset for t in take(world.inputs, 2)] == [landed[3][1], landed[4][1]]

    def test_what_arrives_while_waiting_is_taken(self, world: World) -> None:
        world.inputs.assign({})
        assert list(world.inputs.take(16, 10)) == []
        for topic, word in ((Topic.SUBMISSIONS, submission("t1", 1)), (Topic.STARTS, start("t1"))):
            world.send(topic, word)
            (taken,) = take(world.inputs, 1)
            assert taken.body == word

    def test_a_healthy_port_is_readable(self, world: World) -> None:
        world.inputs.assign({})
        for _ in range(200):
            if world.inputs.readable():
                return
            world.inputs.take(16, 10)
        raise AssertionError("Expected inputs to be readable")
