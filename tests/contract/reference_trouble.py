"""Leases, unknown outcomes and evidence of them, as the reference model has them."""

from typing import Any

from schemas import events as e
from schemas import inputs as i
from schemas.codes import Code
from schemas.ids import OperationId
from schemas.phase import Phase
from tests.contract.reference_prices import Used, needs, usage
from tests.contract.reference_retries import Retries
from tests.contract.reference_work import WAITS, Attempt, Work

FOUND = {"completed": Phase.SUCCEEDED, "failed": Phase.FAILED}
GOES_ON = WAITS | {Phase.UNKNOWN, Phase.UNKNOWN_CLOSED}


class Trouble(Retries):
    """What happens to attempts that do not simply end."""

    # -- leases ----------------------------------------------------------------------------------

    def claim(self, asked: i.ClaimRequested) -> None:
        work, operation = self.work.get(asked.operation), asked.operation
        attempt = None if work is None else work.attempt
        if attempt is not None and attempt.lease_ms is not None and attempt.speaks(asked):
            return None
        code = self.not_startable(asked)
        if code is not None or attempt is None:
            return self.say(e.ClaimRefused, operation, asked.epoch, code)
        return self.lease(operation, attempt)

    def not_startable(self, asked: Any) -> Code | None:
        code, work = self.stale(asked), self.work.get(asked.operation)
        if code is not None or work is None or work.attempt is None:
            return code
        if work.attempt.accepted_ms is not None:
            return Code.START_REFUSED
        if self.now_ms >= work.deadline_ms:
            return Code.DEADLINE_PASSED
        return Code.START_REFUSED if self.now_ms >= work.attempt.claim_by_ms else None

    def lease(self, operation: OperationId, attempt: Attempt) -> None:
        expires_ms = self.now_ms + self.lease_length(attempt.holder)
        self.say(e.LeaseClaimed, operation, attempt.epoch, expires_ms)
        self.work[operation].phase = Phase.LEASED
        attempt.lease_ms = expires_ms - self.shift_ms
        self.look_at(attempt.holder, expires_ms)

    def lease_length(self, member: str) -> int:
        return self.ledger.pools[self.members[member].pool].lease_ms

    def look_at(self, member: str, at_ms: int) -> None:
        self.looks[member] = min(at_ms, self.looks.get(member, at_ms))

    def leased(self, member: str) -> list[tuple[OperationId, Attempt]]:
        found = [(o, w.attempt) for o, w in self.work.items() if w.attempt is not None]
        return sorted((o, a) for o, a in found if a.holder == member and a.lease_ms is not None)

    def heartbeat(self, asked: i.HeartbeatReported) -> None:
        leased = {(o, a.epoch): a for o, a in self.leased(asked.member)}
        named, refused = [], []
        self.offered.pop(asked.member, None)
        if (
            asked.sent_ms is not None
            and self.ledger.pools[self.members[asked.member].pool].standing
        ):
            self.offered[asked.member] = self.epoch
            self.say(e.PlacesOffered, asked.member, asked.sent_ms, self.unstepped_ms, self.epoch)
        for one in asked.leases:
            attempt = leased.get((one.operation, one.epoch))
            work = self.work.get(one.operation)
            if attempt is not None and (attempt.lease_ms or 0) > self.lease_now_ms:
                named.append(one.operation)
            elif not (work and work.told and work.told.epoch == one.epoch == work.ended_epoch):
                refused.append((one.operation, one.epoch))
        if named:
            until_ms = self.now_ms + self.lease_length(asked.member)
            unnamed = [(o, a.epoch) for o, a in self.leased(asked.member) if o not in named]
            self.say(e.LeasesRenewed, asked.member, until_ms, unnamed)
            for operation, attempt in self.leased(asked.member):
                if operation in named:
                    attempt.lease_ms = until_ms - self.shift_ms
            self.review(asked.member)
        for operation, epoch in refused[:8]:
            self.say(e.RenewRefused, operation, epoch)

    def review(self, member: str) -> None:
        """Look again when the first lease, or runtime, may be over."""
        instants = [a.lease_ms for _, a in self.leased(member) if a.lease_ms is not None]
        instants += [a.runtime_ms for _, a in self.leased(member) if a.runtime_ms is not None]
        self.looks.pop(member, None)
        if instants:
            self.looks[member] = min(instants) + self.shift_ms

    def look(self, member: str) -> None:
        """What has ended ends; once nothing has, look again later."""
        now_ms, leased = self.lease_now_ms, self.leased(member)
        over = [(o, a) for o, a in leased if (a.lease_ms or 0) <= now_ms]
        long = [
            (o, a)
            for o, a in leased
            if (o, a) not in over and a.runtime_ms is not None and a.runtime_ms <= now_ms
        ]
        if not over and not long:
            return self.review(member)
        for operation, attempt in long:
            self.say(e.CancelSignalled, operation, attempt.epoch)
            self.work[operation].cancel, attempt.runtime_ms = True, None
        for operation, attempt in over:
            self.say(e.LeaseExpired, operation, attempt.epoch, attempt.accepted_ms is not None)
            attempt.lease_ms = attempt.runtime_ms = None
            if attempt.accepted_ms is not None:
                self.mark(operation, attempt, "lease_expired")
            else:
                self.say(e.GrantExpired, operation, attempt.epoch)
                self.wait(self.work[operation])
                self.give_back(operation, attempt, e.ReservationExpired)
                self.come_back(operation)
        return None

    # -- unknown outcomes ------------------------------------------------------------------------

    def mark(self, operation: OperationId, attempt: Attempt, cause: str) -> None:
        work = self.work[operation]
        config = self.domain(work)
        assert attempt.accepted_ms is not None, "Expected a start"
        bound_ms = max(self.now_ms, attempt.accepted_ms + config.unknown_hold_ms)
        self.say(e.OutcomeMarkedUnknown, operation, attempt.epoch, cause, bound_ms)
        work.phase, attempt.hold_until_ms = Phase.UNKNOWN, bound_ms
        attempt.lease_ms = attempt.runtime_ms = None
        if config.call_ms_max is not None:
            proof_ms = attempt.latest_ms + config.call_ms_max
            attempt.proof_ms = proof_ms if proof_ms < bound_ms else None
        if work.asked.effect != "unsafe" and not work.cancel and self.none_left(work) is None:
            tries = work.tries
            self.schedule(operation, "unknown", tries)
            work.tries = tries + 1
            self.set_aside(operation)

    def hold_due(self, operation: OperationId, attempt: Attempt) -> None:
        """Proof by time, or the bound."""
        work, epoch = self.work.get(operation), attempt.epoch
        if attempt.proof_ms is not None:
            self.say(e.OutcomeReconciled, operation, epoch, "elapsed_maximum", "ended")
            return self.settle(operation, attempt, None)
        if not attempt.closed:
            held_ms = self.now_ms - attempt.granted_ms
            self.say(e.ReservationForfeited, operation, epoch, held_ms)
            self.ledger.settle(attempt, None, self.now_ms)
            self.charge(operation, attempt, None)
            self.close(operation, attempt)
        if work is not None and work.phase is Phase.UNKNOWN and self.is_newest(work, attempt):
            self.shut(operation, "hold_bound")
        return None

    def shut(self, operation: OperationId, reason: str) -> None:
        self.say(e.OperatorActionNeeded, operation, reason)
        self.set_aside(operation)
        self.finish(operation, Phase.UNKNOWN_CLOSED)

    def evidence(self, asked: i.OutcomeEvidence) -> None:
        work = self.work.get(asked.operation)
        if work is None or work.incarnation != asked.incarnation:
            return self.say(e.InputQuarantined, Code.NOT_FOUND)
        attempt = self.find(asked.operation, asked.incarnation, asked.epoch)
        if attempt is None or attempt.hold_until_ms is None or asked.evidence in attempt.evidence:
            return None
        if asked.verdict != "inconclusive":
            return self.resolve(asked, attempt, "provider_lookup", asked.verdict)
        if len(attempt.evidence) < 16:
            attempt.evidence.append(asked.evidence)
            self.say(e.EvidenceRecorded, asked.operation, asked.epoch, asked.evidence)
        return None

    def reconcile(self, asked: i.ReconcileRequested) -> None:
        work, operation = self.work.get(asked.operation), asked.operation
        if work is None:
            return self.say(e.ManualActionRefused, operation, "reconcile", Code.NOT_FOUND)
        epoch = work.epoch if asked.epoch is None else asked.epoch
        attempt = self.find(operation, work.incarnation, epoch)
        is_newest = work.phase is Phase.UNKNOWN and epoch == work.epoch
        if attempt is not None and attempt.hold_until_ms is not None:
            if asked.verdict != "abandoned" or is_newest:
                return self.resolve(asked, attempt, "operator", asked.verdict)
        elif work.phase is Phase.UNKNOWN_CLOSED and asked.verdict in FOUND and epoch == work.epoch:
            was_charged = work.ended_epoch == epoch
            self.say(e.OutcomeReconciled, operation, epoch, "operator", asked.verdict)
            self.found_out(operation, work, asked.verdict)
            return self.correct(asked, work, self.of_work(asked, work)) if was_charged else None
        return self.say(e.ManualActionRefused, operation, "reconcile", Code.NOT_UNKNOWN)

    def resolve(self, asked: Any, attempt: Attempt, source: str, verdict: str) -> None:
        """A decisive source: the hold is closed, and its operation goes on if it was the newest."""
        operation, work = asked.operation, self.work[asked.operation]
        self.say(e.OutcomeReconciled, operation, attempt.epoch, source, verdict)
        if source == "usage_report" and self.is_newest(work, attempt):
            work.usage.add(asked.evidence)
        if verdict == "abandoned":
            return self.shut(operation, "abandoned")
        return self.decided(asked, attempt, work, verdict)

    def decided(self, asked: Any, attempt: Attempt, work: Work, verdict: str) -> None:
        operation = asked.operation
        was_unknown, is_newest = work.phase is Phase.UNKNOWN, self.is_newest(work, attempt)
        if is_newest and verdict == "not_executed":
            work.not_executed_epoch = attempt.epoch
            if was_unknown:
                work.not_sent += 1
                self.wait(work)
        elif is_newest and work.phase in GOES_ON:
            self.found_out(operation, work, verdict, (attempt.number, attempt.holder))
        if attempt.closed:
            work.attempt = None
        if verdict == "not_executed":
            if not attempt.closed:
                self.give_back(operation, attempt, e.ReservationReleased, "not_executed")
            if was_unknown and is_newest:
                self.come_back(operation)
        else:
            used = self.used(attempt, asked.prompt_tokens, asked.output_tokens)
            if attempt.closed:
                self.correct(asked, work, used)
            else:
                self.settle(operation, attempt, used)

    def found_out(
        self,
        operation: OperationId,
        work: Work,
        verdict: str,
        ended_by: tuple[int, str] | None = None,
    ) -> None:
        if work.ended_epoch != work.epoch:
            work.charged, work.paid, work.ended_by = (0, 0), 0, ended_by
        work.ended_epoch, work.told = work.epoch, None
        is_over = verdict == "failed" and work.cancel
        self.finish(operation, Phase.CANCELLED if is_over else FOUND[verdict])

    def used(self, attempt: Attempt, prompt: int | None, output: int | None) -> Used | None:
        """Of half a figure the other half is as it was reserved."""
        most_in, most_out = (attempt.takes.get(f"{one}_tokens", 0) for one in ("input", "output"))
        return self.at_least(prompt, output, most_in, most_out)

    def of_work(self, asked: Any, work: Work) -> Used | None:
        """The same of an attempt that is long gone."""
        takes = needs(work.asked, None)
        most = (takes.get(f"{one}_tokens", 0) for one in ("input", "output"))
        return self.at_least(asked.prompt_tokens, asked.output_tokens, *most)

    def at_least(
        self, prompt: int | None, output: int | None, most_in: int, most_out: int
    ) -> Used | None:
        if prompt is not None and output is not None:
            return prompt, output
        if (prompt or 0) <= most_in and (output or 0) <= most_out:
            return None
        return max(prompt or 0, most_in), max(output or 0, most_out)

    def usage(self, asked: i.UsageReported) -> None:
        work, operation, epoch = self.work.get(asked.operation), asked.operation, asked.epoch
        if work is None:
            return self.say(e.UsageRefused, operation, epoch, Code.NOT_FOUND)
        if work.incarnation != asked.incarnation:
            return self.say(e.UsageRefused, operation, epoch, Code.EPOCH_SUPERSEDED)
        attempt = self.find(operation, asked.incarnation, epoch)
        if attempt is not None:
            if not attempt.speaks(asked):
                return self.say(e.UsageRefused, operation, epoch, Code.NOT_ITS_MEMBER)
            if attempt.hold_until_ms is None:
                return self.say(e.UsageRefused, operation, epoch, Code.NOT_UNKNOWN)
            return self.resolve(asked, attempt, "usage_report", "completed")
        if work.ended_epoch != epoch:
            return self.say(e.UsageRefused, operation, epoch, Code.EPOCH_SUPERSEDED)
        if work.ended_by not in (None, (asked.attempt, asked.member)):
            return self.say(e.UsageRefused, operation, epoch, Code.NOT_ITS_MEMBER)
        if asked.evidence in work.usage:
            return None
        return self.correct(asked, work, (asked.prompt_tokens, asked.output_tokens))

    def correct(self, asked: Any, work: Work, used: Used | None) -> None:
        """What the attempt that was charged last really used."""
        if used is None or used == work.charged:
            return
        before = {**usage(work.charged, work.prices), "money": work.paid}
        actual = usage(used, work.prices)
        work.charged, work.paid = used, actual["money"]
        if isinstance(asked, i.UsageReported):
            work.usage.add(asked.evidence)
        told = [
            one[unit] for unit in ("tokens", "input_tokens", "money") for one in (before, actual)
        ]
        epoch = work.epoch if asked.epoch is None else asked.epoch
        self.say(e.UsageCorrected, asked.operation, epoch, *told)
        self.ledger.correct(work, before, actual, self.now_ms)
