"""What a history asks of core and reference: anything, in any order, of what was said before."""

from collections.abc import Callable
from random import Random
from typing import Protocol

import msgspec

from schemas import events as e
from schemas import inputs as i
from schemas.lanes import BULK, INTERACTIVE, LANES
from tests.support import cells as s
from tests.support import core as c

PRICES = i.Prices(currency="EUR", input_micros=3_000, output_micros=15_700, call_micros=2)
DEARER = i.Prices(currency="EUR", input_micros=4_000, output_micros=15_700, call_micros=3)


def configured(
    policy: str, slots: int = 4, requests: int = 9, prices: i.Prices = PRICES
) -> i.ConfigProposed:
    return c.domain(
        c.dimension("slots", slots),
        c.dimension("requests", requests, window_ms=2_000, pace_percent=30),
        c.dimension("tokens", 1_200, window_ms=3_000, amount="actual", pace_percent=None),
        c.dimension("tokens-bucket", 1_300, kind="bucket", window_ms=2_000, amount="actual"),
        c.dimension("tokens-end", 2_500, window_ms=1_000, instant="completion"),
        c.dimension("tokens-day", 9_000, window_ms=9_000, kind="fixed", **c.DAYS),
        c.dimension("input_tokens", 1_100, window_ms=2_500, instant="completion", amount="actual"),
        c.dimension("output_tokens", 1_200, window_ms=2_000, kind="bucket"),
        c.dimension("money", 25, window_ms=2_000, amount="actual", pace_percent=60),
        policy=policy,
        prices=prices,
        waiting_count_max=9,
        send_within_ms=200,
        transit_ms=20,
        claim_by_ms=700,
        attempts_max=3,
        retry_backoff_ms=50,
        retry_burst=1,
        throttles_max=1,
        cooldown_ms=80,
        unknown_hold_ms=3_000,
        skips_max=2,
        age_max_ms=400,
        saving_max_ms=1_500,
        call_ms_max=1_200,
    )


def setup(policy: str) -> list[i.Input]:
    requests = c.dimension("requests", 3, window_ms=1_000, pace_percent=50)
    own = i.TenantBudget(domain="d", dimensions=(requests,))
    return [
        s.bounds(
            guard_horizon_ms=4_000,
            self_lease_ms=600,
            early_cancel_ms=1_500,
            payload_bytes_max=100,
            tenant_defaults=i.TenantConfig(lanes=LANES),
            waiting_bytes_max=250,
        ),
        configured(policy),
        c.domain(c.dimension("slots", 2), name="e", waiting_bytes_max=120, unknown_hold_ms=2_000),
        c.tenant(
            "b",
            weight=3,
            rank=1,
            budgets=(own,),
            waiting_count_max=3,
            runtime_ms_max=900,
            lanes=OFTEN,
        ),
        c.pool("p", lease_ms=800, standing=True),
        c.pool("q", lease_ms=500),
        *(
            c.join(name, places=places, pool=pool, tenant=tenant)
            for name, places, pool, tenant in (*MEMBERS, *OWN)
        ),
        *(c.heartbeat(name) for name, *_ in (*MEMBERS, *OWN)),
    ]


OFTEN = (INTERACTIVE, BULK)
OUTCOMES = [
    *["success"] * 5,
    "terminal",
    "cancelled",
    "odd",
    *["not_sent", "retryable", "unknown"] * 2,
    "throttled",
    "quota_exhausted",
]
MEMBERS = (("m1", 2, "p", None), ("m2", 3, "p", None), ("m3", 1, "q", None))
OWN = (("s1", 1, "self", "a"), ("s2", 2, "self", "a"), ("s3", 1, "self", "b"))


class Heard(Protocol):
    """What the asker was told."""

    policy: str
    grants: list[e.GrantIssued]
    unclear: list[e.GrantIssued]
    """Grants of operations whose outcome was unknown."""


