"""What a single Kafka node is told, on which port, and how to ask whether it answers."""

import base64
import itertools
import secrets
import socket
import struct

KAFKA_VERSION = "4.3.1"
"""The one that `pom.xml` and `docker-compose.yml` name too."""

HEAP = "-Xmx512m"
"""A laptop's worth: the node holds 350 to 500 MB resident."""

LOOPBACK = "127.0.0.1"

START_TIMEOUT_S = 120.0
"""3 s on an idle machine, 13 s after a kill; up to three times that where tests fill the cores."""

_PORT_MIN, _PORT_MAX = 20_000, 32_767
"""Below what Linux and macOS give to outgoing connections: a client that tries to reach a broker
that is down cannot take its port, so a restart finds it free."""

_PORTS = itertools.cycle(
    secrets.SystemRandom().sample(range(_PORT_MIN, _PORT_MAX + 1), _PORT_MAX + 1 - _PORT_MIN)
)
"""In an order of this process: two that look at the same time rarely find the same one free."""

_RECORD_BYTES_MAX = 9 * 1024 * 1024
"""A journal entry of 8 MiB and its frame. A topic may set less."""

_CLEANER_BYTES = 16 * 1024 * 1024
"""The default of 128 MiB would be a quarter of the heap, for a few small compacted topics."""

_ELECTION_MS = 100
"""A killed node waits once or twice this long before it votes for itself, the only voter."""

_ASK_TIMEOUT_S = 2.0

_REPLY_HEAD = struct.Struct(">iii")  # size, correlation, number of live brokers


def is_free(port: int) -> bool:
    """Whether nobody listens on this port of loopback now."""
    with socket.socket() as probe:
        # As Java does: connections that linger from an earlier life are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """A port on loopback that is free now, another one each time. Nothing else keeps it."""
    return next(filter(is_free, _PORTS))


def settings(*, port: int, controller_port: int, listen_on: str = LOOPBACK) -> dict[str, str]:
    """The server properties of a node that is broker and controller, all but its log folder.

    Args:
        port: clients reach it at this port of loopback.
        controller_port: the node talks to itself here.
        listen_on: the address to bind; inside a container loopback would be unreachable.
    """
    once = {
        f"{topic}.replication.factor": "1"
        for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
    }
    return once | {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{LOOPBACK}:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{listen_on}:{port},CONTROLLER://{LOOPBACK}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.quorum.election.timeout.ms": str(_ELECTION_MS),
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": "0",
        "message.max.bytes": str(_RECORD_BYTES_MAX),
        "replica.fetch.max.bytes": str(_RECORD_BYTES_MAX),
        "log.cleaner.dedupe.buffer.size": str(_CLEANER_BYTES),
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "num.io.threads": "3",
        "num.network.threads": "2",
    }


def answers(port: int) -> bool:
    """Whether the node at this port of loopback says that it is a live broker.

    Asks for the metadata of no topic, in the bytes of Kafka's protocol guide: an open port is not
    enough, since a container engine opens it before Kafka does. Blocks for two seconds at most.
    """
    # Metadata, version 1; correlation 0, no client id; an empty list of topics.
    body = struct.pack(">hhihi", 3, 1, 0, -1, 0)
    try:
        with socket.create_connection((LOOPBACK, port), timeout=_ASK_TIMEOUT_S) as connection:
            connection.sendall(struct.pack(">i", len(body)) + body)
            with connection.makefile("rb") as reply:
                head = reply.read(_REPLY_HEAD.size)
    except OSError:
        return False
    if len(head) < _REPLY_HEAD.size:
        return False
    _size, _correlation, live_brokers = _REPLY_HEAD.unpack(head)
    return int(live_brokers) > 0


def cluster_id(chance: bytes) -> str:
    """Sixteen random bytes as Kafka writes an id; the first bit is dropped.

    With it one id in 64 would begin with a hyphen, which the format tool takes for an option.
    """
    first = chance[0] & 0x7F
    return base64.urlsafe_b64encode(bytes((first, *chance[1:]))).decode().rstrip("=")
