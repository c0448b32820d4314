"""The ports on a real broker, and what the engine and its simulation assume about Kafka."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer, murmur2

from schemas.codec import encode
from schemas.codes import Code
from schemas.topics import INPUT_TOPICS, Topic
from streams.core.outcomes import Source, Unreadable
from streams.shell.inputs import InputTrimmed, Place
from streams.shell.journal import Journal, JournalTrimmed
from streams.shell.kafka import config
from streams.shell.kafka import inputs as kafka_inputs
from streams.shell.kafka.admin import CellTopics, KafkaAdmin
from streams.shell.kafka.inputs import URGENCY, KafkaInputs
from streams.shell.kafka.journal import KafkaJournal, KafkaPulses
from tests.contract.inputs_contract import InputsContract, take
from tests.contract.journal_contract import JournalContract, Pass, append, read
from tests.support.asked import heartbeat, result, start, submission
from tests.support.kafka import DEADLINE_S, PARTITIONS, Log, until

APPEND_TIMEOUT_MS = 5_000
ROUNDS = 20


@pytest.fixture
def pass_time() -> Pass:
    return lambda: None


class TestKafkaJournal(JournalContract):
    @pytest.fixture
    def journal(self, log: Log, admin: KafkaAdmin) -> Journal:
        name = log.name(Topic.JOURNAL)
        log.create(
            name,
            {"message.timestamp.type": "LogAppendTime", "max.message.bytes": str(8 * 1024**2)},
        )
        return KafkaJournal(log.bootstrap, admin, name, APPEND_TIMEOUT_MS)

    def test_a_consumed_record_knows_its_leader_epoch(
        self, journal: Journal, pass_time: Pass
    ) -> None:
        writer = journal.writer()
        append(writer, b"x", pass_time)
        assert read(journal.reader(0), 1)[0].leader_epoch is not None
        writer.close()

    def test_a_strangers_transaction_leaves_holes_and_stops_nobody(
        self, journal: Journal, log: Log, pass_time: Pass
    ) -> None:
        writer = journal.writer()
        append(writer, b"ours", pass_time)
        stranger = Producer({"bootstrap.servers": log.bootstrap, "transactional.id": log.prefix})
        stranger.init_transactions(DEADLINE_S)
        stranger.begin_transaction()
        stranger.produce(log.name(Topic.JOURNAL), b"theirs")
        stranger.flush(DEADLINE_S)
        stranger.abort_transaction(DEADLINE_S)
        stranger.begin_transaction()
        stranger.produce(log.name(Topic.JOURNAL), b"theirs")
        stranger.flush(DEADLINE_S)
        reader = journal.reader(0)
        values = [record.value for record in read(reader, 3)]
        assert values == [b"ours", b"theirs", b"theirs"]  # nothing waits for an open transaction
        stranger.abort_transaction(DEADLINE_S)
        # The marker behind the last record is no record: whoever read all stands at the end.
        last = read(journal.reader(0), 3)[-1].offset
        until(lambda: not reader.read(10, 50) and journal.end() == last + 1, "the end of records")
        assert append(writer, b"ours again", pass_time).offset == last + 2
        writer.close()

    def test_a_trimmed_journal_stops_its_reader(
        self, journal: Journal, log: Log, pass_time: Pass
    ) -> None:
        writer = journal.writer()
        for _ in range(4):
            append(writer, b"x", pass_time)
        log.trim(Topic.JOURNAL, 0, 2)
        assert journal.start() == 2
        with pytest.raises(JournalTrimmed):
            read(journal.reader(0), 1)
        assert read(journal.reader(2), 2)[0].offset == 2
        writer.close()

    def test_a_recreated_journal_has_another_id_and_no_answer_is_no_id(
        self, journal: Journal, log: Log
    ) -> None:
        before = journal.topic_id()
        log.delete(log.name(Topic.JOURNAL))
        assert journal.topic_id() is None
        log.create(log.name(Topic.JOURNAL))
        assert journal.topic_id() not in (before, None)

    def test_a_journal_that_nobody_answers_for_is_unknown_not_empty(self) -> None:
        nobody = "127.0.0.1:1"
        journal = KafkaJournal(nobody, KafkaAdmin(nobody), "journal", APPEND_TIMEOUT_MS)
        assert (journal.topic_id(), journal.start(), journal.end()) == (None, None, None)
        journal.writer().close()


class TestKafkaPulses:
    @pytest.fixture
    def pulses(self, log: Log, admin: KafkaAdmin) -> Iterator[KafkaPulses]:
        log.create(log.name(Topic.PULSE), {"message.timestamp.type": "LogAppendTime"})
        pulses = KafkaPulses(log.bootstrap, admin, log.name(Topic.PULSE))
        yield pulses
        pulses.close()

    def test_reading_begins_at_the_end_and_goes_on_from_there(
        self, pulses: KafkaPulses, log: Log
    ) -> None:
        log.producer.produce(log.name(Topic.PULSE), b"old", partition=0)
        log.producer.flush(DEADLINE_S)
        assert list(pulses.read(0)) == []
        assert pulses.caught_up()
        pulses.send(b"new")
        until(lambda: pulses.caught_up() is False, "a pulse to be there")
        assert [record.value for record in pulses.read(5_000)] == [b"new"]
        assert pulses.caught_up()

    def test_before_the_first_reading_nothing_is_known(self, pulses: KafkaPulses) -> None:
        assert pulses.caught_up() is None


class InputsWorld:
    def __init__(self, log: Log, admin: KafkaAdmin) -> None:
        names = {topic: log.name(topic) for topic in INPUT_TOPICS}
        self.log = log
        self.send = log.send
        self.inputs = KafkaInputs(log.bootstrap, admin, names, dict.fromkeys(names, PARTITIONS))


class TestKafkaInputs(InputsContract):
    @pytest.fixture
    def world(self, log: Log, admin: KafkaAdmin, topics: CellTopics) -> Iterator[InputsWorld]:
        world = InputsWorld(log, admin)
        yield world
        world.inputs.close()

    def test_one_take_follows_the_order_of_urgency(self, world: InputsWorld) -> None:
        for n in range(100):
            world.send(Topic.MEMBERS, heartbeat(f"m{n}"))
            world.send(Topic.RESULTS, result(f"t{n}"))
            world.send(Topic.STARTS, start(f"t{n}"))
        rank = {topic: n for n, topic in enumerate(URGENCY)}
        for _ in range(ROUNDS):  # what one fetch brings is the broker's affair
            world.inputs.assign({})
            mixed, seen = False, 0
            while seen < 300:
                ranks = [rank[INPUT_TOPICS[t.source.topic]] for t in world.inputs.take(16, 50)]
                assert ranks == sorted(ranks)
                mixed |= len(set(ranks)) > 1
                seen += len(ranks)
            if mixed:
                return
        pytest.fail("Expected a take of several topics")

    def test_a_burst_on_one_partition_does_not_stand_before_the_others(
        self, world: InputsWorld, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(kafka_inputs, "LINE_MAX", 40)
        monkeypatch.setattr(kafka_inputs, "LINE_LOW", 10)
        burst = world.send(Topic.SUBMISSIONS, *(submission("elephant", n) for n in range(3_000)))
        home = burst[0][0]
        mouse = next(f"t{n}" for n in range(99) if murmur2(b"t%d" % n, PARTITIONS) != home)
        world.inputs.assign({})
        places = [t.source for t in take(world.inputs, 100)]
        ((partition, offset),) = world.send(Topic.SUBMISSIONS, submission(mouse, 1))
        before = 0
        while (partition, offset) not in {(s.partition, s.offset) for s in places}:
            more = [t.source for t in world.inputs.take(16, 50)]
            places += more
            before += len(more)
        assert before < 1_500, "Expected the newcomer long before the end of the burst"
        places += [t.source for t in take(world.inputs, 3_001 - len(places))]
        elephants = [s.offset for s in places if s.partition == home]
        assert elephants == list(range(3_000)), "Expected each once and in order, over all pauses"

    def test_one_take_is_bounded_in_bytes_and_what_is_left_comes_with_the_next(
        self, world: InputsWorld, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        large = "x" * 10_000
        size = len(encode(start(large)))
        monkeypatch.setattr(config, "TAKE_BYTES_MAX", 2 * size)
        count = 15
        for n in range(count):
            world.send(Topic.STARTS, start(f"{large}{n}"))
            world.send(Topic.MEMBERS, heartbeat(f"{large}{n}"))
            world.send(Topic.SUBMISSIONS, submission(f"{large}{n}", 1))
        world.inputs.assign({})
        places: list[Source] = []
        while len(places) < 3 * count:
            sources = [t.source for t in world.inputs.take(16, 50)]
            kinds = [source.topic == INPUT_TOPICS.index(Topic.SUBMISSIONS) for source in sources]
            assert kinds == sorted(kinds)
            assert kinds.count(False) <= 3
            assert kinds.count(True) <= 3
            places += sources
        assert len(set(places)) == 3 * count
        for topic in {(source.topic, source.partition) for source in places}:
            offsets = [s.offset for s in places if (s.topic, s.partition) == topic]
            assert offsets == list(range(len(offsets)))

    @pytest.mark.parametrize("gone", [Topic.STARTS, Topic.SUBMISSIONS])
    def test_a_wanted_offset_that_is_gone_stops_the_reader(
        self, world: InputsWorld, gone: Topic
    ) -> None:
        word = submission("t1", 1) if gone == Topic.SUBMISSIONS else start("t1")
        landed = world.send(gone, *[word] * 3)
        world.log.trim(gone, landed[0][0], 2)
        world.inputs.assign({})
        with pytest.raises(InputTrimmed):
            take(world.inputs, 1)

    def test_what_cannot_be_read_comes_with_its_reason_and_blocks_nothing(
        self, world: InputsWorld
    ) -> None:
        send, good = world.send, start("t1")
        home = murmur2(b"t1", PARTITIONS)
        wrong = (home + 1) % PARTITIONS
        truncated = encode(submission("t1", 1))[:-1]
        expected = {
            send(Topic.STARTS, key="t1", raw=b"\xc3\x01unknown!")[0]: Code.UNKNOWN_SCHEMA,
            send(Topic.STARTS, key="t1", raw=b"text")[0]: Code.UNKNOWN_SCHEMA,
            send(Topic.STARTS, key="t1", raw=truncated)[0]: Code.MALFORMED,
            send(Topic.STARTS, key="t1", raw=b"")[0]: Code.MALFORMED,
            send(Topic.STARTS, key="t1", raw=None)[0]: Code.MALFORMED,
            send(Topic.STARTS, submission("t1", 1))[0]: Code.WRONG_TOPIC,
            send(Topic.STARTS, good, partition=wrong)[0]: Code.WRONG_PARTITION,
            send(Topic.STARTS, good, key="", partition=0)[0]: Code.EMPTY_KEY,
            send(Topic.STARTS, good, key="t2")[0]: Code.KEY_MISMATCH,
        }
        last = send(Topic.STARTS, good)[0]
        world.inputs.assign({})
        found = {
            (t.source.partition, t.source.offset): t.body
            for t in take(world.inputs, len(expected) + 1)
        }
        assert found.pop(last) == good
        codes = {at: body.code for at, body in found.items() if isinstance(body, Unreadable)}
        assert codes == expected

    def test_an_input_topic_that_is_missing_has_no_ends(self, world: InputsWorld, log: Log) -> None:
        log.delete(log.name(Topic.CONTROL))
        assert world.inputs.ends() is None

    def test_positions_are_next_offsets(self, world: InputsWorld) -> None:
        landed = world.send(Topic.RESULTS, *(result("t1", n) for n in range(3)))
        place = Place(INPUT_TOPICS.index(Topic.RESULTS), landed[0][0])
        ends = world.inputs.ends()
        assert ends is not None
        world.inputs.assign(ends)
        assert list(world.inputs.take(16, 100)) == []
        assert ends[place] == 3
