"""What all rules of the reference model stand on: what was said, and how work waits or ends."""

from typing import Any

from schemas import events as e
from schemas import inputs as i
from schemas.codes import Code
from schemas.ids import OperationId
from schemas.phase import Phase
from tests.contract.reference_ledger import Ledger
from tests.contract.reference_prices import Used, price, usage
from tests.contract.reference_work import Attempt, Work

HoldName = tuple[OperationId, int, int]
"""Operation, incarnation and epoch."""


class Base:
    """One cell whose members never fall silent."""

    def __init__(self) -> None:
        self.now_ms = self.height = self.sequence = 0
        self.shift_ms = 0
        """Lease time is entry time less this: steps of time, and silences."""
        self.ledger = Ledger()
        self.members: dict[str, i.JoinRequested] = {}
        self.work: dict[OperationId, Work] = {}
        self.holds: dict[HoldName, Attempt] = {}
        """Uncertain attempts that are no longer the newest."""
        self.looks: dict[str, int] = {}
        """When somebody looks at a member's leases again."""
        self.credit: dict[tuple[str, str], int] = {}
        self.early: dict[OperationId, int] = {}
        self.epoch, self.stepped_ms = 1, 0
        self.offered: dict[str, int] = {}
        """Which members' free places stand for start requests, under which owner."""
        self.said: list[tuple[Any, ...]] = []

    @property
    def lease_now_ms(self) -> int:
        return self.now_ms - self.shift_ms

    @property
    def unstepped_ms(self) -> int:
        return self.now_ms - self.stepped_ms

    def say(self, kind: type, *details: Any) -> None:
        self.said.append((kind.__name__, *details))

    def domain(self, work: Work) -> i.DomainConfig:
        return self.ledger.domains[work.asked.domain]

    def stale(self, asked: Any) -> Code | None:
        work = self.work.get(asked.operation)
        if work is None:
            return Code.NOT_FOUND
        current = work.attempt is not None and work.attempt.speaks(asked)
        return None if current else Code.EPOCH_SUPERSEDED

    def find(self, operation: OperationId, incarnation: int, epoch: int) -> Attempt | None:
        """The newest attempt, or an older one that is uncertain."""
        work = self.work.get(operation)
        newest = None if work is None else work.attempt
        if newest is not None and (newest.incarnation, newest.epoch) == (incarnation, epoch):
            return newest
        return self.holds.get((operation, incarnation, epoch))

    def is_newest(self, work: Work | None, attempt: Attempt) -> bool:
        named = (attempt.incarnation, attempt.epoch)
        return work is not None and named == (work.incarnation, work.epoch)

    # -- how work goes on ------------------------------------------------------------------------

    def wait(self, work: Work) -> None:
        work.phase, work.not_before_ms = Phase.WAITING, None

    def end(self, operation: OperationId, kind: type, phase: Phase, *details: Any) -> None:
        """Over without a result."""
        self.say(kind, operation, *details)
        if kind is e.OperationCancelled:
            self.early.pop(operation, None)
        self.finish(operation, phase)

    def finish(self, operation: OperationId, phase: Phase) -> None:
        work = self.work[operation]
        work.phase, work.not_before_ms = phase, None
        work.forget_ms = self.now_ms + self.ledger.bounds.guard_horizon_ms

    def come_back(self, operation: OperationId) -> None:
        """After a return without a call: it waits, unless nobody wants it or it is too late."""
        work = self.work[operation]
        if work.cancel:
            self.end(operation, e.OperationCancelled, Phase.CANCELLED)
        elif self.now_ms >= work.deadline_ms:
            self.end(operation, e.OperationExpired, Phase.EXPIRED, "deadline")
        elif work.not_sent >= 32:
            self.end(operation, e.OperationExpired, Phase.EXPIRED, Code.NOT_SENT_EXHAUSTED)

    # -- how a reservation ends ------------------------------------------------------------------

    def settle(self, operation: OperationId, attempt: Attempt, used: Used | None) -> None:
        held_ms = self.now_ms - attempt.granted_ms
        actual = None if used is None else usage(used, attempt.prices)
        cost = self.ledger.settle(attempt, actual, self.now_ms)
        tokens = None if used is None else sum(used)
        overdraft = max(0, (tokens or 0) - attempt.takes.get("tokens", 0))
        paid = (actual or attempt.takes).get("money", 0)
        amounts = (tokens, used[0] if used else 0, paid, overdraft)
        self.say(e.ReservationSettled, operation, attempt.epoch, *amounts, held_ms, cost)
        self.charge(operation, attempt, used)
        self.close(operation, attempt)

    def charge(self, operation: OperationId, attempt: Attempt, used: Used | None) -> None:
        """None: as it was reserved."""
        work = self.work.get(operation)
        if work is not None and self.is_newest(work, attempt):
            takes = attempt.takes
            reserved = (takes.get("input_tokens", 0), takes.get("output_tokens", 0))
            work.charged = reserved if used is None else used
            work.prices, work.ended_epoch = attempt.prices, attempt.epoch
            work.ended_by = (attempt.number, attempt.holder)
            work.paid = price(attempt.prices, *work.charged)

    def give_back(self, operation: OperationId, attempt: Attempt, kind: type, *why: str) -> None:
        self.say(kind, operation, *why)
        self.ledger.give_back(attempt, self.now_ms)
        work = self.work.get(operation)
        newest = work is not None and self.is_newest(work, attempt)
        if newest and work is not None and work.ended_epoch == attempt.epoch:
            work.charged, work.paid, work.prices = (0, 0), 0, attempt.prices
        self.close(operation, attempt)

    def close(self, operation: OperationId, attempt: Attempt) -> None:
        """The reservation is over; the attempt too, unless its outcome stays unknown."""
        work = self.work.get(operation)
        if work is not None and work.attempt is attempt:
            if work.phase is Phase.UNKNOWN:
                attempt.closed, attempt.proof_ms = True, None
            else:
                work.attempt = None
        self.holds.pop((operation, attempt.incarnation, attempt.epoch), None)

    def set_aside(self, operation: OperationId) -> None:
        """The operation goes on without its unknown attempt, which keeps what it holds."""
        work = self.work[operation]
        attempt, work.attempt = work.attempt, None
        if attempt is not None and not attempt.closed:
            self.holds[operation, attempt.incarnation, attempt.epoch] = attempt
