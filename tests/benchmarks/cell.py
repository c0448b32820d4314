"""One cell as the benchmarks need it: no budget ever binds, so that only Evenhand is measured."""

import time
from collections.abc import Iterable, Iterator
from typing import Any

from confluent_kafka import Consumer, Producer

from schemas.codec import decode, encode
from schemas.events import ConfigActivated, ConfigRefused
from schemas.ids import (
    CellId,
    DimensionName,
    DomainId,
    OperationId,
    PoolId,
    TenantId,
    UserId,
    operation_id,
)
from schemas.inputs import (
    CellConfig,
    ConfigProposed,
    DimensionConfig,
    DomainConfig,
    OperationSubmitted,
    PoolConfig,
    TenantConfig,
)
from schemas.topics import INPUT_TOPICS, PARTITIONS, TOPICS, Topic, full_name, input_key
from schemas.units import Millis, Tokens
from tests.benchmarks import raw

CELL = CellId("main")
DOMAIN, POOL = DomainId("bench"), PoolId("workers")
TENANTS = tuple(TenantId(f"tenant-{number}") for number in range(8))
PLENTY = 1_000_000_000
PATIENCE_S = 60.0
WAITING_MAX, WAITING_BYTES_MAX = 1_000_000, 10**15
SUBMISSIONS_PER_ENTRY = 64
"""Four times the start value, which keeps starts quick beside bursts: here all is burst."""
WINDOW_MS = Millis(6_000)
LEASE_MS, MEMBER_TTL_MS = Millis(60_000), Millis(3_000)

_HOMES = {kind: topic for topic in INPUT_TOPICS for kind in TOPICS[topic].holds}


class Inputs:
    """Sends words to the input topics of a cell, as any foreign producer would."""

    def __init__(self, bootstrap: str, prefix: str, *, linger_ms: int = 0) -> None:
        self.producer: Producer = raw.producer(bootstrap, **{"linger.ms": linger_ms})
        self._names = {topic: full_name(prefix, CELL, topic) for topic in INPUT_TOPICS}

    def send(self, word: Any) -> None:
        """Hand over; does not wait."""
        topic = self._names[_HOMES[type(word)]]
        self.producer.produce(topic, encode(word), key=input_key(word))


class Arrived:
    """Counts the records of an output topic from now on, without looking into them."""

    def __init__(self, bootstrap: str, prefix: str, topic: Topic) -> None:
        self._consumer = outputs(bootstrap, prefix, topic)
        self.count = self._waited = 0

    def look(self, wait_s: float = 0.005) -> None:
        """Count what has come, waiting for it at most `wait_s`."""
        if self._consumer.poll(wait_s) is not None:
            self.count += 1 + len(self._consumer.consume(1_000, 0))

    def wait_for(self, more: int) -> None:
        """Wait until so many more than at the last call have come."""
        wanted = self._waited + more
        ends_at = time.monotonic() + PATIENCE_S
        while self.count < wanted:
            assert time.monotonic() < ends_at, f"Expected {wanted} records, got {self.count}"
            self.look(0.1)
        self._waited = wanted


def outputs(bootstrap: str, prefix: str, topic: Topic) -> Consumer:
    """All partitions of an output topic, from their ends as they are now."""
    return raw.consumer(bootstrap, full_name(prefix, CELL, topic), range(PARTITIONS))


def words(consumer: Consumer, wait_s: float) -> Iterator[Any]:
    """What has come, after at most `wait_s`."""
    first = consumer.poll(wait_s)
    for message in [] if first is None else [first, *consumer.consume(1_000, 0)]:
        value = message.value()
        assert not message.error(), f"Expected a record, but {message.error()}"
        assert isinstance(value, bytes), "Expected a value"
        yield decode(value)


def configure(
    bootstrap: str,
    prefix: str,
    *,
    lease_ms: Millis = LEASE_MS,
    member_ttl_ms: Millis = MEMBER_TTL_MS,
    slots: int = PLENTY,
    **pool: Any,
) -> None:
    """Propose piece by piece, each when the one before holds; `pool` has further settings of it."""
    inputs, heard = Inputs(bootstrap, prefix), outputs(bootstrap, prefix, Topic.CAPACITY)
    workers = PoolConfig(domains=(DOMAIN,), lease_ms=lease_ms, **pool)
    for proposal in _proposals(member_ttl_ms, slots, workers):
        inputs.send(proposal)
        ends_at = time.monotonic() + raw.WAIT_S
        while not _holds(proposal, words(heard, 0.1)):
            assert time.monotonic() < ends_at, f"Expected {proposal.name} to be activated"
    heard.close()


def _holds(proposal: ConfigProposed, heard: Iterable[Any]) -> bool:
    for word in heard:
        assert not isinstance(word, ConfigRefused), f"Expected no refusal, got {word}"
        if isinstance(word, ConfigActivated) and word.name == proposal.name:
            return True
    return False


def submission(number: int, tag: str = "") -> OperationSubmitted:
    """The number-th of a series; tenants take turns."""
    return OperationSubmitted(
        tenant=TENANTS[number % len(TENANTS)],
        user=UserId("bench"),
        idempotency_key=f"{tag}{number}",
        pool=POOL,
        domain=DOMAIN,
        effect="keyed",
        prompt_tokens=Tokens(1_000),
        output_tokens_max=Tokens(500),
        payload_bytes=4_000,
        payload_ref="s3://bench/prompt",
        start_within_ms=Millis(86_400_000),
    )


def operation_of(asked: OperationSubmitted) -> OperationId:
    """The id that the submission will have."""
    return operation_id(
        pool=asked.pool, tenant=asked.tenant, user=asked.user, idempotency_key=asked.idempotency_key
    )


def _proposals(member_ttl_ms: Millis, slots: int, workers: PoolConfig) -> Iterator[ConfigProposed]:
    tenant = TenantConfig(waiting_count_max=WAITING_MAX, waiting_bytes_max=WAITING_BYTES_MAX)
    dimensions = tuple(
        DimensionConfig(
            name=DimensionName(name), unit=name, kind=kind, limit=limit, window_ms=window_ms
        )
        for name, kind, limit, window_ms in (
            ("requests", "sliding", PLENTY, WINDOW_MS),
            ("tokens", "sliding", PLENTY, WINDOW_MS),
            ("slots", "concurrency", slots, None),
        )
    )
    by: dict[str, Any] = {"author": "bench", "reason": "nothing but Evenhand may bind"}
    cell = CellConfig(
        tenant_defaults=tenant,
        submissions_per_entry_max=SUBMISSIONS_PER_ENTRY,
        waiting_bytes_max=WAITING_BYTES_MAX,
        member_ttl_ms=member_ttl_ms,
    )
    yield ConfigProposed(scope="cell", name=CELL, cell=cell, **by)
    domain = DomainConfig(
        dimensions=dimensions, waiting_count_max=WAITING_MAX, waiting_bytes_max=WAITING_BYTES_MAX
    )
    yield ConfigProposed(scope="domain", name=DOMAIN, domain=domain, **by)
    yield ConfigProposed(scope="pool", name=POOL, pool=workers, **by)
