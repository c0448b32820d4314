"""Whose head leaves its queue, in the reference model: every head looked at anew at every turn."""

from collections import deque
from typing import NamedTuple

from msgspec.structs import replace

from schemas import events as e
from schemas.ids import OperationId
from schemas.lanes import BULK
from schemas.phase import Phase
from tests.contract.reference_ledger import Level, ceil
from tests.contract.reference_results import Results
from tests.contract.reference_work import Attempt, Work

RUNS = frozenset({Phase.GRANTED, Phase.LEASED, Phase.STARTED})


class Turn(NamedTuple):
    """What the other's pass decided about an operation."""

    operation: OperationId
    by_floor: bool


class Turns(Results):
    """Heads, free members, and the grants that follow."""

    def next_turn(self, domain: str, told: deque[Turn]) -> bool:
        """One head of the domain leaves its queue; False if none has to."""
        if domain in self.ledger.pauses:
            return False
        heads: dict[tuple[str, str, str], tuple[int, OperationId]] = {}
        for operation, work in self.work.items():
            if work.phase is Phase.WAITING and work.asked.domain == domain:
                queue = (work.asked.tenant, work.asked.lane, work.asked.pool)
                heads[queue] = min(heads.get(queue, (work.sequence, operation)),
                                   (work.sequence, operation))  # fmt: skip
        verdicts = {
            operation: self.verdict(self.work[operation])
            for (_, _, pool), (_, operation) in sorted(heads.items(), key=lambda head: head[1])
            if self.free_members(pool)
        }
        fitting = [operation for operation, verdict in verdicts.items() if verdict == "fits"]
        turn = told[0] if told else None
        verdict = None if turn is None else verdicts.get(turn.operation)
        if turn is not None and verdict in ("deadline", "not_before"):
            self.end(turn.operation, e.OperationExpired, Phase.EXPIRED, verdict)
        elif turn is not None and verdict in ("fits", "floor"):
            fits = turn.operation in fitting
            queue = [one for one in fitting if self.lane(one) == self.lane(turn.operation)]
            fifo = fits and self.ledger.domains[domain].policy == "fifo"
            self.grant(queue[0] if fifo else turn.operation, by_floor=not fits)
        elif fitting:
            self.grant(fitting[0], by_floor=False)
        else:
            return False
        if told:
            told.popleft()
        return True

    def lane(self, operation: OperationId) -> str:
        return self.work[operation].asked.lane

    def verdict(self, work: Work) -> str:
        """As the ledger has it; and "floor", if bulk would have to take of its reserve."""
        verdict = self.ledger.verdict(work, self.now_ms)
        if verdict != "fits" or work.asked.lane != BULK:
            return verdict
        percent = self.domain(work).bulk_reserve_percent
        levels = self.ledger.levels(work.asked.domain, work.asked.tenant)
        lower = [less(level, percent) for level in levels]
        return "fits" if self.ledger.fits(lower, work.tokens) else "floor"

    def free_members(self, pool: str) -> list[tuple[int, str]]:
        """Minus the free places, and the name."""
        busy = [w.attempt for w in self.work.values() if w.phase in RUNS and w.attempt]
        holders = [attempt.holder for attempt in busy]
        free = {m: one.places - holders.count(m) for m, one in self.members.items()}
        return [(-free[m], m) for m, one in self.members.items() if one.pool == pool and free[m]]

    def grant(self, operation: OperationId, *, by_floor: bool) -> None:
        work = self.work[operation]
        work.phase, work.epoch = Phase.GRANTED, work.epoch + 1
        holder = min(self.free_members(work.asked.pool))[1]
        claim_by_ms = min(self.now_ms + self.domain(work).claim_by_ms, work.deadline_ms)
        attempt = work.attempt = Attempt(
            work.asked, work.tokens, work.incarnation, work.starts + 1, work.epoch, holder,
            self.now_ms, claim_by_ms,
        )  # fmt: skip
        self.ledger.hold(attempt)
        named = (holder, attempt.number, work.epoch, claim_by_ms, work.tokens or 0)
        stands = self.ledger.pools[work.asked.pool].standing and work.asked.effect != "unsafe"
        stands = stands and self.offered.get(holder) == self.epoch
        progress = (work.checkpoint, work.checkpoint_ref, self.unstepped_ms if stands else None)
        self.say(e.GrantIssued, operation, *named, *progress, by_floor)
        if stands:
            self.lease(operation, attempt)
            self.accept(operation, attempt)


def less(level: Level, percent: int) -> Level:
    """The same dimension with so much less of a limit: of slots all but one at most."""
    scope, domain, one = level
    kept = ceil(one.limit * percent, 100)
    if one.kind == "concurrency":
        kept = min(kept, max(one.limit - 1, 0))
    return scope, domain, replace(one, limit=one.limit - kept)
