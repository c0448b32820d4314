"""Three real brokers on loopback, each broker and controller, any one of which may be killed."""

import secrets
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from evenhand.dev.java import JavaNode
from evenhand.dev.node import LOOPBACK, cluster_id, free_port, settings
from evenhand.dev.processes import run

FORMAT_TIMEOUT_S = 60.0

TOLD = {
    # As many copies as an operator would keep.
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    # A voter that is alone decides at once; three on two cores need longer to hear each other.
    "controller.quorum.election.timeout.ms": "1000",
    # How long a dead broker still leads: the default of 9 s would be most of the test.
    "broker.session.timeout.ms": "4000",
    "replica.lag.time.max.ms": "4000",
    "log.cleaner.enable": "false",
}


class Cluster:
    """Made by `start`, gone after `stop`; brokers are numbered from 1, as Kafka numbers them."""

    def __init__(self, java: str, jars: Path, home: Path) -> None:
        self._format = [java, "-cp", f"{jars}/*", "kafka.tools.StorageTool", "format"]
        self._nodes = {n: JavaNode(java, jars, home / f"broker-{n}") for n in (1, 2, 3)}
        self._home = home
        self._started: list[JavaNode] = []

    @property
    def bootstrap(self) -> str:
        return ",".join(node.bootstrap for node in self._nodes.values())

    def start(self) -> None:
        """All three at once: none of them answers before two are there."""
        controllers = {number: free_port() for number in self._nodes}
        voters = ",".join(f"{n}@{LOOPBACK}:{port}" for n, port in controllers.items())
        cluster = cluster_id(secrets.token_bytes(16))
        for number, port in controllers.items():
            folder = self._home / f"broker-{number}"
            told = settings(port=free_port(), controller_port=port) | TOLD
            told |= {"node.id": str(number), "controller.quorum.voters": voters}
            told["log.dirs"] = str(folder / "log")
            properties = folder / "server.properties"
            properties.write_text("".join(f"{name}={value}\n" for name, value in told.items()))
            tool = [*self._format, "-t", cluster, "-c", str(properties)]
            run("Formatting", tool, log=folder / "broker.log", timeout_s=FORMAT_TIMEOUT_S)
        with ThreadPoolExecutor() as threads:
            list(threads.map(self._launch, self._nodes.values()))

    def kill(self, number: int) -> None:
        self._nodes[number].kill()

    def stop(self) -> None:
        """What a test leaves is thrown away: nothing has to be written first."""
        for node in self._started:
            node.kill()

    def _launch(self, node: JavaNode) -> None:
        node.start()
        self._started.append(node)
