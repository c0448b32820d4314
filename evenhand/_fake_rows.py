"""What the double remembers of members and operations, and what it says of an attempt."""

import time
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from evenhand._attempt import Checkpoint
from evenhand._words import bodies, codes, events, ids, inputs, units

Inbox = SimpleQueue[Any]


@dataclass(slots=True)
class Member:
    """One process that joined."""

    epoch: ids.MemberEpoch
    pool: ids.PoolId
    places: int
    inbox: Inbox
    draining: bool = False
    offers: bool = False
    """Each of its free places is a start request that stands."""


@dataclass(slots=True)
class Row:
    """One operation."""

    word: inputs.OperationSubmitted
    state: bodies.State = bodies.State.WAITING
    grant: events.GrantIssued | None = None
    epoch: int = 0
    result: inputs.ResultReported | None = None
    cancel_requested: bool = False
    failures: int = 0
    """Attempts that failed or stayed unknown."""
    throttles: int = 0
    code: codes.Code | None = None
    """Why it is dead."""
    checkpoint: Checkpoint | None = None
    turns: int = 0
    """Turns taken, if it is a run."""

    @property
    def takes_a_slot(self) -> bool:
        """A run holds no budget itself; its turns do."""
        return self.word.turns_max is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What the cell allows."""

    domains: tuple[str, ...]
    pools: tuple[str, ...]
    slots: int
    waiting_max: int
    send_within_ms: int
    attempts_max: int
    standing: tuple[str, ...]
    """Pools with standing starts."""


def clock_ms() -> units.Millis:
    """The cell's time, of which members know a bound."""
    return units.Millis(time.monotonic_ns() // units.NANOS_PER_MILLI)


def grant(
    operation: ids.OperationId, row: Row, name: ids.MemberId, member: Member, bounds: Bounds
) -> events.GrantIssued:
    """The grant of the row's newest attempt to a member."""
    word = row.word
    stands = member.offers and word.effect in ("read_only", "keyed")
    ceiling = word.output_tokens_max or units.Tokens(0)
    return events.GrantIssued(
        tenant=word.tenant,
        operation=operation,
        incarnation=1,
        attempt=row.epoch,
        epoch=row.epoch,
        member=name,
        member_epoch=member.epoch,
        claim_by_ms=units.Millis(0),
        user=word.user,
        pool=word.pool,
        domain=word.domain,
        lane=word.lane,
        tier=word.tier,
        connection=word.connection,
        effect=word.effect,
        payload_bytes=word.payload_bytes,
        payload_ref=word.payload_ref,
        prompt_tokens=word.prompt_tokens,
        output_tokens_max=ceiling,
        deadline_ms=units.Millis(0),
        send_within_ms=units.Millis(bounds.send_within_ms),
        report_send=True,
        requests=units.Requests(1),
        tokens=units.Tokens(word.prompt_tokens + ceiling),
        slots=units.Slots(1),
        cost_ns=units.Nanos(0),
        weight=1,
        lift=0,
        config_version=1,
        authority_epoch=1,
        runtime_ms=word.runtime_ms,
        turns_max=word.turns_max,
        tools=word.tools,
        parent=word.parent,
        checkpoint=row.checkpoint.number if row.checkpoint else 0,
        checkpoint_ref=row.checkpoint.state_ref if row.checkpoint else None,
        started_ms=clock_ms() if stands else None,
    )
