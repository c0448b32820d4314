"""A journal told by hand: real entries with real events, for whoever reads and does not decide."""

from collections.abc import Sequence
from threading import Condition
from typing import Any

from projections.ports import Record
from schemas.codec import encode
from schemas.digest import payload_digest
from schemas.ids import operation_id
from schemas.journal import Entry, EntryEvent, InputRun
from tests.support.words import e, i

START_MS = 1_700_000_000_000
_derive: Any = operation_id
OWNER = b"owner-of-the-test"[:16]


class ToldJournal:
    """`Entries` over records in memory; `tell` appends the next accepted entry."""

    def __init__(self, topic_id: str = "journal-1") -> None:
        self.records: list[Record] = []
        self.time_ms = START_MS
        self._topic_id = topic_id
        self._next = 0
        self._head = -1
        self._height = 0
        self.epoch = 1
        self._taken: dict[tuple[int, int], int] = {}
        self._arrived = Condition()

    def tell(self, *events: Any, inputs: Sequence[tuple[int, int, int]] = (), **fields: Any) -> int:
        """Append an entry.

        Args:
            events: an event, or (cause, event); a cause is an ordinal over `inputs`.
            inputs: (topic, partition, count) taken, in order.
            fields: of `Entry`, to tell a lie.

        Returns: its offset.
        """
        runs = []
        for topic, partition, count in inputs:
            first = self._taken.get((topic, partition), 0)
            self._taken[topic, partition] = first + count
            runs.append(InputRun(topic=topic, partition=partition, first=first, next=first + count))
        told: list[Any] = [event if isinstance(event, tuple) else (-2, event) for event in events]
        self.time_ms += 1
        entry: dict[str, Any] = {
            "generation": 1,
            "previous": self._head,
            "height": self._height,
            "epoch": self.epoch,
            "owner": OWNER,
            "takeover": self._height == 0,
            "time_ms": self.time_ms,
            "clock_shift_ms": 0,
            "published": -1,
            "core_version": 1,
            "state_hash": b"\0" * 32,
            "inputs": tuple(runs),
            "events": tuple(EntryEvent(cause=cause, body=encode(word)) for cause, word in told),
        }
        offset = self.append(encode(Entry(**{**entry, **fields})))
        if not fields:
            self._head = offset
            self._height += 1
        return offset

    def take_over(self) -> int:
        """Another owner's first entry."""
        self.epoch += 1
        self._height += 1
        offset = self.tell(height=self._height - 1, takeover=True)
        self._head = offset
        return offset

    def append(self, value: bytes) -> int:
        """Any record, noise included."""
        with self._arrived:
            self.records.append(Record(len(self.records), value))
            self._arrived.notify_all()
            return len(self.records) - 1

    def topic_id(self) -> str:
        return self._topic_id

    def begin(self, offset: int) -> None:
        self._next = offset

    def read(self, limit: int, wait_ms: int) -> Sequence[Record]:
        with self._arrived:
            self._arrived.wait_for(lambda: self._next < len(self.records), wait_ms / 1000)
            found = self.records[self._next : self._next + limit]
        self._next += len(found)
        return found

    def end(self) -> int | None:
        return len(self.records)

    def close(self) -> None:
        pass


SLIDING = i.DimensionConfig(
    name="tokens-1s", unit="tokens", kind="sliding", limit=1000, window_ms=1000
)
SLOTS = i.DimensionConfig(name="slots", unit="slots", kind="concurrency", limit=4)


def configured() -> list[Any]:
    """Events of a small cell: pool `p`, domain `d`, tenants `acme` (weight 2) and `bolt`."""
    common = {"version": 1, "author": "test", "reason": "test"}
    return [
        e.ConfigActivated(
            scope="cell", name="main", cell=i.CellConfig(tenant_defaults=i.TenantConfig()), **common
        ),
        e.ConfigActivated(
            scope="domain", name="d", domain=i.DomainConfig(dimensions=(SLIDING, SLOTS)), **common
        ),
        e.ConfigActivated(scope="pool", name="p", pool=i.PoolConfig(), **common),
        e.ConfigActivated(scope="tenant", name="acme", tenant=i.TenantConfig(weight=2), **common),
        e.ConfigActivated(scope="tenant", name="bolt", tenant=i.TenantConfig(), **common),
    ]


def began() -> Any:
    return e.CellBegan(cell="main", topics=())


