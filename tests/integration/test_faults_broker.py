"""The broker goes away under a cell, and comes back."""

from collections.abc import Iterator

import pytest

from evenhand.dev.broker import Broker, NoBroker
from tests.support.rig import Rig, Worker


@pytest.fixture
def broker() -> Iterator[Broker]:
    """One for this test alone: the topics of a whole run would be recovered after a kill."""
    broker = Broker()
    if not broker.ours:
        pytest.skip("EVENHAND_BOOTSTRAP names a cluster that tests must not stop")
    try:
        broker.start()
    except NoBroker as error:
        pytest.skip(str(error))
    yield broker
    broker.resume()
    broker.stop()


@pytest.fixture
def bootstrap(broker: Broker) -> str:
    return broker.bootstrap


def test_a_broker_restarted_under_load_loses_and_doubles_nothing(rig: Rig, broker: Broker) -> None:
    rig.scheduler("a")
    rig.configure()
    rig.scheduler("b")
    worker = Worker(rig.log)
    rig.submit(40)
    rig.until_settled(5, worker)
    broker.kill()
    broker.start()
    rig.submit(20, first=40)
    rig.until_settled(60, worker)
    assert rig.judged().reservations["settled"] == 60
    assert len(worker.calls) == len(set(worker.calls)) == 60


def test_a_broker_silent_past_the_takeover_makes_no_second_owner(rig: Rig, broker: Broker) -> None:
    rig.scheduler("a")
    rig.configure()
    standby = rig.scheduler("b")
    worker = Worker(rig.log)
    rig.submit(5)
    rig.until_settled(5, worker)
    rig.until_role(standby, "standby")
    broker.pause()
    with pytest.raises(AssertionError, match="within"):
        rig.until(lambda: not standby.alive, "nothing at all", timeout_s=2.0)
    broker.resume()
    rig.submit(5, first=5)
    rig.until_settled(10, worker)
    assert rig.judged().reservations["settled"] == 10
