"""A cell of its own for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand.dev.processes import Processes
from streams.shell.settings import Settings
from streams.shell.wiring import apply_topics
from tests.support.kafka import PARTITIONS, Log
from tests.support.rig import Rig


@pytest.fixture
def settings(log: Log, tmp_path: Path) -> Settings:
    """Of a cell that does not exist yet."""
    return Settings(
        bootstrap=log.bootstrap, prefix=log.prefix, data_dir=tmp_path, partitions=PARTITIONS
    )


@pytest.fixture
def begun(settings: Settings) -> Settings:
    """Of a cell whose topics and first entry exist."""
    assert apply_topics(settings)
    return settings


@pytest.fixture
def rig(log: Log, begun: Settings, tmp_path: Path) -> Iterator[Rig]:
    """A begun cell; nobody owns it yet."""
    with Processes(tmp_path / "logs") as processes:
        rig = Rig(log, begun, processes, tmp_path)
        yield rig
        rig.close()
