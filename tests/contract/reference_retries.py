"""Retries with their budget, manual retries and checkpoints, as the reference model has them."""

from schemas import events as e
from schemas import inputs as i
from schemas.codes import Code
from schemas.ids import OperationId
from schemas.phase import Phase
from tests.contract.reference_base import Base
from tests.contract.reference_work import Work


class Retries(Base):
    """What leads to another attempt, and from where it goes on."""

    def none_left(self, work: Work) -> Code | None:
        config = self.domain(work)
        if work.tries + 1 >= config.attempts_max:
            return Code.ATTEMPTS_EXHAUSTED
        if self.left(work) < 100:
            return Code.RETRY_BUDGET_EXHAUSTED
        if self.now_ms + config.retry_backoff_ms * 2**work.tries >= work.deadline_ms:
            return Code.DEADLINE_PASSED
        return None

    def left(self, work: Work) -> int:
        most = 100 * self.domain(work).retry_burst
        return min(most, self.credit.get((work.asked.domain, work.asked.tenant), most))

    def spend(self, work: Work, hundredths: int) -> None:
        left, key = self.left(work) - hundredths, (work.asked.domain, work.asked.tenant)
        self.credit[key] = left
        if left >= 100 * self.domain(work).retry_burst:
            del self.credit[key]

    def schedule(self, operation: OperationId, cause: str, tries: int) -> None:
        work = self.work[operation]
        not_before_ms = self.now_ms + self.domain(work).retry_backoff_ms * 2**tries
        self.say(e.RetryScheduled, operation, work.epoch, cause, not_before_ms)
        self.spend(work, 100)
        work.phase, work.not_before_ms = Phase.PARKED, not_before_ms

    def retry(self, asked: i.RetryRequested) -> None:
        work, operation = self.work.get(asked.operation), asked.operation
        code = Code.NOT_FOUND
        if work is not None:
            is_over = work.phase in (Phase.DEAD, Phase.UNKNOWN_CLOSED)
            code = Code.INVALID_FIELD if is_over else Code.NOT_DEAD
            if is_over and asked.start_within_ms > 0:
                work.deadline_ms, work.forget_ms = self.now_ms + asked.start_within_ms, None
                work.tries = work.throttles = work.not_sent = 0
                work.cancel = False
                self.wait(work)
                return self.say(e.ManualRetryAccepted, operation, work.deadline_ms)
        return self.say(e.ManualActionRefused, operation, "retry", code)

    def checkpoint(self, asked: i.CheckpointReported) -> None:
        code, work = self.stale(asked), self.work.get(asked.operation)
        if code is None and work is not None and work.attempt is not None:
            last = (work.checkpoint, work.checkpoint_ref)
            if work.attempt.accepted_ms is None:
                code = Code.NOT_STARTED
            elif work.attempt.hold_until_ms is not None or (
                work.attempt.lease_ms is not None and work.attempt.lease_ms <= self.lease_now_ms
            ):
                code = Code.LEASE_NOT_HELD
            elif asked.number > 0 and last == (asked.number, asked.state_ref):
                return None
            elif asked.number == work.checkpoint + 1:
                work.checkpoint, work.checkpoint_ref = asked.number, asked.state_ref
                return self.say(e.CheckpointRecorded, asked.operation, asked.number)
            else:
                code = Code.CHECKPOINT_GAP
        return self.say(e.CheckpointRefused, asked.operation, asked.number, code)