class Told:
    """One operation: its events with the fields that do not matter filled in."""

    def __init__(
        self,
        key: str = "k",
        *,
        tenant: str = "acme",
        user: str = "u",
        sequence: int = 1,
        member: str = "m1",
        tokens: int = 300,
        lane: str = "interactive",
        payload_bytes: int = 10,
    ) -> None:
        self.submitted = i.OperationSubmitted(
            tenant=tenant,
            user=user,
            idempotency_key=key,
            pool="p",
            domain="d",
            lane=lane,
            prompt_tokens=tokens - 100,
            output_tokens_max=100,
            payload_bytes=payload_bytes,
            start_within_ms=60_000,
        )
        self.id: bytes = _derive(pool="p", tenant=tenant, user=user, idempotency_key=key)
        self.tenant = tenant
        self.sequence = sequence
        self.tokens = tokens
        self.attempt: dict[str, Any] = {
            "tenant": tenant,
            "operation": self.id,
            "incarnation": 1,
            "attempt": 1,
            "epoch": 1,
            "member": member,
            "member_epoch": "e1",
        }

    def admitted(self) -> Any:
        asked = self.submitted
        return e.OperationAdmitted(
            tenant=asked.tenant,
            operation=self.id,
            incarnation=1,
            sequence=self.sequence,
            reuse=False,
            user=asked.user,
            pool=asked.pool,
            domain=asked.domain,
            lane=asked.lane,
            effect=asked.effect,
            prompt_tokens=asked.prompt_tokens,
            output_tokens_max=100,
            payload_bytes=asked.payload_bytes,
            payload_digest=payload_digest(asked),
            deadline_ms=START_MS + 60_000,
        )

    def rejected(self, code: str, *, binds: bool, **more: Any) -> Any:
        return e.OperationRejected(
            tenant=self.tenant,
            operation=self.id,
            code=code,
            detail=f"Expected otherwise, but {code}",
            binds_key=binds,
            payload_digest=payload_digest(self.submitted) if binds else None,
            **more,
        )

    def granted(self) -> Any:
        asked = self.submitted
        return e.GrantIssued(
            **self.attempt,
            claim_by_ms=START_MS + 30_000,
            user=asked.user,
            pool=asked.pool,
            domain=asked.domain,
            lane=asked.lane,
            effect=asked.effect,
            payload_bytes=asked.payload_bytes,
            prompt_tokens=asked.prompt_tokens,
            output_tokens_max=100,
            deadline_ms=START_MS + 60_000,
            send_within_ms=200,
            report_send=True,
            requests=1,
            tokens=self.tokens,
            slots=1,
            cost_ns=1_000_000,
            weight=2,
            lift=0,
            config_version=1,
            authority_epoch=1,
        )

    def started(self, latest_arrival_ms: int) -> list[Any]:
        return [
            e.LeaseClaimed(**self.attempt),
            e.StartAccepted(
                **self.attempt, send_within_ms=200, latest_arrival_ms=latest_arrival_ms
            ),
        ]

    def unknown(self, hold_until_ms: int = START_MS + 900_000) -> Any:
        return e.OutcomeMarkedUnknown(
            **self.attempt, domain="d", cause="lease_expired", hold_until_ms=hold_until_ms
        )

    def reconciled(self, source: str, verdict: str, **more: Any) -> Any:
        return e.OutcomeReconciled(
            **self.attempt, source=source, verdict=verdict, confidence="provider_reported", **more
        )

    def again(self) -> Any:
        """The same operation's next attempt."""
        next_one = Told.__new__(Told)
        vars(next_one).update(vars(self))
        number = self.attempt["attempt"] + 1
        next_one.attempt = {**self.attempt, "attempt": number, "epoch": number}
        return next_one

    def scheduled(self, cause: str, not_before_ms: int) -> Any:
        return e.RetryScheduled(
            tenant=self.tenant,
            operation=self.id,
            incarnation=1,
            attempt=self.attempt["attempt"],
            epoch=self.attempt["epoch"],
            cause=cause,
            not_before_ms=not_before_ms,
        )

    def dead(self, reason: str = "attempts-exhausted") -> Any:
        return e.OperationDeadLettered(
            tenant=self.tenant, operation=self.id, incarnation=1, reason=reason
        )

    def sent(self, latest_arrival_ms: int) -> Any:
        return e.SendObserved(**self.attempt, latest_arrival_ms=latest_arrival_ms)

    def result(self, outcome: str = "success") -> Any:
        return e.ResultRecorded(
            **self.attempt, outcome=outcome, late=False, prompt_tokens=200, output_tokens=40
        )

    def settled(self, tokens_actual: int | None = 240) -> Any:
        return e.ReservationSettled(
            **self.attempt,
            domain="d",
            tokens_reserved=self.tokens,
            tokens_actual=tokens_actual,
            overdraft_tokens=0,
            held_ms=100,
            cost_reserved_ns=1_000_000,
            cost_ns=800_000,
        )

    def released(self, reason: str = "not_sent") -> Any:
        return e.ReservationReleased(**self.attempt, reason=reason)
