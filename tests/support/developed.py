"""The cell of `evenhand dev`, for the tests of a module."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from evenhand.cli.development import Development
from evenhand.dev.broker import Broker
from evenhand.dev.processes import Processes


@contextmanager
def developed(broker: Broker, home: Path) -> Iterator[Development]:
    """Scheduler and API on topics of their own, ready; everything ends with the block."""
    with Processes(home / "logs") as processes:
        made = Development(
            processes, broker.bootstrap, home=home, api_port=0, prefix=f"dev{uuid4().hex[:8]}"
        )
        made.start()
        yield made
