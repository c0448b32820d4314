"""Kafka without anything of ours: the clients that floors and minimal members are made of."""

from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

WAIT_S = 10.0
"""On loopback an answer takes milliseconds; without one after this the benchmark is broken."""

QUIET = 2
"""The client tells of critical conditions only: brokers that end after us are none."""


def producer(bootstrap: str, **settings: Any) -> Producer:
    """Idempotent, every copy acknowledged, nothing lingers; primed."""
    made = Producer(
        {
            "bootstrap.servers": bootstrap,
            "log_level": QUIET,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 0,
            "socket.nagle.disable": True,
            "partitioner": "murmur2_random",
            "queue.buffering.max.messages": 1_000_000,
            **settings,
        }
    )
    made.list_topics(timeout=WAIT_S)
    return made


def consumer(bootstrap: str, topic: str, partitions: Iterable[int] = (0,)) -> Consumer:
    """Assigned to the ends of these partitions as they are now."""
    made = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "log_level": QUIET,
            "group.id": "bench",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "fetch.queue.backoff.ms": 1,
            "socket.nagle.disable": True,
        }
    )
    places = [TopicPartition(topic, partition) for partition in partitions]
    for place in places:
        place.offset = made.get_watermark_offsets(place, timeout=WAIT_S)[1]
    made.assign(places)
    made.poll(0.2)  # the first fetch is on its way before anything is timed
    return made


def create(bootstrap: str, *topics: str) -> None:
    """Topics of one partition."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(topic, 1, 1) for topic in topics]).values():
        future.result(WAIT_S)
