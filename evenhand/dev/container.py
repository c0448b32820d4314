"""Kafka in a container, for machines without Java: Docker's or Podman's, whichever answers."""

import secrets
import shutil
import subprocess
import tempfile
from pathlib import Path

from evenhand.dev.node import (
    HEAP,
    KAFKA_VERSION,
    LOOPBACK,
    START_TIMEOUT_S,
    answers,
    free_port,
    settings,
)
from evenhand.dev.processes import STOP_WAIT_S, Process, run

IMAGE = f"docker.io/apache/kafka:{KAFKA_VERSION}"

_ASK_TIMEOUT_S = 20.0
_PULL_TIMEOUT_S = 540.0
"""About 400 MB unpacked; a slow line needs minutes."""


def find_engine() -> str | None:
    """The first engine that answers; a client without its daemon does not."""
    for name in ("docker", "podman"):
        engine = shutil.which(name)
        if engine is not None and _ask(engine, "info").returncode == 0:
            return engine
    return None


class ContainerNode:
    """A broker in a container that keeps its data over its lives, until it is discarded.

    The program that is started and guarded is the engine's client, attached to the container. The
    client's end does not end the container, so the guard's last act removes it.
    """

    def __init__(self, engine: str) -> None:
        """Nothing happens before `start`."""
        self._engine = engine
        self._name = f"evenhand-broker-{secrets.token_hex(4)}"
        self._port = free_port()
        self._log = Path(tempfile.mkdtemp(prefix="evenhand-broker-")) / "broker.log"
        self._client: Process | None = None

    @property
    def bootstrap(self) -> str:
        """Where clients connect; the same over all lives of the container."""
        return f"{LOOPBACK}:{self._port}"

    @property
    def pid(self) -> int:
        """The JVM's, as this machine sees it; 0 where the engine runs in a machine of its own."""
        said = _ask(self._engine, "inspect", "--format", "{{.State.Pid}}", self._name)
        return int(said.stdout)

    def start(self) -> None:
        """Start and wait for the first answer; the first time the image may have to be pulled.

        Raises:
            Died: with the end of the broker's log, or with what the engine refused.
            NotReady: it did not answer within two minutes and was killed.
        """
        if self._client is None:
            self._create()
        self._client = Process(
            "the broker",
            [self._engine, "start", "--attach", self._name],
            log=self._log,
            last_act=[self._engine, "rm", "--force", "--volumes", self._name],
        )
        try:
            self._client.wait_until(lambda: answers(self._port), "an answer", START_TIMEOUT_S)
        except BaseException:
            self.kill()
            raise

    def terminate(self) -> None:
        """SIGTERM, then SIGKILL after a bound. Harmless when it is down or never was up."""
        self._end("stop", "--time", f"{STOP_WAIT_S:.0f}")

    def kill(self) -> None:
        """SIGKILL."""
        self._end("kill")

    def pause(self) -> None:
        """Freeze every process of the container."""
        _ask(self._engine, "pause", self._name)

    def resume(self) -> None:
        """Go on."""
        _ask(self._engine, "unpause", self._name)

    def discard(self) -> None:
        """Remove the container with its data. It cannot start again then."""
        _ask(self._engine, "rm", "--force", "--volumes", self._name)
        shutil.rmtree(self._log.parent, ignore_errors=True)

    def _create(self) -> None:
        # Reachable from outside the container, but published on loopback only.
        told = settings(port=self._port, controller_port=free_port(), listen_on="0.0.0.0")  # noqa: S104
        env = {f"KAFKA_{name.upper().replace('.', '_')}": value for name, value in told.items()}
        env |= {"KAFKA_HEAP_OPTS": HEAP, "KAFKA_LOG4J_ROOT_LOGLEVEL": "WARN"}
        create = ["create", "--name", self._name, "-p", f"{LOOPBACK}:{self._port}:{self._port}"]
        create += [word for name, value in env.items() for word in ("-e", f"{name}={value}")]
        engine = Path(self._engine).name
        run(engine, [self._engine, *create, IMAGE], log=self._log, timeout_s=_PULL_TIMEOUT_S)

    def _end(self, *how: str) -> None:
        self.resume()  # engines differ in what a frozen container does with a signal
        _ask(self._engine, *how, self._name)
        if self._client is not None:
            self._client.terminate()


def _ask(engine: str, *what: str) -> subprocess.CompletedProcess[str]:
    """One short command; what it cannot do (resume what runs, kill what ended) is no error."""
    return subprocess.run(  # noqa: S603 - the user's own engine
        [engine, *what], capture_output=True, text=True, timeout=_ASK_TIMEOUT_S, check=False
    )
