"""A cell of its own for each test."""

from pathlib import Path

import pytest

from streams.shell.settings import Settings
from streams.shell.wiring import apply_topics
from tests.support.kafka import PARTITIONS, Log


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
