"""A cell written by hand: each verb appends one true entry, and any field of it may be falsified.

What the verbs do is the shortest true story of stage 1; a test plants one defect and expects the
audit to name it at the offset that the verb returned.
"""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from evenhand.audit.auditor import audit
from evenhand.audit.findings import Findings
from schemas import codec
from schemas.digest import payload_digest
from schemas.entry import Entry, InputRun
from schemas.ids import OperationId, OwnerId, operation_id
from schemas.journal import CAUSE_DISPATCH, CAUSE_TIME
from schemas.topics import INPUT_TOPICS, Topic
from tests.support.budget import DOMAIN
from tests.support.lane_keys import WEIGHTS, LaneKeys
from tests.support.logs import CELL, Logs, extending, partition_of
from tests.support.words import e, i

BEGIN_MS = 1_000_000

LEASE_MS = 60_000

INTENT = (
    "user", "pool", "domain", "lane", "effect", "prompt_tokens", "output_tokens_max",
    "runtime_ms", "turns_max", "tools", "parent",
)  # fmt: skip
"""What an admission repeats of the submission, and a grant of the admission."""

Decided = tuple[int, Any]
"""Cause and event."""


class History:
    """One cell with domain `d`, pool `p`, tenant `t` and member `m`, ready for work."""

    def __init__(self, *, domain: Any = DOMAIN, places: int = 2) -> None:
        self.logs = Logs()
        self.now_ms = BEGIN_MS
        self.head: Entry | None = None
        self.offset = -1
        self.admitted: dict[OperationId, Any] = {}
        self.grants: dict[OperationId, Any] = {}
        self.epochs: dict[OperationId, int] = {}
        self.starts: dict[OperationId, int] = {}
        self.granted_ms: dict[tuple[OperationId, int], int] = {}
        self.started_ms: dict[OperationId, int] = {}
        self.versions: dict[tuple[str, str], int] = {}
        self.lanes = LaneKeys()
        self.sequence = 0
        self.append([], [], takeover=True, events=[(CAUSE_TIME, e.CellBegan(cell=CELL, topics=()))])
        self.configure("domain", "d", domain=domain)
        self.configure("pool", "p", pool=i.PoolConfig())
        self.configure("tenant", "t", tenant=i.TenantConfig(weight=2, lanes=tuple(WEIGHTS)))
        self.join("m", places=places)

    # -- the journal -----------------------------------------------------------------------------

    def append(
        self,
        asked: Sequence[Any],
        decided: Sequence[Any],
        *,
        events: Sequence[Decided] | None = None,
        publish: bool = True,
        **header: Any,
    ) -> int:
        """One entry: words (or runs of records that lie there), and events with cause 0.

        `events` gives events with their causes instead.
        """
        runs = [word if isinstance(word, InputRun) else self.logs.ask(word) for word in asked]
        causes = [(0 if asked else CAUSE_DISPATCH, event) for event in decided]
        for event in [event for _, event in events or ()] or decided:
            self.lanes.see(event)
        self.now_ms += 1
        made = extending(self.head, self.offset, runs, causes if events is None else events)
        self.head = replace(made, **{"time_ms": self.now_ms, **header})
        self.offset = self.logs.append(Topic.JOURNAL, 0, None, codec.encode(self.head))
        if publish:
            self.logs.publish(self.head, self.offset)
        return self.offset

    def takeover(self) -> int:
        """Another owner takes the cell over, at the time of the entry that it extends."""
        assert self.head is not None
        self.now_ms -= 1
        header: Any = {"epoch": self.head.epoch + 1, "owner": OwnerId(b"p" * 16), "takeover": True}
        return self.append([], [], published=self.head.published, **header)

    def wait(self, span_ms: int) -> None:
        """Time passes before the next entry."""
        self.now_ms += span_ms

    def audit(self, **options: Any) -> Findings:
        """What the audit says of all this."""
        return audit(self.logs, CELL, partition_of=partition_of, **options)

    # -- the story -------------------------------------------------------------------------------

    def configure(self, scope: str, name: str, **piece: Any) -> int:
        """A configuration becomes active."""
        version = self.versions.get((scope, name), 0) + 1
        self.versions[scope, name] = version
        about = {"scope": scope, "name": name, "author": "a", "reason": "r", **piece}
        return self.append(
            [i.ConfigProposed(**about)], [e.ConfigActivated(version=version, **about)]
        )

    def join(self, member: str, **changes: Any) -> int:
        """A process becomes an active member of pool `p`."""
        about = {"member": member, "member_epoch": "1"}
        made = e.MemberSlotGranted(**about, pool="p", places=2, join_by_ms=self.now_ms + 5_000)
        made = replace(made, **changes)
        asked = i.JoinRequested(**about, pool=made.pool, places=made.places, tenant=made.tenant)
        self.append([asked], [made])
        return self.append([i.HeartbeatReported(**about)], [e.MemberActivated(**about)])

    def submission(self, key: str, **changes: Any) -> Any:
        """A submission of 30 tokens."""
        made = i.OperationSubmitted(
            tenant="t", user="u", idempotency_key=key, pool="p", domain="d", prompt_tokens=10,
            output_tokens_max=20, start_within_ms=60_000,
        )  # fmt: skip
        return replace(made, **changes)

    def admission(self, word: Any, **changes: Any) -> Any:
        """The event that admits it."""
        self.sequence += 1
        operation = _operation(word)
        assert self.head is not None
        made = e.OperationAdmitted(
            tenant=word.tenant,
            operation=operation,
            incarnation=self.head.height + 1,
            sequence=self.sequence,
            reuse=False,
            payload_bytes=word.payload_bytes,
            payload_digest=payload_digest(word),
            deadline_ms=self.now_ms + 1 + (word.start_within_ms or 0),
            member=word.member,
            **{name: getattr(word, name) for name in INTENT},
        )
        made = replace(made, **changes)
        self.admitted[made.operation] = made
        return made

    def submit(self, key: str, **changes: Any) -> OperationId:
        """Submitted and admitted."""
        word = self.submission(key, **changes)
        self.append([word], [self.admission(word)])
        return _operation(word)

    def rejection(self, word: Any, **changes: Any) -> Any:
        """The event that refuses it for now."""
        operation = _operation(word)
        made = e.OperationRejected(
            tenant=word.tenant, operation=operation, code="x", detail="", binds_key=False
        )
        return replace(made, **changes)

    def quarantine(self, run: InputRun) -> int:
        """A record that cannot be read goes to quarantine."""
        event = e.InputQuarantined(
            topic=INPUT_TOPICS[run.topic], partition=run.partition, offset=run.first,
            code="x", detail="",
        )  # fmt: skip
        return self.append([run], [event])

    def granting(self, operation: OperationId, **changes: Any) -> Any:
        """The event that grants it to member `m`."""
        admitted = self.admitted[operation]
        self.epochs[operation] = self.epochs.get(operation, 0) + 1
        assert self.head is not None
        now_ms = self.now_ms + 1
        self.granted_ms[operation, self.epochs[operation]] = now_ms
        made = e.GrantIssued(
            tenant=admitted.tenant,
            operation=operation,
            incarnation=admitted.incarnation,
            deadline_ms=admitted.deadline_ms,
            attempt=self.starts.get(operation, 0) + 1,
            epoch=self.epochs[operation],
            member="m",
            member_epoch="1",
            claim_by_ms=min(now_ms + 500, admitted.deadline_ms),
            payload_bytes=0,
            send_within_ms=100,
            report_send=True,
            requests=1,
            tokens=admitted.prompt_tokens + admitted.output_tokens_max,
            slots=1,
            cost_ns=1_000,
            weight=2 if admitted.tenant == "t" else 1,
            lift=0,
            lane_key=self.lanes.key(admitted.lane),
            lane_weight=WEIGHTS[admitted.lane],
            config_version=self.versions["domain", "d"],
            authority_epoch=self.head.epoch,
            **{name: getattr(admitted, name) for name in INTENT},
        )
        made = self.grants[operation] = replace(made, **changes)
        return made

    def grant(self, operation: OperationId, **changes: Any) -> int:
        """Granted by the dispatch pass."""
        return self.append([], [self.granting(operation, **changes)])

    def named(self, operation: OperationId) -> dict[str, Any]:
        """The fields that name its newest attempt."""
        grant = self.grants[operation]
        names = ["tenant", "operation", "incarnation", "attempt", "epoch", "member", "member_epoch"]
        return {name: getattr(grant, name) for name in names}

    def starting(self, operation: OperationId, **changes: Any) -> list[Any]:
        """The events that accept its start."""
        self.starts[operation] = self.starts.get(operation, 0) + 1
        self.started_ms[operation] = self.now_ms + 1
        latest_ms = self.now_ms + 1 + 100 + 5
        made = e.StartAccepted(
            **self.named(operation), send_within_ms=100, latest_arrival_ms=latest_ms,
            commits_entitlement=self.starts[operation] == 1,
        )  # fmt: skip
        return [self.claiming(operation), replace(made, **changes)]

    def claiming(self, operation: OperationId, **changes: Any) -> Any:
        """The event that gives its member a lease of a minute."""
        made = e.LeaseClaimed(**self.named(operation), expires_ms=self.now_ms + 1 + LEASE_MS)
        return replace(made, **changes)

    def start(self, operation: OperationId, **changes: Any) -> int:
        """Asked for by the holder, and accepted."""
        asked = i.StartRequested(**self.named(operation))
        return self.append([asked], self.starting(operation, **changes))

    def sent(self, operation: OperationId, *, delay_ms: int, latest_ms: int) -> int:
        """The send delay is reported and believed."""
        asked = i.SendReported(**self.named(operation), send_delay_ms=delay_ms)
        event = e.SendObserved(**self.named(operation), latest_arrival_ms=latest_ms)
        return self.append([asked], [event])

    def recording(self, operation: OperationId, outcome: str) -> Any:
        """The event that records an outcome."""
        return e.ResultRecorded(**self.named(operation), outcome=outcome, late=False)

    def settling(self, operation: OperationId, **changes: Any) -> Any:
        """The event that settles its reservation, as it was made if no use was told."""
        grant = self.grants[operation]
        used = changes.get("tokens_actual")
        made = e.ReservationSettled(
            **self.named(operation), domain=grant.domain, tokens_reserved=grant.tokens,
            overdraft_tokens=0, held_ms=self.held_ms(operation), cost_reserved_ns=grant.cost_ns,
            cost_ns=grant.cost_ns, money_micros=grant.money_micros,
            input_tokens_actual=0 if used is None else min(grant.prompt_tokens, used),
        )  # fmt: skip
        return replace(made, **changes)

    def held_ms(self, operation: OperationId) -> int:
        """How long its newest attempt has held its slot, if it ends with the next entry."""
        return self.now_ms + 1 - self.granted_ms[operation, self.grants[operation].epoch]

    def result(self, operation: OperationId, outcome: str = "success", **changes: Any) -> int:
        """Reported, recorded and settled; the use that is settled is told."""
        settled, told = self.settling(operation, **changes), {}
        if settled.tokens_actual is not None:
            output_tokens = settled.tokens_actual - settled.input_tokens_actual
            told = {"prompt_tokens": settled.input_tokens_actual, "output_tokens": output_tokens}
        asked = i.ResultReported(**self.named(operation), outcome=outcome, **told)
        recorded = replace(self.recording(operation, outcome), **told)
        return self.append([asked], [recorded, settled])

    def not_sent(self, operation: OperationId) -> int:
        """An accepted start that led to no call."""
        asked = i.ResultReported(**self.named(operation), outcome="not_sent")
        released = e.ReservationReleased(**self.named(operation), reason="not_sent")
        return self.append([asked], [self.recording(operation, "not_sent"), released])

    def expire_grant(self, operation: OperationId) -> int:
        """Its claim-by passes."""
        self.now_ms = self.grants[operation].claim_by_ms - 1
        named = self.named(operation)
        events = [e.GrantExpired(**named), e.ReservationExpired(**named)]
        return self.append([], [], events=[(CAUSE_TIME, event) for event in events])

    def run(self, operation: OperationId) -> int:
        """Granted, started and settled."""
        self.grant(operation)
        self.start(operation)
        return self.result(operation)


def _operation(word: Any) -> OperationId:
    return operation_id(
        pool=word.pool, tenant=word.tenant, user=word.user, idempotency_key=word.idempotency_key
    )
