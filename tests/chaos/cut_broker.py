"""A real broker with one listener for each kind of program, each behind a port that can be cut."""

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from evenhand.dev.java import JavaNode, find_jars, find_java
from evenhand.dev.node import LOOPBACK, cluster_id, free_port, settings
from evenhand.dev.processes import run
from tests.chaos.clock import Clock
from tests.chaos.proxy import Port

FORMAT_TIMEOUT_S = 60.0


class CutBroker:
    """Reached directly at `bootstrap`, and by each kind of program at its own port."""

    def __init__(self, node: JavaNode, ports: dict[str, Port], clock: Clock) -> None:
        self.node, self.ports, self.clock = node, ports, clock

    @property
    def bootstrap(self) -> str:
        return self.node.bootstrap

    def through(self, kind: str) -> str:
        return f"{LOOPBACK}:{self.ports[kind].number}"


@contextmanager
def cut_broker(home: Path, *kinds: str) -> Iterator[CutBroker | None]:
    """None where no Java or no jars are: what needs a proxied broker is then not run."""
    java, jars = find_java(), find_jars()
    if java is None or jars is None:
        yield None
        return
    home.mkdir(parents=True)
    inner = {kind: free_port() for kind in kinds}
    with ExitStack() as stack:
        ports = {kind: stack.enter_context(Port(port)) for kind, port in inner.items()}
        told = settings(port=free_port(), controller_port=free_port())
        names = {kind: kind.upper() for kind in kinds}
        listeners = [f"{names[kind]}://{LOOPBACK}:{port}" for kind, port in inner.items()]
        reached = [f"{names[kind]}://{LOOPBACK}:{ports[kind].number}" for kind in kinds]
        # The plain one comes last: it is the one whose port the node knows as its own.
        told["listeners"] = ",".join((*listeners, told["listeners"]))
        told["advertised.listeners"] = ",".join((*reached, told["advertised.listeners"]))
        maps = [f"{name}:PLAINTEXT" for name in names.values()]
        told["listener.security.protocol.map"] += "," + ",".join(maps)
        told["inter.broker.listener.name"] = "PLAINTEXT"
        told["log.dirs"] = str(home / "log")
        properties = home / "server.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in told.items()))
        tool = [java, "-cp", f"{jars}/*", "kafka.tools.StorageTool", "format"]
        tool += ["-t", cluster_id(secrets.token_bytes(16)), "-c", str(properties)]
        run("Formatting", tool, log=home / "broker.log", timeout_s=FORMAT_TIMEOUT_S)
        node, clock = JavaNode(java, jars, home), Clock(home)
        with pytest.MonkeyPatch.context() as under:
            for name, value in clock.env.items():
                under.setenv(name, value)
            node.start()
        stack.callback(node.kill)
        yield CutBroker(node, ports, clock)
