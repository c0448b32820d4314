"""The core alone, driven entry by entry over rows in memory: given inputs, then events."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from schemas import events as e
from schemas import inputs as i
from schemas.entry import InputRun
from schemas.ids import OperationId, operation_id
from schemas.topics import INPUT_TOPICS, TOPICS
from streams.core.decider import Acted, Decided, genesis, step
from streams.core.evolution import evolve
from streams.core.opening import open_state
from streams.core.outcomes import Source, Taken
from tests.support.rows import MemoryRows

TOPIC_OF = {kind: INPUT_TOPICS.index(t) for t in INPUT_TOPICS for kind in TOPICS[t].holds}
DAYS: dict[str, Any] = {
    "reset_ms": 500,
    "later_resets_ms": (1_001_100, 1_009_000, 1_021_500),
    "reset_uncertainty_ms": 7,
}
"""Windows of 9 s, of which some are longer or shorter after a cell has begun."""


@dataclass
class Made:
    """A header as `State.begin` reads it."""

    height: int
    epoch: int
    time_ms: int
    takeover: bool = False
    generation: int = 1
    time_step_ms: int | None = None
    inputs: tuple[InputRun, ...] = ()


@dataclass
class Core:
    """One cell without a shell: `run` makes an entry, `follower` folds the same entries."""

    rows: MemoryRows = field(default_factory=MemoryRows)
    height: int = 0
    epoch: int = 1
    now_ms: int = 1_000_000
    silence_ms: int = 0
    """How long the scheduler will have been silent before the next entry."""
    entries: list[tuple[Made, list[Decided]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state = open_state(self.rows)
        self.offset = 0
        if not self.rows.values:
            made = Made(0, 1, self.now_ms, takeover=True)
            self.state.begin(made)
            decided = genesis("cell", [i.TopicIdentity(name="journal", id="x", partitions=1)])
            for one in decided:
                evolve(self.state, one.event)
            self._keep(made, decided)

    def run(self, *asked: i.Input, after_ms: int = 0, timers: bool = True) -> list[e.Event]:
        """One entry; its events. `after_ms` moves time first."""
        silence_ms, self.silence_ms = self.silence_ms, 0
        self.now_ms += after_ms
        self.height += 1
        made = Made(self.height, self.epoch, self.now_ms)
        taken = []
        for one in asked:
            taken.append(Taken(Source(TOPIC_OF[type(one)], 0, self.offset), one))
            self.offset += 1
        self.state.begin(made)
        decided = step(self.state, taken, Acted(timers, silence_ms))
        self._keep(made, decided)
        return [one.event for one in decided]

    def settle_down(self, *asked: i.Input, after_ms: int = 0) -> list[e.Event]:
        """Entries until a pass is complete."""
        events = self.run(*asked, after_ms=after_ms)
        while self.state.more:
            events += self.run()
        return events

    def take_over(
        self, *, step_ms: int | None = None, silence_ms: int = 0, reopen: bool = True
    ) -> None:
        """A new owner, with memory made from the rows alone."""
        self.silence_ms = silence_ms
        if reopen:
            self.state = open_state(self.rows)
        self.height += 1
        self.epoch += 1
        made = Made(self.height, self.epoch, self.now_ms, takeover=True, time_step_ms=step_ms)
        self.state.begin(made)
        self._keep(made, [])

    def fold(self, *events: e.Event) -> None:
        """An entry of another scheduler: its events, and no decision of ours."""
        self.height += 1
        made = Made(self.height, self.epoch, self.now_ms)
        self.state.begin(made)
        for event in events:
            evolve(self.state, event)
        self._keep(made, [Decided(0, event) for event in events])

    def follower(self) -> "MemoryRows":
        """The rows that a pure fold of the same entries gives."""
        rows = MemoryRows()
        state = open_state(rows)
        for made, decided in self.entries:
            state.begin(made)
            for one in decided:
                evolve(state, one.event)
            rows.write(state.drain())
        return rows

    def _keep(self, made: Made, decided: list[Decided]) -> None:
        self.rows.write(self.state.drain())
        self.entries.append((made, decided))


# -- builders: one per input, every field with a plain default ------------------------------------


def dimension(name: str, limit: int, **over: Any) -> i.DimensionConfig:
    """Without a pace: what fits goes at once, unless a test is about that."""
    kind = over.get("kind", {"slots": "concurrency"}.get(name, "sliding"))
    unit = name.partition("-")[0]
    window = None if kind == "concurrency" else 60_000
    fields = {"name": name, "unit": unit, "kind": kind, "limit": limit, "window_ms": window}
    fields["pace_percent"] = 100 if kind in ("sliding", "fixed") else None
    return i.DimensionConfig(**{**fields, **over})


def config(
    scope: str, name: str, body: Any, *, version: int | None = None, author: str = "op"
) -> i.ConfigProposed:
    bodies = {"cell": None, "domain": None, "tenant": None, "pool": None, scope: body}
    return i.ConfigProposed(
        scope=scope, name=name, version=version, author=author, reason="test", **bodies
    )


def domain(*dimensions: i.DimensionConfig, name: str = "d", **over: Any) -> i.ConfigProposed:
    return config("domain", name, i.DomainConfig(dimensions=dimensions, **over))


def pool(name: str = "p", **over: Any) -> i.ConfigProposed:
    return config("pool", name, i.PoolConfig(**over))


def tenant(name: str, **over: Any) -> i.ConfigProposed:
    return config("tenant", name, i.TenantConfig(**over))


def join(member: str = "m", *, places: int = 1, **over: Any) -> i.JoinRequested:
    fields = {"member": member, "member_epoch": "e1", "pool": "p", "places": places, "tenant": None}
    return i.JoinRequested(**{**fields, **over})


def heartbeat(
    member: str = "m", member_epoch: str = "e1", *held: e.GrantIssued, sent_ms: int | None = None
) -> i.HeartbeatReported:
    """A sign of life that names the leases of these grants, and offers free places at a clock."""
    leases = tuple(i.LeaseName(operation=one.operation, epoch=one.epoch) for one in held)
    return i.HeartbeatReported(
        member=member, member_epoch=member_epoch, leases=leases, sent_ms=sent_ms
    )


def renewal(*held: e.GrantIssued) -> i.HeartbeatReported:
    """A heartbeat of the member that holds the first of these grants."""
    return heartbeat(held[0].member, held[0].member_epoch, *held)


def submitted(tenant: str, key: str, **over: Any) -> i.OperationSubmitted:
    fields = {
        "tenant": tenant,
        "user": "u",
        "idempotency_key": key,
        "pool": "p",
        "domain": "d",
        "prompt_tokens": 10,
        "output_tokens_max": 90,
        "start_within_ms": 3_600_000,
    }
    return i.OperationSubmitted(**{**fields, **over})


def id_of(asked: i.OperationSubmitted) -> OperationId:
    return operation_id(
        pool=asked.pool, tenant=asked.tenant, user=asked.user, idempotency_key=asked.idempotency_key
    )


_NAMED = ("tenant", "operation", "incarnation", "attempt", "epoch", "member", "member_epoch")


def named(event: Any) -> dict[str, Any]:
    return {name: getattr(event, name) for name in _NAMED}


def claim(grant: e.GrantIssued, **over: Any) -> i.ClaimRequested:
    return i.ClaimRequested(**{**named(grant), **over})


def start(grant: e.GrantIssued, **over: Any) -> i.StartRequested:
    return i.StartRequested(**{**named(grant), **over})


def sent(grant: e.GrantIssued, send_delay_ms: int = 0, **over: Any) -> i.SendReported:
    return i.SendReported(**{**named(grant), "send_delay_ms": send_delay_ms, **over})


def result(grant: e.GrantIssued, outcome: str = "success", **over: Any) -> i.ResultReported:
    usage: dict[str, Any] = {
        "prompt_tokens": grant.prompt_tokens,
        "output_tokens": grant.output_tokens_max,
        "send_delay_ms": None,
        "result_ref": None,
        "error": None,
    }
    return i.ResultReported(**{**named(grant), "outcome": outcome, **usage, **over})


def checkpoint(grant: e.GrantIssued, number: int, **over: Any) -> i.CheckpointReported:
    fields = {**named(grant), "number": number, "state_ref": f"state {number}"}
    return i.CheckpointReported(**{**fields, **over})


def usage(grant: e.GrantIssued, tokens: int, **over: Any) -> i.UsageReported:
    fields = {"unit": "tokens", "prompt_tokens": 0, "output_tokens": tokens, "evidence": "u1"}
    return i.UsageReported(**{**named(grant), **fields, **over})


def evidence(grant: e.GrantIssued, verdict: str, **over: Any) -> i.OutcomeEvidence:
    fields = {
        "tenant": grant.tenant,
        "operation": grant.operation,
        "incarnation": grant.incarnation,
        "epoch": grant.epoch,
        "evidence": "call 7",
        "confidence": "provider_reported",
    }
    return i.OutcomeEvidence(**{**fields, "verdict": verdict, **over})


def reconcile(grant: e.GrantIssued, verdict: str, **over: Any) -> i.ReconcileRequested:
    fields = {
        "tenant": grant.tenant,
        "operation": grant.operation,
        "author": "op",
        "reason": "why",
    }
    return i.ReconcileRequested(**{**fields, "verdict": verdict, **over})


def retry(grant: e.GrantIssued, start_within_ms: int = 60_000, **over: Any) -> i.RetryRequested:
    fields = {"tenant": grant.tenant, "operation": grant.operation, "author": "op", "reason": "now"}
    return i.RetryRequested(**{**fields, "start_within_ms": start_within_ms, **over})


def only(kind: type, events: Sequence[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]
