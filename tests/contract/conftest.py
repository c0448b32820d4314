"""A twin of the SDK at every kind of cell.

The shipped double; requests over HTTP and members on the topics; both on the topics; both over
HTTP, without any access to the topics.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from evenhand import Http
from evenhand.cli.development import TENANT, USER, Development
from evenhand.dev.broker import Broker
from evenhand.testing import FakeEvenhand
from schemas import events as e
from schemas import inputs as i
from schemas.codec import decode
from schemas.ids import DimensionName
from schemas.topics import Topic
from tests.support.desk import STANDING, Desk
from tests.support.developed import developed
from tests.support.kafka import Log, until
from tests.support.twins import AsyncTwin, SyncTwin, Twin

SLOTS = 4_096
WHO = {"tenant": TENANT, "user": USER}
TWINS: dict[str, Callable[[dict[str, Any], dict[str, Any]], Twin]] = {
    "sync": SyncTwin,
    "async": AsyncTwin,
}


@pytest.fixture(scope="session")
def development(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Development]:
    """A real cell with its scheduler and API."""
    with developed(broker, tmp_path_factory.mktemp("cell")) as development:
        _make_room(Log(broker.bootstrap, development.kafka.prefix))
        yield development


def _make_room(log: Log) -> None:
    """Slots for every outcome that the tests of a run leave unknown: each keeps its own.

    And a pool with standing starts.
    """
    slots = i.DimensionConfig(
        name=DimensionName("slots"), unit="slots", kind="concurrency", limit=SLOTS
    )
    body = i.DomainConfig(dimensions=(slots,))
    by = {"author": "test", "reason": "unknown outcomes keep their slots"}
    log.send(Topic.CONTROL, i.ConfigProposed(scope="domain", name="default", domain=body, **by))
    pool = i.PoolConfig(standing=True)
    log.send(Topic.CONTROL, i.ConfigProposed(scope="pool", name=STANDING, pool=pool, **by))

    def is_active() -> bool:
        told = [decode(one.value or b"") for one in log.read(Topic.CAPACITY)]
        assert not any(isinstance(event, e.ConfigRefused) for event in told), told
        active = [event for event in told if isinstance(event, e.ConfigActivated)]
        return {"domain", "pool"} <= {
            one.scope for one in active if one.domain == body or one.pool == pool
        }

    until(is_active, "more slots, and the pool")


@pytest.fixture(params=["fake", "http", "kafka", "door"])
def cell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["sync", "async"])
def desk(request: pytest.FixtureRequest, cell: str) -> Iterator[Desk]:
    twin, asynchronous = TWINS[request.param], request.param == "async"
    if cell == "fake":
        fake = FakeEvenhand(pools=("default", STANDING), standing=(STANDING,))
        door = (fake.async_transport if asynchronous else fake.transport)(TENANT, USER)
        both = {"transport": door, "via": fake, **WHO}
        desk = Desk(twin(both, both), fake)
    else:
        real: Development = request.getfixturevalue("development")
        door = {"url": real.api_url, "api_key": real.tenant_key}
        own = Http(real.api_url, real.tenant_key) if cell == "door" else real.kafka
        links = Http(real.api_url, real.worker_key) if cell == "door" else real.kafka
        straight = {**door, "via": own, **WHO}
        desk = Desk(twin(straight if cell == "kafka" else door, straight), links)
    yield desk
    desk.clear()
