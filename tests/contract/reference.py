"""What the scheduler must decide, written as plainly as it can be: lists, loops and no speed.

It shares no code with `streams.core`, and sorts anew at every turn what the core keeps in order.
It decides all but one thing: whose turn it is is decided under the policy `fifo` only. Under any
other it is told whose head was picked, and insists that it fits, and that none is left that does.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from schemas import events as e
from schemas import inputs as i
from schemas.codes import Code
from schemas.digest import payload_digest
from schemas.ids import OperationId, operation_id
from schemas.phase import Phase
from tests.contract.reference_ledger import Ledger, Work

ENDS = {"success": Phase.SUCCEEDED, "terminal": Phase.FAILED, "cancelled": Phase.CANCELLED}


class Reference:
    """One cell whose members never fall silent."""

    def __init__(self) -> None:
        self.now_ms = self.height = self.sequence = 0
        self.ledger = Ledger()
        self.members: dict[str, i.JoinRequested] = {}
        self.work: dict[OperationId, Work] = {}
        self.early: dict[OperationId, int] = {}
        self.said: list[tuple[Any, ...]] = []

    # -- one entry -------------------------------------------------------------------------------

    def entry(
        self, asked: Sequence[Any], now_ms: int, told: Sequence[OperationId], *, timers: bool = True
    ) -> list[tuple[Any, ...]]:
        """All decisions of an entry; `told`: what the other's pass decided about, in its order."""
        self.now_ms, self.height, self.said = now_ms, self.height + 1, []
        self.ledger.forget_before(now_ms)
        for one in asked:
            self.take(one)
        while timers and (due := min(self.timers(), default=None)) and due[0] <= now_ms:
            self.fire(*due[1:])
        turns = deque(told)
        for name in sorted(self.ledger.domains):
            while self.next_turn(name, turns):
                pass
        return self.said

    def take_over(self, step_ms: int) -> None:
        """Another owner; a step of time moves what was accepted before it."""
        self.height += 1
        self.ledger.take_over(step_ms)
        for work in self.work.values():
            work.latest_ms += step_ms
            if work.accepted_ms is not None:
                work.accepted_ms += step_ms

    def say(self, kind: type, *details: Any) -> None:
        self.said.append((kind.__name__, *details))

    def take(self, asked: Any) -> None:
        match asked:
            case i.OperationSubmitted():
                self.submit(asked)
            case i.CancellationRequested():
                self.cancel(asked.operation)
            case i.StartRequested():
                self.start(asked)
            case i.SendReported():
                if self.stale(asked) is None:
                    self.observe(asked.operation, asked.send_delay_ms)
            case i.ResultReported():
                self.result(asked)
            case i.JoinRequested():
                self.members[asked.member] = asked
            case i.ConfigProposed():
                self.ledger.configure(asked)

    # -- admission -------------------------------------------------------------------------------

    def submit(self, asked: i.OperationSubmitted) -> None:
        named = {name: getattr(asked, name) for name in ("pool", "tenant", "user")}
        operation = operation_id(**named, idempotency_key=asked.idempotency_key)
        known = self.work.get(operation)
        if known and (known.forget_ms is None or self.now_ms < known.forget_ms):
            if payload_digest(known.asked) == payload_digest(asked):
                return self.say(e.DuplicateObserved, operation, known.phase, known.code)
            return self.say(e.SubmissionConflicted, operation)
        code, binds_key = self.refusal(asked)
        if code is not None:
            self.say(e.OperationRejected, operation, code, binds_key)
            if binds_key:
                self.work[operation] = Work(asked, Phase.REJECTED, code)
                self.finish(operation, Phase.REJECTED)
            return None
        self.sequence += 1
        work = self.work[operation] = Work(asked, incarnation=self.height, sequence=self.sequence)
        work.deadline_ms = self.now_ms + (asked.start_within_ms or 0)
        self.say(e.OperationAdmitted, operation, self.height, work.sequence, work.deadline_ms)
        if operation in self.early:
            self.end(operation, e.OperationCancelled, Phase.CANCELLED)
        return None

    def refusal(self, asked: i.OperationSubmitted) -> tuple[Code | None, bool]:
        """The first thing wrong with it, and whether the key is bound to that answer."""
        domain, tenant = self.ledger.domains.get(asked.domain), self.ledger.tenant(asked.tenant)
        if domain is None:
            return Code.UNKNOWN_DOMAIN, True
        if asked.pool not in self.ledger.pools:
            return Code.UNKNOWN_POOL, True
        if asked.output_tokens_max is None:
            return Code.OUTPUT_CEILING_MISSING, True
        if asked.payload_bytes > self.ledger.bounds.payload_bytes_max:
            return Code.PAYLOAD_TOO_LARGE, True
        if asked.start_within_ms is None:
            return Code.DEADLINE_MISSING, False
        if self.ledger.never_fits(Work(asked)):
            return Code.NEVER_FITS, True
        waiting = [one.asked for one in self.work.values() if one.phase is Phase.WAITING]
        for code, cap, counted in (
            (Code.TENANT_QUEUE_FULL, tenant, [w for w in waiting if w.tenant == asked.tenant]),
            (Code.DOMAIN_QUEUE_FULL, domain, [w for w in waiting if w.domain == asked.domain]),
            (Code.CELL_QUEUE_FULL, self.ledger.bounds, waiting),
        ):
            size = sum(one.payload_bytes for one in counted) + asked.payload_bytes
            if len(counted) >= cap.waiting_count_max or size > cap.waiting_bytes_max:
                return code, False
        return None, False

    # -- dispatch --------------------------------------------------------------------------------

    def next_turn(self, domain: str, told: deque[OperationId]) -> bool:
        """One head of the domain leaves its queue; False if none has to."""
        heads: dict[tuple[str, str], tuple[int, OperationId]] = {}
        for operation, work in self.work.items():
            if work.phase is Phase.WAITING and work.asked.domain == domain:
                queue, place = (work.asked.tenant, work.asked.pool), (work.sequence, operation)
                heads[queue] = min(heads.get(queue, place), place)
        verdicts = {
            operation: self.ledger.verdict(self.work[operation], self.now_ms)
            for (_, pool), (_, operation) in sorted(heads.items(), key=lambda head: head[1])
            if self.free_members(pool)
        }
        fitting = [operation for operation, verdict in verdicts.items() if verdict == "fits"]
        turn = told[0] if told else None
        if turn is not None and verdicts.get(turn) in ("deadline", "not_before"):
            self.end(turn, e.OperationExpired, Phase.EXPIRED, verdicts[turn])
        elif fitting:
            fifo = self.ledger.domains[domain].policy == "fifo"
            self.grant(fitting[0] if fifo or turn is None or turn not in fitting else turn)
        else:
            return False
        if told:
            told.popleft()
        return True

    def free_members(self, pool: str) -> list[tuple[int, str]]:
        """Minus the free places, and the name."""
        holders = [work.holder for work in self.work.values()]
        free = {m: one.places - holders.count(m) for m, one in self.members.items()}
        return [(-free[m], m) for m, one in self.members.items() if one.pool == pool and free[m]]

    def grant(self, operation: OperationId) -> None:
        work = self.work[operation]
        config = self.ledger.domains[work.asked.domain]
        work.phase, work.epoch, work.granted_ms = Phase.GRANTED, work.epoch + 1, self.now_ms
        work.accepted_ms, work.observed = None, False
        work.holder = min(self.free_members(work.asked.pool))[1]
        work.claim_by_ms = min(self.now_ms + config.claim_by_ms, work.deadline_ms)
        self.ledger.hold(work)
        named = (work.holder, work.starts + 1, work.epoch, work.claim_by_ms, work.tokens)
        self.say(e.GrantIssued, operation, *named)

    # -- from the start to the settlement --------------------------------------------------------

    def stale(self, asked: Any) -> Code | None:
        work = self.work.get(asked.operation)
        if work is None:
            return Code.NOT_FOUND
        attempt = (work.incarnation, work.epoch, work.holder)
        current = attempt == (asked.incarnation, asked.epoch, asked.member)
        return None if current else Code.EPOCH_SUPERSEDED

    def start(self, asked: i.StartRequested) -> None:
        operation, code = asked.operation, self.stale(asked)
        work = self.work.get(operation)
        if code is None and work and work.accepted_ms is None and self.now_ms >= work.deadline_ms:
            code = Code.DEADLINE_PASSED
        elif code is None and work and (work.accepted_ms or self.now_ms >= work.claim_by_ms):
            code = Code.START_REFUSED
        if code is not None or work is None:
            return self.say(e.StartRefused, operation, asked.epoch, code)
        config = self.ledger.domains[work.asked.domain]
        work.phase, work.starts, work.accepted_ms = Phase.STARTED, work.starts + 1, self.now_ms
        work.latest_ms = self.now_ms + config.send_within_ms + config.transit_ms
        self.ledger.arrive(work)
        return self.say(e.StartAccepted, operation, work.epoch, work.latest_ms)

    def observe(self, operation: OperationId, delay_ms: int | None) -> None:
        work = self.work[operation]
        if delay_ms is None or work.accepted_ms is None or work.observed:
            return
        latest_ms = work.accepted_ms + delay_ms + self.ledger.domains[work.asked.domain].transit_ms
        if latest_ms < work.latest_ms:
            work.latest_ms, work.observed = latest_ms, True
            self.ledger.arrive(work)
            self.say(e.SendObserved, operation, latest_ms)

    def result(self, asked: i.ResultReported) -> None:
        code, operation = self.stale(asked), asked.operation
        work = self.work.get(operation)
        if asked.outcome not in ENDS and asked.outcome != "not_sent":
            return self.say(e.InputQuarantined, Code.UNKNOWN_OUTCOME_CLASS)
        if work is None or code is not None or work.accepted_ms is None:
            code = work.second(asked, code or Code.START_REFUSED) if work else code
            return code and self.say(e.ResultRefusedStale, operation, asked.epoch, code)
        if asked.outcome in ENDS:
            self.observe(operation, asked.send_delay_ms)
        work.told = asked
        self.say(e.ResultRecorded, operation, asked.outcome, self.now_ms >= work.deadline_ms)
        if asked.outcome not in ENDS:
            return self.give_back(operation, e.ReservationReleased, asked.outcome)
        least = (asked.prompt_tokens or 0) + (asked.output_tokens or 0)
        known = asked.prompt_tokens is not None and asked.output_tokens is not None
        used = least if known or least > work.tokens else None
        held_ms, cost = self.now_ms - work.granted_ms, self.ledger.settle(work, used, self.now_ms)
        overdraft = max(0, (used or 0) - work.tokens)
        self.say(e.ReservationSettled, operation, used, overdraft, held_ms, cost)
        phase = ENDS[asked.outcome]
        unwanted = work.cancel and phase is not Phase.SUCCEEDED
        return self.finish(operation, Phase.CANCELLED if unwanted else phase)

    def give_back(self, operation: OperationId, kind: type, *reason: str) -> None:
        """The reservation ends unused; the work waits again, unless nobody wants it any more."""
        work = self.work[operation]
        self.say(kind, operation, *reason)
        self.ledger.drop(work.charges)
        work.phase, work.holder = Phase.WAITING, None
        if work.cancel:
            self.end(operation, e.OperationCancelled, Phase.CANCELLED)
        elif self.now_ms >= work.deadline_ms:
            self.end(operation, e.OperationExpired, Phase.EXPIRED, "deadline")

    def cancel(self, operation: OperationId) -> None:
        work = self.work.get(operation)
        if work is None:
            if operation not in self.early:
                self.early[operation] = self.now_ms + self.ledger.bounds.early_cancel_ms
                self.say(e.CancellationRemembered, operation, self.early[operation])
        elif work.phase is Phase.WAITING:
            self.end(operation, e.OperationCancelled, Phase.CANCELLED)
        elif work.phase is Phase.GRANTED:
            work.cancel = True
            self.say(e.GrantRevoked, operation, work.epoch, "cancelled")
            self.give_back(operation, e.ReservationReleased, "cancelled")
        elif work.phase is Phase.STARTED and not work.cancel:
            work.cancel = True
            self.say(e.CancelSignalled, operation, work.epoch)

    def end(self, operation: OperationId, kind: type, phase: Phase, *reason: str) -> None:
        """Over without a result."""
        self.say(kind, operation, *reason)
        self.early.pop(operation, None)
        self.finish(operation, phase)

    def finish(self, operation: OperationId, phase: Phase) -> None:
        work = self.work[operation]
        work.phase, work.holder = phase, None
        work.forget_ms = self.now_ms + self.ledger.bounds.guard_horizon_ms

    # -- what time brings ------------------------------------------------------------------------

    def timers(self) -> Iterator[tuple[int, int, OperationId]]:
        """Instant, kind and operation; of one instant smaller kinds go first."""
        for operation, work in self.work.items():
            if work.phase is Phase.WAITING:
                yield work.deadline_ms, 1, operation
            elif work.phase is Phase.GRANTED:
                yield work.claim_by_ms, 2, operation
            elif work.forget_ms is not None:
                yield work.forget_ms, 4, operation
        for operation, until_ms in self.early.items():
            yield until_ms, 5, operation

    def fire(self, kind: int, operation: OperationId) -> None:
        match kind:
            case 1:
                self.end(operation, e.OperationExpired, Phase.EXPIRED, "deadline")
            case 2:
                self.say(e.GrantExpired, operation, self.work[operation].epoch)
                self.give_back(operation, e.ReservationExpired)
            case 4:
                self.say(e.OperationForgotten, operation)
                del self.work[operation]
            case _:
                self.say(e.CancellationForgotten, operation)
                del self.early[operation]
