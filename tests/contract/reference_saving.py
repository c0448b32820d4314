"""Saving mode in the reference model: who was passed over, who saves, and what that needs."""

from dataclasses import dataclass
from typing import Any

from schemas import events as e
from schemas.ids import OperationId
from schemas.lanes import BULK, LANES
from schemas.phase import Phase
from tests.contract.reference_ledger import Level, amount
from tests.contract.reference_results import Results
from tests.contract.reference_work import Work


@dataclass
class Skip:
    """A head that was passed over, since when and how often, and until when it is too far."""

    since_ms: int
    count: int = 0
    far_ms: int = 0


class Saving(Results):
    """One saver a domain, while it waits."""

    def __init__(self) -> None:
        super().__init__()
        self.skips: dict[OperationId, Skip] = {}
        self.savers: dict[str, OperationId] = {}
        self.said_to_save: frozenset[OperationId] = frozenset()
        """Of whom the other said in this entry that they save, or would for too long."""

    def forget(self, operation: OperationId) -> None:
        """It has left its queue."""
        self.skips.pop(operation, None)
        self.savers = {d: saver for d, saver in self.savers.items() if saver != operation}

    def forget_gone(self) -> None:
        for operation in list(self.skips):
            if self.work[operation].phase is not Phase.WAITING:
                self.forget(operation)

    def forget_configured(self, asked: Any) -> None:
        for operation in list(self.skips):
            intent = self.work[operation].asked
            if (asked.scope, asked.name) in (("domain", intent.domain), ("tenant", intent.tenant)):
                self.forget(operation)

    def wait(self, work: Work) -> None:
        """Whoever comes back begins anew."""
        super().wait(work)
        for operation in [one for one in self.skips if self.work[one] is work]:
            self.forget(operation)

    def due(self, domain: str) -> list[OperationId]:
        """The saver; without one, all that may save now, the longest waiting first."""
        if domain in self.savers:
            return [self.savers[domain]]
        config, now_ms = self.ledger.domains[domain], self.unstepped_ms
        found = [
            operation
            for operation, skip in self.skips.items()
            if self.work[operation].asked.domain == domain
            and (skip.count >= config.skips_max or now_ms - skip.since_ms >= config.age_max_ms)
            and skip.far_ms <= now_ms
        ]
        return sorted(found, key=lambda operation: self.work[operation].sequence)

    def begin(self, operation: OperationId) -> None:
        """It saves, unless its earliest fit is too far."""
        work = self.work[operation]
        levels = self.ledger.levels(work.asked.domain, work.asked.tenant)
        takes = self.ledger.takes(work)
        known = [
            max(exits_ms, self.ledger.paced_ms([one], takes))
            for one in levels
            if (exits_ms := self.ledger.earliest_ms([one], takes)) is not None
        ]
        earliest_ms = max(known, default=0)
        if earliest_ms > self.now_ms + self.domain(work).saving_max_ms:
            self.skips[operation].far_ms = earliest_ms - self.stepped_ms
        else:
            self.savers[work.asked.domain] = operation
            self.say(e.SavingStarted, operation, self.skips[operation].count)

    def pass_over(self, operation: OperationId) -> None:
        self.skips.setdefault(operation, Skip(self.unstepped_ms)).count += 1

    def vector(self, work: Work, level: Level) -> int:
        """What this head must leave the saver of one dimension."""
        saver = self.work.get(self.savers.get(work.asked.domain, OperationId(b"")))
        if saver is None or saver is work:
            return 0
        if level[0] != "domain" and saver.asked.tenant != work.asked.tenant:
            return 0
        lower = LANES.index(work.asked.lane) >= LANES.index(saver.asked.lane)
        return (
            amount(level[2], self.ledger.takes(saver)) if lower or saver.asked.lane == BULK else 0
        )

    def may_be_held_back(self, work: Work) -> bool:
        """By a saver of bulk: whether bulk is owed its floor is not known here."""
        saver = self.work.get(self.savers.get(work.asked.domain, OperationId(b"")))
        return saver is not None and saver.asked.lane == BULK != work.asked.lane

    def both_bulk(self, work: Work) -> bool:
        saver = self.work.get(self.savers.get(work.asked.domain, OperationId(b"")))
        return saver is not None and saver is not work and saver.asked.lane == BULK
