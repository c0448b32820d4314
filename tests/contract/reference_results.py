"""From the start to the settlement, and what each outcome brings, as the reference model has it."""

from schemas import events as e
from schemas import inputs as i
from schemas.codes import Code
from schemas.ids import OperationId
from schemas.phase import Phase
from tests.contract.reference_prices import Used
from tests.contract.reference_trouble import Trouble
from tests.contract.reference_work import WAITS, Attempt, Work

ENDS = {"success": Phase.SUCCEEDED, "terminal": Phase.FAILED, "cancelled": Phase.CANCELLED}
PAUSES = ("throttled", "quota_exhausted")


class Results(Trouble):
    """What members say of their attempts."""

    def start(self, asked: i.StartRequested) -> None:
        operation, code = asked.operation, self.not_startable(asked)
        work = self.work.get(operation)
        attempt = None if work is None else work.attempt
        if code is None and attempt and attempt.lease_ms is not None:
            code = Code.LEASE_NOT_HELD if attempt.lease_ms <= self.lease_now_ms else None
        if code is not None or work is None or attempt is None:
            return self.say(e.StartRefused, operation, asked.epoch, code)
        if attempt.lease_ms is None:
            self.lease(operation, attempt)
        return self.accept(operation, attempt)

    def accept(self, operation: OperationId, attempt: Attempt) -> None:
        work = self.work[operation]
        config, is_first = self.domain(work), work.starts == 0
        work.phase, work.starts, attempt.accepted_ms = Phase.STARTED, work.starts + 1, self.now_ms
        attempt.latest_ms = self.now_ms + config.send_within_ms + config.transit_ms
        self.say(e.StartAccepted, operation, attempt.epoch, attempt.latest_ms, is_first)
        if is_first and (work.asked.domain, work.asked.tenant) in self.credit:
            self.spend(work, -config.retry_percent)
        most_ms = self.ledger.tenant(work.asked.tenant).runtime_ms_max
        runtime_ms = min(work.asked.runtime_ms or most_ms, most_ms)
        attempt.runtime_ms = self.lease_now_ms + runtime_ms
        self.look_at(attempt.holder, self.now_ms + runtime_ms)
        self.ledger.arrive(attempt)

    def observe(self, operation: OperationId, delay_ms: int | None) -> None:
        work = self.work[operation]
        attempt = work.attempt
        if (
            attempt is None
            or attempt.closed
            or delay_ms is None
            or attempt.accepted_ms is None
            or attempt.observed
        ):
            return
        latest_ms = attempt.accepted_ms + delay_ms + self.domain(work).transit_ms
        if latest_ms < attempt.latest_ms:
            attempt.latest_ms, attempt.observed = latest_ms, True
            self.ledger.arrive(attempt)
            self.say(e.SendObserved, operation, latest_ms)

    def result(self, asked: i.ResultReported) -> None:
        code, operation, outcome = self.stale(asked), asked.operation, asked.outcome
        work = self.work.get(operation)
        if outcome not in (*ENDS, *PAUSES, "not_sent", "retryable", "unknown"):
            return self.say(e.InputQuarantined, Code.UNKNOWN_OUTCOME_CLASS)
        if code is not None or work is None or work.attempt is None:
            return self.of_no_newest(asked, code)
        attempt = work.attempt
        if attempt.accepted_ms is None:
            return self.say(e.ResultRefusedStale, operation, asked.epoch, Code.NOT_STARTED)
        if attempt.hold_until_ms is not None:
            if outcome == "unknown":
                return None
            self.say(e.OutcomeReconciled, operation, asked.epoch, "late_result", outcome)
        elif outcome != "not_sent":
            self.observe(operation, asked.send_delay_ms)
            if outcome == "unknown":
                return self.mark(operation, attempt, "reported")
        return self.known(asked, attempt)

    def known(self, asked: i.ResultReported, attempt: Attempt) -> None:
        """It ended, and this is how."""
        operation, outcome, work = asked.operation, asked.outcome, self.work[asked.operation]
        self.say(e.ResultRecorded, operation, outcome, self.now_ms >= work.deadline_ms)
        work.told, work.ended_epoch = asked, asked.epoch
        work.ended_by = (asked.attempt, asked.member)
        tries, throttles = work.tries, work.throttles
        if outcome in ENDS:
            unwanted = work.cancel and outcome != "success"
            self.finish(operation, Phase.CANCELLED if unwanted else ENDS[outcome])
        else:
            self.wait(work)
            work.not_sent += outcome == "not_sent"
            work.tries += outcome == "retryable"
            work.throttles += outcome in PAUSES
        if attempt.closed:
            work.attempt = None
            if outcome != "not_sent":
                self.correct(asked, work, self.told(asked, attempt))
        elif outcome == "not_sent":
            self.give_back(operation, attempt, e.ReservationReleased, "not_sent")
        else:
            self.settle(operation, attempt, self.told(asked, attempt))
        if outcome == "not_sent":
            self.come_back(operation)
        elif outcome == "retryable":
            self.after_failure(operation, work, tries)
        elif outcome in PAUSES:
            self.pause(work, asked)
            if not work.cancel and throttles >= self.domain(work).throttles_max:
                self.end(operation, e.OperationDeadLettered, Phase.DEAD, Code.THROTTLES_EXHAUSTED)
            else:
                self.come_back(operation)

    def after_failure(self, operation: OperationId, work: Work, tries: int) -> None:
        work.tries = tries
        code = self.none_left(work)
        work.tries = tries + 1
        if work.cancel:
            self.end(operation, e.OperationCancelled, Phase.CANCELLED)
        elif code is not None:
            self.end(operation, e.OperationDeadLettered, Phase.DEAD, code)
        else:
            self.schedule(operation, "retryable", tries)

    def pause(self, work: Work, asked: i.ResultReported) -> None:
        domain, hint_ms = work.asked.domain, asked.retry_after_ms
        if hint_ms is None and asked.outcome == "throttled":
            hint_ms = self.domain(work).cooldown_ms
        before_ms = self.ledger.pauses.get(domain, self.now_ms)
        if before_ms is None:
            return
        until_ms = None if hint_ms is None else self.now_ms + hint_ms
        if until_ms is None or until_ms > before_ms:
            self.ledger.pauses[domain] = until_ms
            self.say(e.CooldownSet, domain, asked.outcome, until_ms)

    def of_no_newest(self, asked: i.ResultReported, code: Code | None) -> None:
        """Evidence; it closes the hold of its own attempt, if there is one."""
        operation, work = asked.operation, self.work.get(asked.operation)
        held = self.holds.get((operation, asked.incarnation, asked.epoch))
        if held is None or not held.speaks(asked):
            code = work.second(asked, code) if work is not None and code is not None else code
            return code and self.say(e.ResultRefusedStale, operation, asked.epoch, code)
        if asked.outcome == "unknown":
            return None
        if work is not None and self.is_newest(work, held) and work.phase in WAITS:
            self.say(e.OutcomeReconciled, operation, asked.epoch, "late_result", asked.outcome)
            if asked.outcome in ENDS:
                return self.known(asked, held)
        else:
            self.say(e.ResultRefusedStale, operation, asked.epoch, code)
        if asked.outcome == "not_sent":
            return self.give_back(operation, held, e.ReservationReleased, "not_sent")
        return self.settle(operation, held, self.told(asked, held))

    def told(self, asked: i.ResultReported, attempt: Attempt) -> Used | None:
        """A call that the provider did not take used nothing."""
        used = self.used(attempt, asked.prompt_tokens, asked.output_tokens)
        return (0, 0) if used is None and asked.outcome in PAUSES else used
