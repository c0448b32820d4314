"""One broker of three is lost under load: the one that leads the journal (R154)."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand.dev.java import find_jars, find_java
from schemas.topics import Topic
from streams.shell.kafka.admin import KafkaAdmin
from streams.shell.settings import Settings
from tests.support.cluster import Cluster
from tests.support.kafka import DEADLINE_S, PARTITIONS, Log, until
from tests.support.rig import Rig, Worker

RECOVERY_S = 45.0
"""Four seconds until the dead leader is noticed; the rest is for a machine with other work."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    java, jars = find_java(), find_jars()
    if "EVENHAND_BOOTSTRAP" in os.environ or java is None or jars is None:
        pytest.skip("needs three brokers of its own on Java 17 or newer, with Kafka's jars at hand")
    cluster = Cluster(java, jars, tmp_path / "cluster")
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def bootstrap(cluster: Cluster) -> str:
    return cluster.bootstrap


@pytest.fixture
def settings(log: Log, tmp_path: Path) -> Settings:
    return Settings(
        bootstrap=log.bootstrap,
        prefix=log.prefix,
        data_dir=tmp_path,
        partitions=PARTITIONS,
        replication=3,
    )


def leader(log: Log) -> int:
    name = log.name(Topic.JOURNAL)
    return int(log.admin.list_topics(name, timeout=DEADLINE_S).topics[name].partitions[0].leader)


def test_losing_the_leader_of_the_journal_loses_no_accepted_entry_and_doubles_no_decision(
    rig: Rig, cluster: Cluster, admin: KafkaAdmin
) -> None:
    name = rig.log.name(Topic.JOURNAL)
    told = admin.settings([name])[name]
    assert (told["min.insync.replicas"], told["unclean.leader.election.enable"]) == ("2", "false")
    rig.scheduler("a")
    rig.configure()
    rig.until_role(rig.scheduler("b"), "standby")
    worker = Worker(rig.log)
    rig.submit(40)
    rig.until_settled(5, worker)
    accepted, lost = rig.entries(), leader(rig.log)
    rig.submit(20, first=40)
    cluster.kill(lost)
    rig.until_settled(60, worker, timeout_s=RECOVERY_S)
    assert until(lambda: leader(rig.log), "a leader") != lost
    assert rig.entries()[: len(accepted)] == accepted
    assert len(worker.calls) == len(set(worker.calls)) == 60
    assert rig.judged().reservations["settled"] == 60
