"""The broker that development, the demo and every other integration test stand on."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import psutil
import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from evenhand.dev.broker import Broker, NoBroker, NotOurs
from evenhand.dev.java import PortTaken, find_jars, find_java, resolve_jars
from evenhand.dev.node import KAFKA_VERSION, answers
from evenhand.dev.processes import Died

MIB = 1024 * 1024

RESOLVER = """
import shutil
from evenhand.dev.java import resolve_jars
print(resolve_jars(shutil.which("mvn")))
"""

LAUNCHER = """
import time
from evenhand.dev.broker import Broker
with Broker() as broker:
    print(broker.pid, flush=True)
    time.sleep(60)
"""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """One for all tests here; each leaves it answering."""
    shared = Broker()
    if not shared.ours:
        pytest.skip("EVENHAND_BOOTSTRAP is set: its cluster is not ours to stop")
    try:
        shared.start()
    except NoBroker as missing:
        pytest.skip(str(missing))
    yield shared
    shared.stop()


def require_own_java() -> None:
    if "EVENHAND_BOOTSTRAP" in os.environ or find_java() is None:
        pytest.skip("needs a broker of its own on Java 17 or newer")


def port_of(broker: Broker) -> int:
    return int(broker.bootstrap.rpartition(":")[2])


def until(condition: Callable[[], bool]) -> None:
    ends_at = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < ends_at, "Expected a condition within 20 s"
        time.sleep(0.05)


def new_topic(broker: Broker, **config: str) -> str:
    name = f"test-{uuid4().hex}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(name, 1, 1, config=config)])[name].result(20)
    return name


def append(broker: Broker, topic: str, *values: bytes) -> None:
    """Returns when all are acknowledged."""
    reports: list[KafkaError | None] = []
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "acks": "all", "message.max.bytes": 9 * MIB}
    )
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: reports.append(error))
    assert producer.flush(20) == 0
    assert reports == [None] * len(values)


def read(broker: Broker, topic: str, count: int) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "unused", "enable.auto.commit": False}
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        records = consumer.consume(count, 20)
        return [value for record in records if (value := record.value()) is not None]
    finally:
        consumer.close()


def test_a_broker_makes_no_topic_unasked(broker: Broker) -> None:
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "message.timeout.ms": 5000,
            "topic.metadata.propagation.max.ms": 100,
        }
    )
    refused: list[KafkaError | None] = []
    producer.produce("test-typo", b"x", on_delivery=lambda error, _: refused.append(error))
    producer.flush(20)
    assert [error and error.code() for error in refused] == [KafkaError.UNKNOWN_TOPIC_OR_PART]


def test_a_record_of_eight_mebibytes_passes(broker: Broker) -> None:
    topic = new_topic(broker, **{"max.message.bytes": str(8 * MIB + 1024)})
    append(broker, topic, bytes(8 * MIB))
    assert [len(value) for value in read(broker, topic, 1)] == [8 * MIB]


def test_a_broker_listens_on_loopback_only(broker: Broker) -> None:
    listening = psutil.Process(broker.pid).net_connections("inet")
    hosts = {it.laddr.ip for it in listening if it.status == psutil.CONN_LISTEN}
    assert {host.removeprefix("::ffff:") for host in hosts} == {"127.0.0.1"}


def test_a_restart_keeps_address_and_records(broker: Broker) -> None:
    before = broker.bootstrap, broker.pid
    topic = new_topic(broker)
    append(broker, topic, b"one", b"two")
    broker.restart()
    assert broker.bootstrap == before[0]
    assert broker.pid != before[1]
    assert read(broker, topic, 2) == [b"one", b"two"]


def test_a_killed_broker_comes_back_with_all_that_it_acknowledged(broker: Broker) -> None:
    topic = new_topic(broker)
    values = [str(number).encode() for number in range(1000)]
    append(broker, topic, *values)
    broker.kill()
    assert not answers(port_of(broker))
    broker.start()
    assert read(broker, topic, 1000) == values


def test_a_paused_broker_is_silent_and_goes_on(broker: Broker) -> None:
    broker.pause()
    assert not answers(port_of(broker))
    broker.resume()
    until(lambda: answers(port_of(broker)))


def test_a_broker_and_its_data_are_gone_when_its_launcher_gets_sigkill(tmp_path: Path) -> None:
    require_own_java()
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    launcher = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER], stdout=subprocess.PIPE, text=True, env=env
    )
    with launcher:
        assert launcher.stdout is not None
        pid = int(launcher.stdout.readline())
        assert list(tmp_path.glob("evenhand-broker-*")) != []
        launcher.kill()
    assert launcher.returncode == -signal.SIGKILL
    until(lambda: not psutil.pid_exists(pid))
    until(lambda: list(tmp_path.glob("evenhand-broker-*")) == [])


def test_data_in_a_folder_go_on_at_the_same_address(tmp_path: Path) -> None:
    require_own_java()
    with Broker(data=tmp_path / "data") as first:
        address, topic = first.bootstrap, new_topic(first)
        append(first, topic, b"kept")
        with pytest.raises(PortTaken):
            Broker(data=tmp_path / "data").start()
    with Broker(data=tmp_path / "data") as second:
        assert second.bootstrap == address
        assert read(second, topic, 1) == [b"kept"]


def test_a_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    require_own_java()
    settings = tmp_path / "server.properties"
    settings.write_text("process.roles=bystander\nadvertised.listeners=PLAINTEXT://127.0.0.1:1\n")
    with pytest.raises(Died, match=r"(?s)the broker ended with 1.*bystander"):
        Broker(data=tmp_path).start()


def test_temporary_data_go_with_the_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_own_java()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    broker = Broker()
    broker.start()
    assert list(tmp_path.iterdir()) != []
    broker.stop()
    broker.stop()
    assert list(tmp_path.iterdir()) == []


def test_a_cluster_of_somebody_else_is_used_and_never_touched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EVENHAND_BOOTSTRAP", "kafka.example:9092")
    with Broker() as broker:
        assert broker.bootstrap == "kafka.example:9092"
        assert not broker.ours
        for touch in (broker.kill, broker.pause, broker.resume, broker.restart):
            with pytest.raises(NotOurs):
                touch()


@pytest.mark.parametrize("version", [None, "11.0.2"])
def test_where_no_broker_can_be_had_one_sentence_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None
) -> None:
    if version is not None:
        java = tmp_path / "java"
        java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        java.chmod(0o755)
    for name in ("JAVA_HOME", "EVENHAND_BOOTSTRAP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        NoBroker, match=r"^No Kafka [^.\n]*install Java 17[^.\n]*EVENHAND_BOOTSTRAP"
    ):
        Broker().start()


def test_two_processes_that_resolve_at_once_share_one_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("mvn") is None:
        pytest.skip("needs Maven")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    racers = [
        subprocess.Popen([sys.executable, "-c", RESOLVER], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    found = {Path(racer.communicate(timeout=250)[0].strip()) for racer in racers}
    assert found == {tmp_path / "evenhand" / f"kafka-{KAFKA_VERSION}"}
    assert (found.pop() / f"kafka_2.13-{KAFKA_VERSION}.jar").exists()
    assert list(tmp_path.glob("evenhand/*.unfinished")) == []


def test_a_maven_that_fails_leaves_the_cache_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(Died, match="Maven failed with 1"):
        resolve_jars("false")
    assert find_jars() is None
    assert list(tmp_path.glob("evenhand/*.unfinished")) == []
