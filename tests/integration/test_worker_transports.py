"""The same worker over Kafka and over HTTP, at a real cell whose leases are short."""

import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any
from uuid import uuid4

import pytest

from evenhand import Attempt, Kafka, Outcome, Result, Worker
from evenhand.dev.processes import Processes
from schemas import events as e
from schemas import inputs as i
from schemas.topics import Topic
from schemas.units import Millis
from streams.shell.settings import Settings
from streams.shell.wiring import apply_topics
from tests.support.asked import POOL, id_of, submission
from tests.support.doors import Doors, Ear
from tests.support.kafka import PARTITIONS, Log, until
from tests.support.rig import Rig, Tail

LEASE_MS = Millis(1_200)
LONGER_S = 3.0
"""More than two leases."""
TENANT = "t1"
Handle = Callable[[Attempt], Result | None]


class Site:
    """One cell with one door, and what was decided there."""

    def __init__(self, rig: Rig, doors: Doors) -> None:
        self.rig, self.doors = rig, doors
        self._tails = [Tail(rig.log, Topic.DECISIONS), Tail(rig.log, Topic.SETTLEMENTS)]
        self._inboxes = Tail(rig.log, Topic.DELIVERIES)
        self._seen: list[Any] = []
        self._delivered: list[Any] = []
        self._keys = count()

    def close(self) -> None:
        for tail in (*self._tails, self._inboxes):
            tail.close()

    def submit(self, **more: Any) -> bytes:
        key = next(self._keys)
        self.rig.log.send(Topic.SUBMISSIONS, submission(TENANT, key, **more))
        return id_of(TENANT, key)

    def told(self, operation: bytes, kind: type) -> list[Any]:
        """Events of this kind about the operation so far."""
        for tail in self._tails:
            self._seen.extend(tail.new())
        return [one for one in self._seen if one.operation == operation and isinstance(one, kind)]

    def until(self, operation: bytes, kind: type, number: int = 1) -> Any:
        until(lambda: len(self.told(operation, kind)) >= number, f"{number} {kind.__name__}")
        return self.told(operation, kind)[number - 1]

    def delivered(self, member_epochs: set[str]) -> list[Any]:
        """What the owner delivered to these lives of a member, each position once."""
        self._delivered.extend(self._inboxes.new(1.0))
        named = [
            one for one in self._delivered if getattr(one, "member_epoch", "") in member_epochs
        ]
        return [one for one in named if not isinstance(one, e.MemberSlotReturned)]


