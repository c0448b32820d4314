"""What the scheduler must decide, written as plainly as it can be: lists, loops and no speed.

It shares no code with `streams.core`, and sorts anew at every turn what the core keeps in order.
It decides all but whose turn it is: it is told whose head was picked, and whether bulk was owed its
floor, and insists that the head fits, and that none is left that does. Under the policy `fifo` it
insists on the oldest of the lane.
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
from tests.contract.reference_turns import Turn, Turns
from tests.contract.reference_work import WAITS, Work


class Reference(Turns):
    """One cell whose members never fall silent."""

    # -- one entry -------------------------------------------------------------------------------

    def entry(
        self, asked: Sequence[Any], now_ms: int, told: Sequence[Turn], *,
        timers: bool = True, silence_ms: int = 0,
    ) -> list[tuple[Any, ...]]:  # fmt: skip
        """All decisions of an entry; `told`: what the other's pass decided about, in its order."""
        self.now_ms, self.height, self.said = now_ms, self.height + 1, []
        self.ledger.forget_before(now_ms)
        pauses = self.ledger.pauses
        self.ledger.pauses = {d: ms for d, ms in pauses.items() if ms is None or ms > now_ms}
        if silence_ms and self.looks:
            self.say(e.LeasesExtended, silence_ms)
            self.shift(silence_ms)
        for one in asked:
            self.take(one)
            self.forget_gone()
        while timers and (due := min(self.timers(), default=None)) and due[0] <= now_ms:
            self.fire(*due[1:])
            self.forget_gone()
        turns = deque(told)
        for name in sorted(self.ledger.domains):
            while self.next_turn(name, turns):
                pass
        return self.said

    def shift(self, by_ms: int) -> None:
        """No lease pays for this."""
        self.shift_ms += by_ms
        self.looks = {member: at_ms + by_ms for member, at_ms in self.looks.items()}

    def take_over(self, step_ms: int) -> None:
        """Another owner; a step of time moves what was accepted before it."""
        self.height, self.epoch = self.height + 1, self.epoch + 1
        self.stepped_ms += step_ms
        self.ledger.take_over(step_ms)
        self.shift(step_ms)
        newest = [work.attempt for work in self.work.values() if work.attempt is not None]
        for attempt in (*newest, *self.holds.values()):
            attempt.step(step_ms)

    def take(self, asked: Any) -> None:  # noqa: C901, PLR0912 - one arm an input
        match asked:
            case i.OperationSubmitted():
                self.submit(asked)
            case i.CancellationRequested():
                self.cancel(asked.operation)
            case i.ClaimRequested():
                self.claim(asked)
            case i.StartRequested():
                self.start(asked)
            case i.SendReported():
                if self.stale(asked) is None:
                    self.observe(asked.operation, asked.send_delay_ms)
            case i.ResultReported():
                self.result(asked)
            case i.CheckpointReported():
                self.checkpoint(asked)
            case i.UsageReported():
                self.usage(asked)
            case i.OutcomeEvidence():
                self.evidence(asked)
            case i.ReconcileRequested():
                self.reconcile(asked)
            case i.RetryRequested():
                self.retry(asked)
            case i.HeartbeatReported():
                self.heartbeat(asked)
            case i.JoinRequested():
                self.members[asked.member] = asked
            case i.ConfigProposed():
                self.ledger.configure(asked)
                self.forget_configured(asked)

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
        if asked.parent is not None:
            self.work[asked.parent].turns += 1
        if operation in self.early:
            self.end(operation, e.OperationCancelled, Phase.CANCELLED)
        return None

    def refusal(self, asked: i.OperationSubmitted) -> tuple[Code | None, bool]:
        """The first thing wrong with it, and whether the key is bound to that answer."""
        if asked.domain not in self.ledger.domains:
            return Code.UNKNOWN_DOMAIN, True
        if asked.pool not in self.ledger.pools:
            return Code.UNKNOWN_POOL, True
        if asked.pool == "self" and self.members[asked.member].tenant != asked.tenant:
            return Code.UNKNOWN_POOL, False
        if asked.lane not in self.ledger.tenant(asked.tenant).lanes:
            return Code.LANE_NOT_ENTITLED, False
        if asked.output_tokens_max is None and asked.turns_max is None:
            return Code.OUTPUT_CEILING_MISSING, True
        if asked.payload_bytes > self.ledger.bounds.payload_bytes_max:
            return Code.PAYLOAD_TOO_LARGE, True
        if asked.parent is not None and (code := self.no_turn(asked, asked.parent)):
            return code, False
        if asked.start_within_ms is None:
            return Code.DEADLINE_MISSING, False
        if self.ledger.never_fits(Work(asked)):
            return Code.NEVER_FITS, True
        return self.full(asked), False

    def full(self, asked: i.OperationSubmitted) -> Code | None:
        """The smallest queue without room."""
        domain, tenant = self.ledger.domains[asked.domain], self.ledger.tenant(asked.tenant)
        waiting = [one.asked for one in self.work.values() if one.phase in WAITS]
        for code, cap, counted in (
            (Code.TENANT_QUEUE_FULL, tenant, [w for w in waiting if w.tenant == asked.tenant]),
            (Code.DOMAIN_QUEUE_FULL, domain, [w for w in waiting if w.domain == asked.domain]),
            (Code.CELL_QUEUE_FULL, self.ledger.bounds, waiting),
        ):
            size = sum(one.payload_bytes for one in counted) + asked.payload_bytes
            if len(counted) >= cap.waiting_count_max or size > cap.waiting_bytes_max:
                return code
        return None

    def no_turn(self, asked: i.OperationSubmitted, parent: OperationId) -> Code | None:
        """A turn needs a started run of its tenant that has one left."""
        run = self.work.get(parent)
        if run is None or run.phase is not Phase.STARTED or run.asked.turns_max is None:
            return Code.PARENT_NOT_RUNNING
        if run.asked.tenant != asked.tenant:
            return Code.PARENT_NOT_RUNNING
        return Code.TURNS_EXHAUSTED if run.turns >= run.asked.turns_max else None

    # -- cancellation ----------------------------------------------------------------------------

    def cancel(self, operation: OperationId) -> None:
        work = self.work.get(operation)
        attempt = None if work is None else work.attempt
        if work is None:
            if operation not in self.early:
                self.early[operation] = self.now_ms + self.ledger.bounds.early_cancel_ms
                self.say(e.CancellationRemembered, operation, self.early[operation])
        elif work.phase in WAITS:
            self.end(operation, e.OperationCancelled, Phase.CANCELLED)
        elif work.phase in (Phase.GRANTED, Phase.LEASED) and attempt:
            self.say(e.GrantRevoked, operation, work.epoch, "cancelled")
            self.wait(work)
            self.give_back(operation, attempt, e.ReservationReleased, "cancelled")
            self.end(operation, e.OperationCancelled, Phase.CANCELLED)
        elif attempt and not work.cancel:
            work.cancel, attempt.runtime_ms = True, None
            self.say(e.CancelSignalled, operation, work.epoch)

    # -- what time brings ------------------------------------------------------------------------

    def timers(self) -> Iterator[tuple[int, int, Any]]:
        """Instant, kind and subject; of one instant smaller kinds go first."""
        for operation, work in self.work.items():
            if work.phase in WAITS:
                yield work.deadline_ms, 1, operation
            elif work.phase in (Phase.GRANTED, Phase.LEASED) and work.attempt:
                yield work.attempt.claim_by_ms, 2, operation
            elif work.forget_ms is not None:
                yield work.forget_ms, 4, operation
            if work.not_before_ms is not None:
                yield work.not_before_ms, 8, operation
            if work.phase is Phase.UNKNOWN and work.attempt:
                yield work.attempt.due_ms, 7, (operation, work.incarnation, work.epoch)
        for operation, until_ms in self.early.items():
            yield until_ms, 5, operation
        for member, at_ms in self.looks.items():
            yield at_ms, 6, member
        for name, attempt in self.holds.items():
            yield attempt.due_ms, 7, name

    def fire(self, kind: int, subject: Any) -> None:
        match kind:
            case 1:
                self.end(subject, e.OperationExpired, Phase.EXPIRED, "deadline")
            case 2:
                attempt = self.work[subject].attempt
                assert attempt is not None, "Expected a grant"
                self.say(e.GrantExpired, subject, attempt.epoch)
                self.wait(self.work[subject])
                self.give_back(subject, attempt, e.ReservationExpired)
                self.come_back(subject)
            case 4:
                self.say(e.OperationForgotten, subject)
                del self.work[subject]
            case 5:
                self.say(e.CancellationForgotten, subject)
                del self.early[subject]
            case 6:
                self.look(subject)
            case 7:
                attempt = self.find(*subject)
                assert attempt is not None, "Expected a hold"
                self.hold_due(subject[0], attempt)
            case _:
                self.say(e.OperationUnparked, subject)
                self.wait(self.work[subject])
