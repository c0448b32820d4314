"""What `evenhand dev` runs around a broker: topics, a scheduler, the API, and a cell to try."""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from api.auth import add_key
from evenhand._http import HttpTransport, Request
from evenhand._transport import Kafka
from evenhand._words import bodies, events
from evenhand.cli import configuration
from evenhand.cli.proposing import propose
from evenhand.dev.beginning import begin
from evenhand.dev.node import free_port, is_free
from evenhand.dev.processes import Processes
from evenhand.errors import EvenhandError
from schemas.bodies import Role
from streams.shell.settings import Settings

READY_S: Final = 60.0
"""Bound of every wait of the set-up: a second here, more on a busy machine."""
LOOK_EVERY_S: Final = 1.0
PROBE_S: Final = 0.1
"""One question; the wait around it repeats it."""
TENANT, USER = "dev", "me"
CONFIG: Final = Path(__file__).parent.parent / "dev" / "config.toml"


class Development:
    """One cell with everything that it needs, on loopback."""

    def __init__(
        self,
        processes: Processes,
        bootstrap: str,
        *,
        home: Path,
        api_port: int,
        prefix: str = "evenhand",
    ) -> None:
        """Nothing starts here.

        Args:
            processes: where programs start, and stop.
            bootstrap: the broker.
            home: for tables, views and keys.
            api_port: of the API; another one is taken if it is not free.
            prefix: of the topics.
        """
        self._processes, self._home = processes, home
        self._settings = Settings(bootstrap=bootstrap, prefix=prefix, data_dir=home)
        self._port = api_port if api_port and is_free(api_port) else free_port()
        keys = home / "keys.jsonl"
        self.tenant_key = add_key(keys, role=Role.TENANT, tenant=TENANT, user=USER)
        self.operator_key = add_key(keys, role=Role.OPERATOR)
        self.worker_key = add_key(keys, role=Role.WORKER)

    @property
    def api_url(self) -> str:
        """Where the API answers."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def kafka(self) -> Kafka:
        """Where its topics are."""
        return Kafka(
            bootstrap=self._settings.bootstrap,
            prefix=self._settings.prefix,
            cell=self._settings.cell,
        )

    def start(self) -> None:
        """Start everything and wait until it is ready.

        Raises:
            ProcessError: a program ended, or was not ready in time; the message has its log's end.
            EvenhandError: the configuration was not taken.
        """
        begin(self._settings, self._processes, READY_S)
        for name in ("scheduler", "api"):
            self._processes.start(name, [sys.executable, "-m", "evenhand", name], env=self._env)
        self._until(self._is_ready, "a ready API")
        self._configure()

    def stay(self) -> None:
        """Return after LOOK_EVERY_S; raises Died as soon as a program has ended unasked."""
        until = time.monotonic() + LOOK_EVERY_S
        self._until(lambda: time.monotonic() >= until, "the programs to live")

    def shell_lines(self) -> Iterator[str]:
        """What a shell needs to use it, as lines that it can run."""
        for name, value in self._env.items():
            yield f"export {name}={value}"
        yield f"export EVENHAND_API_URL={self.api_url}"
        yield f"export EVENHAND_API_KEY={self.tenant_key}"
        yield f"# operator: export EVENHAND_API_KEY={self.operator_key}"
        yield f"# worker: export EVENHAND_API_KEY={self.worker_key}"

    @property
    def _env(self) -> dict[str, str]:
        return {
            "EVENHAND_BOOTSTRAP": self._settings.bootstrap,
            "EVENHAND_PREFIX": self._settings.prefix,
            "EVENHAND_CELL": self._settings.cell,
            "EVENHAND_DATA_DIR": str(self._home),
            "EVENHAND_KEYS_FILE": str(self._home / "keys.jsonl"),
            "EVENHAND_API_PORT": str(self._port),
        }

    def _is_ready(self) -> bool:
        transport = HttpTransport(self.api_url, None, retry_s=PROBE_S)
        try:
            return transport.ask(Request(method="GET", path="/readyz"), bodies.Readiness).ready
        except EvenhandError:
            return False
        finally:
            transport.close()

    def _configure(self) -> None:
        kafka = self.kafka
        said = configuration.read(CONFIG)
        stages = configuration.stages(said, cell=kafka.cell, author="evenhand dev", reason="dev")
        for answer in propose(kafka, stages, wait_s=READY_S):
            if isinstance(answer, events.ConfigRefused):
                raise EvenhandError(f"Expected the configuration to be taken, but {answer.detail}")

    def _until(self, probe: Callable[[], bool], what: str) -> None:
        self._processes.wait_until(probe, what, READY_S)
