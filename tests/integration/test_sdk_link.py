"""A worker on a real broker whose owner is played by the test: copies, strangers, late answers."""

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from evenhand import Attempt, Kafka, Worker
from evenhand._kafka import KafkaLink
from schemas.codec import decode, encode
from schemas.envelope import Envelopes
from schemas.events import GrantIssued
from schemas.ids import MemberId
from schemas.inputs import HeartbeatReported, JoinRequested, ResultReported, StartRequested
from schemas.topics import Topic
from tests.support.kafka import MAIN, Log, until
from tests.support.member import Life, names
from tests.support.words import e

NOW_MS = 1_000_000
"""The owner's time; it stands still."""


@dataclass
class Owner:
    """Writes deliveries as an owner does, or as nobody should."""

    log: Log
    member: str = field(default_factory=lambda: f"m{uuid4().hex[:8]}")
    next_offset: int = 1

    def __post_init__(self) -> None:
        self._producer = Producer(
            {"bootstrap.servers": self.log.bootstrap, "partitioner": "murmur2_random"}
        )
        for topic in (Topic.DELIVERIES, Topic.MEMBERS, Topic.STARTS, Topic.RESULTS):
            self.log.create(self.log.name(topic))
        for topic in (Topic.SUBMISSIONS, Topic.CANCELLATIONS, Topic.CONTROL):
            self.log.create(self.log.name(topic))

    @property
    def kafka(self) -> Kafka:
        return Kafka(bootstrap=self.log.bootstrap, prefix=self.log.prefix, cell=MAIN)

    def deliver(self, event: Any, *, at: int | None = None, key: str | None = None) -> None:
        """Publish at the next position, or once more at an earlier one."""
        offset = self.next_offset if at is None else at
        self.next_offset = max(self.next_offset, offset + 1)
        headers = Envelopes(MAIN, 1, offset).headers(0, kind=type(event), cause="time")
        self.write(encode(event), headers, key or self.member)

    def write(self, value: bytes, headers: Any, key: str) -> None:
        self._producer.produce(self.log.name(Topic.DELIVERIES), value, key, headers=headers)
        assert self._producer.flush(10) == 0

    def said(self, topic: Topic, kind: type) -> list[Any]:
        words = [decode(got.value or b"") for got in self.log.read(topic)]
        return [word for word in words if isinstance(word, kind)]

    def take_in(self) -> str:
        """Answer the join request; the member's epoch."""
        until(lambda: self.said(Topic.MEMBERS, JoinRequested), "a join request")
        epoch: str = self.said(Topic.MEMBERS, JoinRequested)[-1].member_epoch
        self.deliver(
            e.MemberSlotGranted(
                member=self.member, member_epoch=epoch, pool="p", places=4, join_by_ms=0
            )
        )
        return epoch

    def offer(self, epoch: str) -> None:
        """Answer the first heartbeat: its places stand."""
        until(lambda: self.said(Topic.MEMBERS, HeartbeatReported), "a heartbeat")
        beat = self.said(Topic.MEMBERS, HeartbeatReported)[0]
        self.deliver(
            e.PlacesOffered(
                member=self.member,
                member_epoch=epoch,
                sent_ms=beat.sent_ms,
                time_ms=NOW_MS,
                authority_epoch=1,
            )
        )

    def grant(self, epoch: str, number: int = 0, **fields: Any) -> GrantIssued:
        """A grant that leaves the slowest machine time to send, unless the test says otherwise."""
        made = {"member": self.member, "member_epoch": epoch, "send_within_ms": 100_000, **fields}
        return Life(joined=False).grant(number, **made)


@pytest.fixture
def owner(log: Log) -> Owner:
    return Owner(log)


@pytest.fixture
def link(owner: Owner) -> Iterator[KafkaLink]:
    link = KafkaLink(owner.kafka, MemberId(owner.member))
    yield link
    link.close(5)


def heard(link: KafkaLink, last: str) -> list[str]:
    """Reasons of all deliveries, up to the one whose reason is `last`."""
    found: list[str] = []

    def done() -> bool:
        found.extend(event.reason for event in link.receive(0.1))
        return last in found

    until(done, f"delivery {last}")
    return found


def returned(reason: str) -> Any:
    return e.MemberSlotReturned(member="any", member_epoch="e", reason=reason)


def test_each_delivery_is_heard_once_however_often_it_is_published(
    owner: Owner, link: KafkaLink
) -> None:
    for offset in (1, 2, 1, 2, 3, 2, 3):
        owner.deliver(returned(str(offset)), at=offset)
    owner.deliver(returned("end"))
    assert heard(link, "end") == ["1", "2", "3", "end"]


def test_what_is_not_for_this_member_or_not_of_the_owner_is_not_heard(
    owner: Owner, link: KafkaLink
) -> None:
    owner.deliver(returned("another's"), key="another")
    owner.write(encode(returned("a stranger's")), [], owner.member)
    headers = Envelopes(MAIN, 1, owner.next_offset).headers(0, kind=str, cause="time")
    owner.write(b"no word", headers, owner.member)
    owner.next_offset += 1
    owner.deliver(returned("end"))
    assert heard(link, "end") == ["end"]