class Asker:
    """What is asked next: duplicates, conflicts, in any order, of what was said before."""

    def __init__(self, chance: Random, heard: Heard, *, own: bool) -> None:
        """`own`: members of pool self are asked for too."""
        self.chance = chance
        self.heard = heard
        self.own = own
        self.submitted: list[i.OperationSubmitted] = []

    def ask(self) -> i.Input:
        chance = self.chance
        if not self.heard.grants:
            return self.submission()
        kinds = list(SHARES)
        (kind,) = chance.choices(kinds, [SHARES[kind] for kind in kinds])
        return kind(self)

    def some(self) -> e.GrantIssued:
        return self.chance.choice(self.heard.grants[-8:])

    def doubtful(self) -> e.GrantIssued:
        """One of an operation whose outcome was unknown, rather than any other."""
        unclear = self.heard.unclear[-6:]
        return (
            self.chance.choice(unclear) if unclear and self.chance.random() < 0.8 else self.some()
        )

    def cancellation(self) -> i.Input:
        return s.cancel(self.chance.choice([*self.submitted[-8:], self.submission()]))

    def configuration(self) -> i.Input:
        chance = self.chance
        slots, requests = chance.choice([0, 1, 4]), chance.choice([0, 3, 9])
        return configured(self.heard.policy, slots, requests, chance.choice([PRICES, DEARER]))

    def start(self) -> i.Input:
        return c.start(self.some())

    def claim(self) -> i.Input:
        return c.claim(self.some())

    def sent(self) -> i.Input:
        return c.sent(self.some(), self.chance.choice([0, 5, 150, 10_000]))

    def renewal(self) -> i.Input:
        member = self.chance.choice((*MEMBERS, *OWN) if self.own else MEMBERS)[0]
        held = [one for one in self.heard.grants[-12:] if one.member == member]
        named = self.chance.sample(held, self.chance.randint(0, len(held)))
        return c.heartbeat(member, "e1", *named, sent_ms=self.chance.choice([None, 7, 2**62]))

    def result(self) -> i.Input:
        chance = self.chance
        grant = self.doubtful() if chance.random() < 0.3 else self.some()
        output = chance.choice([None, 0, grant.output_tokens_max, 2_000])
        return c.result(
            grant,
            chance.choice(OUTCOMES),
            output_tokens=output,
            send_delay_ms=chance.choice([None, 3]),
            retry_after_ms=chance.choice([None, 0, 30, 400]),
        )

    def checkpoint(self) -> i.Input:
        return c.checkpoint(self.some(), self.chance.choice([0, 1, 1, 2, 3]))

    def usage(self) -> i.Input:
        tokens = self.chance.choice([0, 40, 700])
        grant, report = self.doubtful(), self.chance.randrange(3)
        by = {"member": MEMBERS[0][0]} if report == 2 else {}  # a stranger, or the same
        return c.usage(grant, tokens, evidence=f"u{report}", **by)

    def evidence(self) -> i.Input:
        verdict = self.chance.choice(["completed", "failed", "not_executed", "inconclusive"])
        name = f"e{self.chance.randrange(5)}"
        return c.evidence(self.doubtful(), verdict, evidence=name, output_tokens=70)

    def reconcile(self) -> i.Input:
        grant = self.doubtful()
        verdict = self.chance.choice(["completed", "failed", "not_executed", "abandoned"])
        epoch = self.chance.choice([None, grant.epoch])
        return c.reconcile(grant, verdict, epoch=epoch, output_tokens=700 if epoch else None)

    def retry(self) -> i.Input:
        return c.retry(self.doubtful(), self.chance.choice([0, 2_000]))

    def submission(self) -> i.OperationSubmitted:
        chance = self.chance
        if self.submitted and chance.random() < 0.1:
            return chance.choice(self.submitted)
        made = c.submitted(
            chance.choice("abc"),
            f"k{chance.randrange(60)}",
            domain=chance.choice(["d"] * 12 + ["e"] * 4 + ["none"]),
            pool=chance.choice(["p"] * 12 + ["q"] * 4 + ["none"]),
            lane=chance.choice([*LANES, *OFTEN, INTERACTIVE]),
            prompt_tokens=chance.choice([1, 10, 100, 300, 900]),
            output_tokens_max=chance.choice([0, 50, 50, 500, 500, 5_000, None]),
            start_within_ms=chance.choice([1, 400, 2_000, 60_000, 60_000, 60_000, None]),
            payload_bytes=chance.choice([0, 0, 0, 0, 10, 90, 1_000]),
            effect=chance.choice(["unsafe", "keyed", "read_only"]),
            runtime_ms=chance.choice([None, None, 300]),
        )
        if chance.random() < 0.1:
            run = {"turns_max": 2, "prompt_tokens": 0, "output_tokens_max": None}
            made = msgspec.structs.replace(made, **run)
        elif self.heard.grants and chance.random() < 0.1:
            made = msgspec.structs.replace(made, parent=self.some().operation)
        if self.own and chance.random() < 0.4:
            member, _, pool, tenant = chance.choice(OWN)
            tenant = chance.choice([tenant] * 9 + ["c"])
            made = msgspec.structs.replace(made, pool=pool, member=member, tenant=tenant)
        self.submitted.append(made)
        return made


SHARES: dict[Callable[[Asker], i.Input], float] = {
    Asker.submission: 28,
    Asker.cancellation: 4,
    Asker.configuration: 2,
    Asker.claim: 3,
    Asker.start: 24,
    Asker.sent: 4,
    Asker.renewal: 5,
    Asker.result: 18,
    Asker.checkpoint: 2,
    Asker.usage: 3,
    Asker.evidence: 3,
    Asker.reconcile: 2,
    Asker.retry: 2,
}
"""How often each is asked, of a hundred."""
