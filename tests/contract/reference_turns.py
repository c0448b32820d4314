"""Whose head leaves its queue, in the reference model: every head looked at anew at every turn."""

from collections import deque
from typing import NamedTuple

from msgspec.structs import replace

from schemas import events as e
from schemas import inputs as i
from schemas.ids import OperationId
from schemas.lanes import BULK
from schemas.phase import Phase
from tests.contract.reference_ledger import Level, ceil
from tests.contract.reference_saving import Saving
from tests.contract.reference_work import Attempt, Work

RUNS = frozenset({Phase.GRANTED, Phase.LEASED, Phase.STARTED})


class Turn(NamedTuple):
    """What the other's pass decided about an operation."""

    operation: OperationId
    by_floor: bool
    skipped: OperationId | None


class Turns(Saving):
    """Heads, free members, and the grants that follow."""

    def next_turn(self, domain: str, told: deque[Turn]) -> bool:
        """One head of the domain leaves its queue; False if none has to."""
        self.forget_gone()
        if domain in self.ledger.pauses:
            return False
        heads: dict[tuple[str, str, str], tuple[int, OperationId]] = {}
        for operation, work in self.work.items():
            if work.phase is Phase.WAITING and work.asked.domain == domain:
                queue = (work.asked.tenant, work.asked.lane, place(work.asked))
                heads[queue] = min(heads.get(queue, (work.sequence, operation)),
                                   (work.sequence, operation))  # fmt: skip
        verdicts = {
            operation: self.verdict(self.work[operation])
            for (_, _, where), (_, operation) in sorted(heads.items(), key=lambda head: head[1])
            if self.free_members(where)
        }
        first = self.first_in_line(domain, heads, told)
        if first is not None:
            return first
        turn = told[0] if told else None
        verdict = None if turn is None else verdicts.get(turn.operation)
        fitting = [operation for operation, verdict in verdicts.items() if verdict == "fits"]
        if turn is not None and verdict in ("deadline", "not_before"):
            self.end(turn.operation, e.OperationExpired, Phase.EXPIRED, verdict)
        elif turn is not None and verdict in ("fits", "floor", "maybe"):
            queue = [one for one in fitting if self.lane(one) == self.lane(turn.operation)]
            fifo = verdict == "fits" and self.ledger.domains[domain].policy == "fifo"
            passed = turn.skipped
            if passed is not None and verdicts.get(passed) in (None, "fits"):
                passed = None
            self.grant(queue[0] if fifo else turn.operation, passed)
        elif fitting:
            self.grant(fitting[0], None)
        else:
            return False
        if told:
            told.popleft()
        return True

    def first_in_line(
        self, domain: str, heads: dict[tuple[str, str, str], tuple[int, OperationId]],
        told: deque[Turn],
    ) -> bool | None:  # fmt: skip
        """What becomes of the saver, or of who may save now; None if nothing does."""
        for operation in self.due(domain):
            asked = self.work[operation].asked
            _, head = heads[asked.tenant, asked.lane, place(asked)]
            if not self.free_members(place(asked)):
                continue
            verdict = self.unheld(self.work[head])
            turn = told[0] if told else None
            by_floor = verdict == "floor" and turn == Turn(head, by_floor=True, skipped=None)
            if verdict == "fits" or by_floor:
                self.grant(head, None)
            elif not self.passes(domain, operation, turn):
                return None
            elif verdict == "deadline" or (verdict == "not_before" and domain not in self.savers):
                self.end(head, e.OperationExpired, Phase.EXPIRED, verdict)
            elif domain in self.savers:
                return None
            else:
                self.begin(operation)
                return True
            if told:
                told.popleft()
            return True
        return None

    def passes(self, domain: str, operation: OperationId, turn: Turn | None) -> bool:
        """Whether the other looks at the domain now: it decides here, or said that this one saves.

        Nobody is passed over where nothing is decided, so that nobody has to save either; and whose
        deadline has passed there waits for his timer, which a silence holds back.
        """
        decides = turn is not None and self.work[turn.operation].asked.domain == domain
        return decides or operation in self.said_to_save

    def lane(self, operation: OperationId) -> str:
        return self.work[operation].asked.lane

    def unheld(self, work: Work) -> str:
        """As the ledger has it; and "floor", if bulk would have to take of its reserve."""
        verdict = self.ledger.verdict(work, self.now_ms)
        if verdict == "fits" and self.takes_reserve(work):
            return "floor"
        return verdict

    def verdict(self, work: Work) -> str:
        """And "held", if it would take of what the saver needs; "maybe", if nobody here knows."""
        verdict = self.unheld(work)
        if verdict not in ("fits", "floor"):
            return verdict
        levels = self.ledger.levels(work.asked.domain, work.asked.tenant)
        lower = [less(level, self.vector(work, level)) for level in levels]
        if not self.ledger.fits(lower, self.ledger.takes(work)):
            return "maybe" if self.may_be_held_back(work) else "held"
        if work.asked.lane == BULK and self.both_bulk(work):
            percent = self.domain(work).bulk_reserve_percent
            lowest = [less(level, kept(level, percent)) for level in lower]
            return verdict if self.ledger.fits(lowest, self.ledger.takes(work)) else "floor"
        return verdict

    def takes_reserve(self, work: Work) -> bool:
        if work.asked.lane != BULK:
            return False
        percent = self.domain(work).bulk_reserve_percent
        levels = self.ledger.levels(work.asked.domain, work.asked.tenant)
        lower = [less(level, kept(level, percent)) for level in levels]
        return not self.ledger.fits(lower, self.ledger.takes(work))

    def free_members(self, where: str) -> list[tuple[int, str]]:
        """Minus the free places, and the name."""
        busy = [w.attempt for w in self.work.values() if w.phase in RUNS and w.attempt]
        holders = [attempt.holder for attempt in busy]
        free = {m: one.places - holders.count(m) for m, one in self.members.items()}
        return [(-free[m], m) for m, one in self.members.items() if place(one) == where and free[m]]

    def grant(self, operation: OperationId, skipped: OperationId | None) -> None:
        work = self.work[operation]
        by_floor = self.takes_reserve(work)
        if skipped is not None:
            self.pass_over(skipped)
        self.forget(operation)
        work.phase, work.epoch = Phase.GRANTED, work.epoch + 1
        holder = min(self.free_members(place(work.asked)))[1]
        claim_by_ms = min(self.now_ms + self.domain(work).claim_by_ms, work.deadline_ms)
        takes, is_run = self.ledger.takes(work), work.asked.turns_max is not None
        prices = None if is_run else self.domain(work).prices
        attempt = work.attempt = Attempt(
            work.asked, takes, prices, work.incarnation, work.starts + 1, work.epoch, holder,
            self.now_ms, claim_by_ms,
        )  # fmt: skip
        self.ledger.hold(attempt)
        amounts = (takes.get("tokens", 0), takes.get("money", 0))
        named = (holder, attempt.number, work.epoch, claim_by_ms, *amounts)
        stands = self.ledger.pools[work.asked.pool].standing and work.asked.effect != "unsafe"
        stands = stands and self.offered.get(holder) == self.epoch
        progress = (work.checkpoint, work.checkpoint_ref, self.unstepped_ms if stands else None)
        self.say(e.GrantIssued, operation, *named, *progress, by_floor, skipped)
        if stands:
            self.lease(operation, attempt)
            self.accept(operation, attempt)


def place(asked: i.OperationSubmitted | i.JoinRequested) -> str:
    """Where it queues, or whom it serves: each member of pool self has a queue of its own."""
    return f"self:{asked.member}" if asked.pool == "self" else asked.pool


def less(level: Level, part: int) -> Level:
    """The same dimension with so much less of a limit."""
    scope, domain, one = level
    return scope, domain, replace(one, limit=one.limit - part)


def kept(level: Level, percent: int) -> int:
    """What bulk leaves: its part of the limit, of slots all but one at most."""
    one = level[2]
    part = ceil(one.limit * percent, 100)
    return min(part, max(one.limit - 1, 0)) if one.kind == "concurrency" else part
