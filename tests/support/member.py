"""A membership with a clock of the test's own, and the deliveries that its cell would send."""

from itertools import count
from typing import Any

from evenhand._attempt import BaseAttempt
from evenhand._life import Joining, Run
from evenhand._member import Membership
from evenhand._outcome import Result, by_the_rule, result_of
from schemas import events as e
from schemas import inputs as i

MEMBER, POOL = "m1", "p"
OPERATION = bytes(16)


class Life:
    """One membership that begins with its slot granted, unless it is told otherwise."""

    def __init__(self, *, places: int = 1, joined: bool = True) -> None:
        epochs = count(1)
        self.now_ms = 1_000
        self.reported: list[i.Input] = []
        self.membership = Membership[BaseAttempt](
            Joining(pool=POOL, member=MEMBER, places=places),
            make=BaseAttempt,
            fresh_epoch=lambda: f"e{next(epochs)}",
            now_ns=lambda: self.now_ms * 1_000_000,
            report=self.reported.append,
        )
        self.first = self.membership.begin()
        if joined:
            self.hear(self.slot_granted())

    def hear(self, event: Any) -> list[Any]:
        return self.membership.heard(event)

    def run(self, **grant: Any) -> BaseAttempt:
        """Grant and start one attempt."""
        granted = self.grant(**grant)
        self.hear(granted)
        (step,) = self.hear(self.accepted(granted))
        assert isinstance(step, Run)
        return step.attempt  # type: ignore[no-any-return]

    def slot_granted(self, **fields: Any) -> e.MemberSlotGranted:
        return e.MemberSlotGranted(
            member=MEMBER,
            member_epoch=self.membership.epoch,
            pool=POOL,
            places=1,
            join_by_ms=0,
            **fields,
        )

    def grant(self, operation: int = 0, *, epoch: int = 1, **fields: Any) -> e.GrantIssued:
        made: dict[str, Any] = {
            "tenant": "t",
            "operation": operation.to_bytes(16, "big"),
            "incarnation": 1,
            "attempt": epoch,
            "epoch": epoch,
            "member": MEMBER,
            "member_epoch": self.membership.epoch,
            "claim_by_ms": 0,
            "user": "u",
            "pool": POOL,
            "domain": "d",
            "lane": "interactive",
            "effect": "unsafe",
            "payload_bytes": 0,
            "prompt_tokens": 9,
            "output_tokens_max": 3,
            "deadline_ms": 0,
            "send_within_ms": 200,
            "report_send": False,
            "requests": 1,
            "tokens": 12,
            "slots": 1,
            "cost_ns": 0,
            "weight": 1,
            "lift": 0,
            "config_version": 1,
            "authority_epoch": 1,
        }
        return e.GrantIssued(**{**made, **fields})

    def accepted(self, grant: e.GrantIssued) -> e.StartAccepted:
        return e.StartAccepted(**names(grant), send_within_ms=200, latest_arrival_ms=0)

    def refused(self, grant: e.GrantIssued) -> e.StartRefused:
        return e.StartRefused(**names(grant), code="start-refused")

    def revoked(self, grant: e.GrantIssued) -> e.GrantRevoked:
        return e.GrantRevoked(**names(grant), reason="cancelled")

    def lost(self) -> e.MemberLost:
        return e.MemberLost(member=MEMBER, member_epoch=self.membership.epoch)

    def join_refused(self, code: str) -> e.JoinRefused:
        return e.JoinRefused(member=MEMBER, member_epoch=self.membership.epoch, code=code)


def ended(attempt: BaseAttempt, how: Result | BaseException | None) -> i.ResultReported:
    """What is told of an attempt whose handler returned or raised this."""
    result = result_of(
        how,
        went_out=attempt.went_out,
        classify=lambda error: by_the_rule(error, attempt),
    )
    return attempt.ended(result)


def names(grant: e.GrantIssued) -> dict[str, Any]:
    fields = ("tenant", "operation", "incarnation", "attempt", "epoch", "member", "member_epoch")
    return {name: getattr(grant, name) for name in fields}
