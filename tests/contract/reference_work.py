"""What the reference model remembers of an operation and of its attempts: plain fields."""

from dataclasses import dataclass, field
from typing import Any

from schemas import inputs as i
from schemas.codes import Code
from schemas.inputs import DimensionConfig, ResultReported
from schemas.phase import Phase
from tests.contract.reference_prices import Used, Vector

LIVE = frozenset({Phase.GRANTED, Phase.LEASED, Phase.STARTED, Phase.UNKNOWN})
WAITS = frozenset({Phase.WAITING, Phase.PARKED})


@dataclass(eq=False)
class Charge:
    """What one call takes of one dimension of one level; it counts until its exit."""

    scope: str
    domain: str
    dimension: DimensionConfig
    amount: int
    exit_ms: int | None = None
    aged: bool = False
    """It has lived over a takeover, so its exit has the takeover term in it."""


@dataclass(eq=False)
class Attempt:
    """One grant, as long as somebody may want to know of it."""

    asked: i.OperationSubmitted
    takes: Vector
    prices: i.Prices | None
    """Those at which it is paid; none for a run."""
    incarnation: int
    number: int
    epoch: int
    holder: str
    granted_ms: int
    claim_by_ms: int
    charges: list[Charge] = field(default_factory=list)
    lease_ms: int | None = None
    """When its lease ends, in lease time."""
    runtime_ms: int | None = None
    """When it is asked to end, in lease time."""
    accepted_ms: int | None = None
    latest_ms: int = 0
    observed: bool = False
    hold_until_ms: int | None = None
    """Its outcome is unknown until then at most."""
    proof_ms: int | None = None
    closed: bool = False
    """Its reservation is closed though the outcome is unknown."""
    evidence: list[str] = field(default_factory=list)

    def speaks(self, asked: Any) -> bool:
        said = (asked.incarnation, asked.attempt, asked.epoch, asked.member)
        return said == (self.incarnation, self.number, self.epoch, self.holder)

    @property
    def due_ms(self) -> int:
        due_ms = self.hold_until_ms if self.proof_ms is None else self.proof_ms
        assert due_ms is not None, "Expected an uncertain attempt"
        return due_ms

    def step(self, by_ms: int) -> None:
        """Entry time was stepped forward."""
        self.latest_ms += by_ms
        for name in ("accepted_ms", "hold_until_ms", "proof_ms"):
            if getattr(self, name) is not None:
                setattr(self, name, getattr(self, name) + by_ms)


@dataclass
class Work:
    """One operation, with its newest attempt while there is one."""

    asked: i.OperationSubmitted
    phase: Phase = Phase.WAITING
    code: str | None = None
    incarnation: int = 0
    sequence: int = 0
    deadline_ms: int = 0
    forget_ms: int | None = None
    not_before_ms: int | None = None
    cancel: bool = False
    epoch: int = 0
    starts: int = 0
    tries: int = 0
    throttles: int = 0
    not_sent: int = 0
    checkpoint: int = 0
    checkpoint_ref: str | None = None
    turns: int = 0
    attempt: Attempt | None = None
    told: ResultReported | None = None
    """The result that was recorded last, if a result was."""
    ended_epoch: int = 0
    not_executed_epoch: int = 0
    ended_by: tuple[int, str] | None = None
    """Attempt and member of that epoch; None if nobody knows."""
    charged: Used = (0, 0)
    paid: int = 0
    prices: i.Prices | None = None
    """Those of the attempt that was charged last."""
    usage: set[str] = field(default_factory=set)

    def second(self, asked: ResultReported, code: Code) -> Code | None:
        """Why another result is refused; None for one that says what was recorded already."""
        if code is not Code.EPOCH_SUPERSEDED or asked.incarnation != self.incarnation:
            return code
        if 0 < asked.epoch == self.not_executed_epoch and asked.outcome != "not_sent":
            return Code.CONTRADICTS_RECONCILIATION
        told = self.told
        if told is None or told.epoch != asked.epoch or self.ended_epoch != asked.epoch:
            return code
        said = ["member", "member_epoch", "outcome", "prompt_tokens", "output_tokens", "result_ref"]
        differs = any(getattr(told, name) != getattr(asked, name) for name in said)
        return Code.SETTLEMENT_CONFLICT if differs else None