def test_what_was_published_before_the_link_is_not_heard(owner: Owner) -> None:
    owner.deliver(returned("before"))
    link = KafkaLink(owner.kafka, MemberId(owner.member))
    owner.deliver(returned("after"))
    assert heard(link, "after") == ["after"]
    link.close(5)


def test_replaying_every_delivery_twice_makes_no_second_call(owner: Owner) -> None:
    calls: Counter[str] = Counter()
    worker = Worker(
        lambda attempt: calls.update([attempt.operation]),
        pool="p",
        via=owner.kafka,
        member=owner.member,
        places=4,
    )
    with worker:
        epoch = owner.take_in()
        grants = [owner.grant(epoch, number) for number in range(4)]
        for grant in grants:
            owner.deliver(grant)
        until(lambda: len(owner.said(Topic.STARTS, StartRequested)) == 4, "four starts")
        for grant in grants:
            owner.deliver(accepted(grant))
        replay(owner)
        replay(owner)
        until(lambda: len(owner.said(Topic.RESULTS, ResultReported)) >= 4, "four results")
    assert calls == Counter(grant.operation.hex() for grant in grants)
    assert len(owner.said(Topic.STARTS, StartRequested)) == 4
    assert len(owner.said(Topic.RESULTS, ResultReported)) == 4


def test_replaying_every_standing_start_twice_makes_no_second_call_and_a_late_one_none(
    owner: Owner,
) -> None:
    calls: Counter[str] = Counter()
    worker = Worker(
        lambda attempt: calls.update([attempt.operation]),
        pool="p",
        via=owner.kafka,
        member=owner.member,
        places=4,
        stop_wait_s=1.0,
    )
    with worker:
        epoch = owner.take_in()
        owner.offer(epoch)
        grants = [owner.grant(epoch, n, started_ms=NOW_MS) for n in range(4)]
        late = owner.grant(epoch, 4, started_ms=NOW_MS, send_within_ms=0)
        for copies in range(3):
            for grant in (*grants, late):
                owner.deliver(grant)
                owner.deliver(accepted(grant))
            until(
                lambda: len(owner.said(Topic.RESULTS, ResultReported)) >= 5,
                f"five results after {copies} copies",
            )
        replay(owner)
        owner.deliver(owner.grant(epoch, 5))
        until(lambda: owner.said(Topic.STARTS, StartRequested), "the start that is asked for")
    assert calls == Counter(grant.operation.hex() for grant in grants)
    results = {one.operation: one.outcome for one in owner.said(Topic.RESULTS, ResultReported)}
    assert len(results) == len(owner.said(Topic.RESULTS, ResultReported)) == 5
    assert results[late.operation] == "not_sent"
    (asked,) = owner.said(Topic.STARTS, StartRequested)
    assert asked.operation == (5).to_bytes(16, "big")


def accepted(grant: GrantIssued) -> Any:
    return e.StartAccepted(**names(grant), send_within_ms=0, latest_arrival_ms=0)


def replay(owner: Owner) -> None:
    """Every delivery once more, as a new owner publishes what its predecessor had published."""
    for got in owner.log.read(Topic.DELIVERIES):
        headers = [(name, value.encode()) for name, value in got.headers.items()]
        owner.write(got.value or b"", headers, owner.member)


def test_an_answer_that_comes_too_late_makes_no_call_and_is_reported_not_sent(
    owner: Owner,
) -> None:
    calls: list[Attempt] = []
    late = threading.Event()
    worker = Worker(calls.append, pool="p", via=owner.kafka, member=owner.member)
    with worker:
        grant = owner.grant(owner.take_in(), send_within_ms=1)
        owner.deliver(grant)
        until(lambda: owner.said(Topic.STARTS, StartRequested), "a start request")
        late.wait(0.01)  # longer than the span that the grant allows
        owner.deliver(e.StartAccepted(**names(grant), send_within_ms=1, latest_arrival_ms=0))
        until(lambda: owner.said(Topic.RESULTS, ResultReported), "a result")
    (result,) = owner.said(Topic.RESULTS, ResultReported)
    assert result.outcome == "not_sent"
    assert calls == []


def test_a_lost_member_joins_again_and_works_on(owner: Owner) -> None:
    done = threading.Event()
    worker = Worker(lambda _: done.set(), pool="p", via=owner.kafka, member=owner.member)
    with worker:
        epoch = owner.take_in()
        owner.deliver(e.MemberLost(member=owner.member, member_epoch=epoch))
        until(lambda: len(owner.said(Topic.MEMBERS, JoinRequested)) == 2, "a second join request")
        again = owner.take_in()
        assert again != epoch
        grant = owner.grant(again)
        owner.deliver(grant)
        until(lambda: owner.said(Topic.STARTS, StartRequested), "a start request")
        owner.deliver(e.StartAccepted(**names(grant), send_within_ms=1, latest_arrival_ms=0))
        assert done.wait(20)
