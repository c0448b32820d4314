"""How our Kafka clients are set: each setting beside its reason, else librdkafka's default."""

import logging
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import KafkaError

from schemas.topics import RECORD_BYTES_MAX

ASK_TIMEOUT_S: Final = 0.5
"""A question to the broker inside the loop; one that is not answered by then counts as silence."""

APPLY_TIMEOUT_S: Final = 10.0
"""A question at start-up or from an operator's command, where waiting is no harm."""

HURRIED_PER_TAKE_MAX: Final = 192
REST_PER_TAKE_MAX: Final = 64
"""Enough to share one append among many; few enough that an entry stays far below `pulse_ms`."""

TAKE_BYTES_MAX: Final = 1024 * 1024
"""Of submissions, and of all the rest: a take ends with the record that reaches it. Some events
repeat their input, so that counts alone would let an entry grow beyond a record of the journal."""

# The client's own codes are public and begin with an underscore all the same.
END_OF_LOG: Final = KafkaError._PARTITION_EOF  # noqa: SLF001
OFFSET_GONE: Final = KafkaError._AUTO_OFFSET_RESET  # noqa: SLF001

_LOG = logging.getLogger("librdkafka")

Config = dict[str, Any]

_CLIENT: Mapping[str, Any] = {
    "client.id": "evenhand-scheduler",
    "logger": _LOG,
    # A small request must not wait for the next one.
    "socket.nagle.disable": True,
    # The default grows to 10 s, which would outlast any restart of a broker.
    "reconnect.backoff.ms": 100,
    "reconnect.backoff.max.ms": 500,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 500,
    # Nobody collects client metrics of ours through the broker.
    "enable.metrics.push": False,
}

_PRODUCER: Mapping[str, Any] = {
    "acks": "all",
    "enable.idempotence": True,
    # The client's default refuses 1.2 MB; the topics take 8 MiB.
    "message.max.bytes": RECORD_BYTES_MAX,
    # As Java's client chooses; librdkafka's own default is CRC32.
    "partitioner": "murmur2_random",
}

_CONSUMER: Mapping[str, Any] = {
    # Required by the client and never used: partitions are assigned by hand, nothing is committed.
    "group.id": "evenhand-assigned-by-hand",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    # The default jumps silently to the end.
    "auto.offset.reset": "error",
    # One isolation level, one history for all readers.
    "isolation.level": "read_uncommitted",
    "fetch.min.bytes": 1,
    # After a leader's error; the default of 500 ms is most of `takeover_ms`.
    "fetch.error.backoff.ms": 50,
    # The default of 1,000 ms starves a reader whose queue was full once.
    "fetch.queue.backoff.ms": 1,
}


def client(bootstrap: str) -> Config:
    """For questions and commands."""
    return {"bootstrap.servers": bootstrap, **_CLIENT}


def journal_writer(bootstrap: str, append_timeout_ms: int) -> Config:
    """One record in flight, answered or given up within `append_timeout_ms`."""
    return {
        **client(bootstrap),
        **_PRODUCER,
        "max.in.flight.requests.per.connection": 1,
        "linger.ms": 0,
        "message.timeout.ms": append_timeout_ms,
        # Below the message's, so that a dead connection is tried again before the record expires.
        "socket.timeout.ms": append_timeout_ms * 2 // 5,
    }


def pulse_sender(bootstrap: str) -> Config:
    """A pulse is only a hint: one copy is enough, and a late one is worth nothing."""
    return {**client(bootstrap), "acks": 1, "linger.ms": 0, "message.timeout.ms": 1_000}


def deliveries(bootstrap: str) -> Config:
    """What a waiting member must know goes out at once; any linger above 0 costs a millisecond.

    While one request is on its way the next records gather: the broker takes the requests of a
    connection one by one, so that more of them would only be smaller.
    """
    return {**_public(bootstrap, linger_ms=0), "max.in.flight.requests.per.connection": 1}


def public(bootstrap: str) -> Config:
    """A small request costs the broker 0.2 ms: records that nobody waits for travel together."""
    return _public(bootstrap, linger_ms=50)


def _public(bootstrap: str, linger_ms: int) -> Config:
    return {
        **client(bootstrap),
        **_PRODUCER,
        "linger.ms": linger_ms,
        # No time-out: librdkafka would drop records, send later ones and leave a gap (R165).
        "message.timeout.ms": 0,
        "queue.buffering.max.messages": 500_000,
        "queue.buffering.max.kbytes": 128 * 1024,
    }


def reader(bootstrap: str) -> Config:
    """Journal and pulses: one partition, read to its end and followed."""
    return {
        **client(bootstrap),
        **_CONSUMER,
        "enable.partition.eof": True,
        # How late the end of the log is reported when nothing follows.
        "fetch.wait.max.ms": 100,
        "queued.max.messages.kbytes": 16 * 1024,
    }


def urgent(bootstrap: str) -> Config:
    """Everything but submissions."""
    return {**client(bootstrap), **_CONSUMER, "queued.max.messages.kbytes": 8 * 1024}


def submissions(bootstrap: str) -> Config:
    """What is fetched ahead and held back is thrown away (`inputs.LINE_MAX`): fetch a little.

    With librdkafka's defaults a burst of 30,000 on one partition was taken at 3,400/s and another
    partition's submission waited up to 500 ms; with these 14,000/s and 19 ms (median 1.4 ms).
    """
    return {
        **client(bootstrap),
        **_CONSUMER,
        "queued.min.messages": 500,
        "queued.max.messages.kbytes": 2_048,
        "max.partition.fetch.bytes": 256 * 1024,
        # A partition that was paused waits for the fetch of the others to end.
        "fetch.wait.max.ms": 20,
    }