@pytest.fixture(scope="module")
def site(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    log, home = Log(bootstrap, prefix=f"t{uuid4().hex[:12]}"), tmp_path_factory.mktemp("site")
    settings = Settings(
        bootstrap=bootstrap, prefix=log.prefix, data_dir=home, partitions=PARTITIONS
    )
    assert apply_topics(settings)
    with Processes(home / "logs") as processes:
        rig = Rig(log, settings, processes, home)
        rig.scheduler()
        configure(rig)
        doors = Doors(settings, processes, home)
        site = Site(rig, doors)
        with doors.port:
            yield site
        site.close()
        rig.close()


def configure(rig: Rig) -> None:
    rig.configure(pool={"lease_ms": LEASE_MS}, domain={"retry_backoff_ms": 1})


@pytest.fixture(params=["kafka", "http"])
def ear(request: pytest.FixtureRequest, site: Site) -> Ear:
    if request.param == "http":
        return Ear(site.doors.links)
    log = site.rig.log
    return Ear(Kafka(bootstrap=log.bootstrap, prefix=log.prefix, cell=log.cell))


def working(ear: Ear, handle: Handle, places: int = 2) -> Worker:
    return Worker(handle, pool=POOL, via=ear, places=places)


@pytest.mark.parametrize("outcome", [*Outcome])
def test_every_outcome_is_recorded(site: Site, ear: Ear, outcome: Outcome) -> None:
    def handle(attempt: Attempt) -> Result:
        if attempt.attempt > 1:
            return Result()
        return Result(outcome=outcome, error="because", result_ref="s3://1", retry_after_ms=1)

    operation = site.submit(effect="keyed")
    with working(ear, handle):
        if outcome is Outcome.UNKNOWN:
            assert site.until(operation, e.OutcomeMarkedUnknown).error == "because"
            return
        found = site.until(operation, e.ResultRecorded)
        assert (found.outcome, found.error, found.result_ref) == (outcome, "because", "s3://1")
    if outcome in (Outcome.QUOTA_EXHAUSTED, Outcome.REAUTHENTICATION_REQUIRED, Outcome.THROTTLED):
        configure(site.rig)  # the domain is open again


def test_usage_after_the_end_corrects_what_was_charged(site: Site, ear: Ear) -> None:
    seen: list[Attempt] = []

    def handle(attempt: Attempt) -> None:
        attempt.sent()
        attempt.usage(prompt_tokens=10, output_tokens=1)
        seen.append(attempt)

    operation = site.submit()
    with working(ear, handle):
        assert site.until(operation, e.ReservationSettled).tokens_actual == 11
        seen[0].usage(prompt_tokens=12, output_tokens=1)
        corrected = site.until(operation, e.UsageCorrected)
    assert (corrected.tokens_before, corrected.tokens_actual) == (11, 13)


def test_a_lease_is_renewed_for_as_long_as_the_handler_works(site: Site, ear: Ear) -> None:
    def handle(attempt: Attempt) -> Result:
        time.sleep(LONGER_S)
        return Result(error="lost" if attempt.lease_lost else None)

    operation = site.submit()
    with working(ear, handle):
        assert site.until(operation, e.ResultRecorded).error is None
    assert site.told(operation, e.LeaseExpired) == []


def test_a_lost_lease_is_heard_and_the_late_result_still_counts(site: Site, ear: Ear) -> None:
    def handle(attempt: Attempt) -> Result:
        ear.lossy = True
        until(lambda: attempt.lease_lost, "the lease to be lost")
        ear.lossy = False
        return Result(result_ref="s3://late")

    operation = site.submit()
    with working(ear, handle):
        assert site.until(operation, e.ResultRecorded).result_ref == "s3://late"
    assert site.until(operation, e.OutcomeReconciled).source == "late_result"


def test_a_wanted_end_is_heard(site: Site, ear: Ear) -> None:
    operation = site.submit()

    def handle(attempt: Attempt) -> Result:
        asked = i.CancellationRequested(tenant=TENANT, operation=operation, reason="enough")
        site.rig.log.send(Topic.CANCELLATIONS, asked)
        until(lambda: attempt.cancel_requested, "the signal")
        return Result(outcome=Outcome.CANCELLED)

    with working(ear, handle):
        assert site.until(operation, e.ResultRecorded).outcome == "cancelled"


def test_another_attempt_goes_on_from_the_last_checkpoint(site: Site, ear: Ear) -> None:
    resumed: list[Any] = []

    def handle(attempt: Attempt) -> Result:
        resumed.append(attempt.resumed_from)
        if attempt.attempt > 1:
            return Result()
        attempt.checkpoint("s3://state/1")
        attempt.checkpoint("s3://state/2")
        return Result(outcome=Outcome.RETRYABLE)

    operation = site.submit(effect="keyed")
    with working(ear, handle):
        site.until(operation, e.ResultRecorded, 2)
    assert resumed == [None, (2, "s3://state/2")]


def test_each_delivery_is_heard_once_and_in_order(site: Site, ear: Ear) -> None:
    operations = [site.submit() for _ in range(40)]
    with working(ear, lambda _: None, places=8):
        for operation in operations:
            site.until(operation, e.ResultRecorded)
    heard_once(site, ear)


def heard_once(site: Site, ear: Ear) -> None:
    """All that was delivered to the lives of this worker was heard, each once, in order."""
    lives = {one.member_epoch for one in ear.heard if isinstance(one, e.MemberSlotGranted)}
    assert lives
    until(lambda: site.delivered(lives) == listened(ear), "both to be the same")


def listened(ear: Ear) -> list[Any]:
    return [one for one in ear.heard if not isinstance(one, e.MemberSlotReturned)]


# -- what only HTTP has to survive --------------------------------------------------------------


@pytest.mark.parametrize("data", ["another", "first"])
def test_the_api_dies_and_another_process_goes_on_from_the_position(site: Site, data: str) -> None:
    ear = Ear(site.doors.links)
    begun: list[Attempt] = []

    def handle(attempt: Attempt) -> Result:
        begun.append(attempt)
        if len(begun) == 1:
            site.doors.kill()
            site.submit()
            site.doors.open(data)
        return Result()

    operation = site.submit()
    with working(ear, handle, places=1):
        site.until(operation, e.ResultRecorded)
        until(lambda: len(begun) == 2, "the second operation")
        second = begun[1].grant.operation
        site.until(second, e.ResultRecorded)
    heard_once(site, ear)


def test_a_cut_connection_shorter_than_a_lease_loses_nothing(site: Site) -> None:
    ear = Ear(site.doors.links)

    def handle(attempt: Attempt) -> Result:
        site.doors.port.cut()
        time.sleep(LEASE_MS / 3_000)
        site.doors.port.heal()
        return Result(error="lost" if attempt.lease_lost else None)

    operations = [site.submit() for _ in range(3)]
    with working(ear, handle, places=1):
        for operation in operations:
            assert site.until(operation, e.ResultRecorded).error is None
    heard_once(site, ear)
