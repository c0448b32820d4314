"""What every tier shares: marks by folder, one broker a process of tests, a topic prefix a test."""

import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from evenhand.dev.broker import Broker, NoBroker
from streams.shell.kafka.admin import CellTopics, KafkaAdmin
from tests.support.kafka import PARTITIONS, Log

HERE = Path(__file__).parent
TIERS = ("unit", "properties", "simulation", "contract", "integration", "chaos")


def pytest_configure() -> None:
    """A run that was started in the background ignores Ctrl-C, and so would its children."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The folder sets the marker."""
    for item in items:
        tier = item.path.relative_to(HERE).parts[0] if item.path.is_relative_to(HERE) else ""
        if tier in TIERS:
            item.add_marker(tier)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Silence must not look like success."""
    reasons = Counter(
        str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)
        for report in terminalreporter.stats.get("skipped", ())
    )
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"not run: {count} tests. {reason.removeprefix('Skipped: ')}")


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """The real broker of this process of tests."""
    broker = Broker()
    try:
        broker.start()
    except NoBroker as error:
        pytest.skip(str(error))
    yield broker
    broker.stop()


@pytest.fixture(scope="session")
def bootstrap(broker: Broker) -> str:
    return broker.bootstrap


@pytest.fixture
def log(bootstrap: str) -> Log:
    """Topic names nobody else has; no topic exists yet."""
    return Log(bootstrap, prefix=f"t{uuid4().hex[:12]}")


@pytest.fixture
def admin(bootstrap: str) -> KafkaAdmin:
    return KafkaAdmin(bootstrap)


@pytest.fixture
def topics(admin: KafkaAdmin, log: Log) -> CellTopics:
    topics = CellTopics(admin, log.prefix, log.cell)
    topics.create(PARTITIONS)
    return topics
