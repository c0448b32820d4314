"""One broker behind ports for all of chaos, a cell with its own programs for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand.dev.processes import Processes
from tests.chaos.cut_broker import CutBroker, cut_broker
from tests.chaos.world import World


@pytest.fixture(scope="session")
def behind_ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CutBroker]:
    """Schedulers and workers reach it each through a port of their own."""
    home = tmp_path_factory.mktemp("chaos") / "broker"
    with cut_broker(home, "schedulers", "workers") as broker:
        if broker is None:
            pytest.skip("needs Java 17 or newer, and Kafka's jars fetched by Maven")
        yield broker


@pytest.fixture
def world(behind_ports: CutBroker, tmp_path: Path) -> Iterator[World]:
    """A begun cell; no worker is there yet."""
    with Processes(tmp_path / "logs") as processes:
        world = World(behind_ports, processes, tmp_path)
        yield world
        world.close()
        for port in behind_ports.ports.values():
            port.heal()
