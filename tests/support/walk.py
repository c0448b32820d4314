"""A random history of one cell, drawn from a seed: everything that can be asked, in any order."""

from collections.abc import Callable
from random import Random

from msgspec.structs import replace

from schemas import events as e
from schemas import inputs as i
from schemas.lanes import INTERACTIVE, LANES
from tests.support import cells as s
from tests.support import core as c

TENANTS, MEMBERS = ["a", "b", "ab", "ünïcode"], ["m1", "m2", "m3"]
POLICIES = ["fifo", "strict_priority", "round_robin", "virtual_counter"]
POLICIES += ["weighted_round_robin", "deficit_round_robin"]
OUTCOMES = [
    *["success"] * 6,
    *["terminal", "cancelled", "policy_denied", "throttled", "quota_exhausted", "odd"],
    *["not_sent"] * 2 + ["retryable", "unknown"] * 3,
]
PRICES = i.Prices(currency="EUR", input_micros=3_100_000, output_micros=15_700_000, call_micros=100)
RECENT = 8
HARD = {"attempts_max": 3, "retry_backoff_ms": 200, "retry_burst": 2, "throttles_max": 1}
SAVES = {"skips_max": 2, "age_max_ms": 500, "saving_max_ms": 2_000}
"""Bounds of retries and of saving that a walk reaches."""
HOLD = {"unknown_hold_ms": 4_000, "cooldown_ms": 300}


class Walk:
    """What a walk asks depends on its seed and on what it was told, never on the cell's memory."""

    def __init__(self, seed: int, cell: c.Core | None = None) -> None:
        self.chance = Random(seed)
        self.cell = cell or c.Core()
        self.seen: list[i.OperationSubmitted] = []
        self.grants: list[e.GrantIssued] = []
        self.unknown: list[e.GrantIssued] = []
        self.lives = dict.fromkeys(MEMBERS, 1)
        self.events: list[e.Event] = []
        self.starts: set[tuple[bytes, int, int]] = set()
        self.newest: dict[bytes, tuple[int, int]] = {}
        call_ms_max = self.chance.choice([None, 1_500])
        self.keep(
            self.cell.run(
                s.bounds(
                    member_ttl_ms=3_000,
                    guard_horizon_ms=self.chance.choice([3_000, 10**9]),
                    self_lease_ms=700,
                    tenant_defaults=i.TenantConfig(lanes=LANES),
                ),
                c.domain(
                    c.dimension("slots", 4),
                    c.dimension("requests", 9, window_ms=2_000, pace_percent=None),
                    c.dimension("tokens", 900, window_ms=3_000, amount="actual", pace_percent=50),
                    c.dimension("tokens-end", 2_000, window_ms=1_000, instant="completion"),
                    c.dimension("tokens-day", 20_000, window_ms=9_000, kind="fixed", **c.DAYS),
                    c.dimension("input_tokens", 300, window_ms=1_000, amount="actual"),
                    c.dimension("output_tokens", 900, window_ms=2_000, instant="completion"),
                    c.dimension("money", 9_000, window_ms=2_000, amount="actual"),
                    c.dimension("money-5s", 30_000, window_ms=5_000),
                    prices=PRICES,
                    policy=self.chance.choice(POLICIES),
                    send_within_ms=200,
                    claim_by_ms=700,
                    call_ms_max=call_ms_max,
                    **HARD,
                    **HOLD,
                    **SAVES,
                ),
                c.domain(c.dimension("slots", 2), name="d2", hold_initial_ms=100, **HOLD, **SAVES),
                c.pool(places_max=9, lease_ms=1_000, standing=True),
                c.pool("q", domains=("d2",), lease_ms=500),
                c.pool("open-to-all", unclaimed_max=2, lease_ms=1_000),
            )
        )
        budget = i.TenantBudget(domain="d", dimensions=(c.dimension("requests", 4),))
        fields = {"weight": 3, "budgets": (budget,), "waiting_count_max": 5, "runtime_ms_max": 900}
        self.keep(self.cell.run(c.tenant("b", lanes=LANES, **fields)))

    def keep(self, events: list[e.Event]) -> None:
        """Remember what was told, and insist on what holds for all histories (R63, R68)."""
        self.events += events
        for event in events:
            if isinstance(event, e.GrantIssued):
                self.grants.append(event)
                epoch = event.incarnation, event.epoch
                assert epoch > self.newest.get(event.operation, (-1, 0)), "an epoch came again"
                self.newest[event.operation] = epoch
            if isinstance(event, e.LeaseClaimed):
                self.grants += [
                    replace(one, member=event.member, member_epoch=event.member_epoch)
                    for one in self.grants
                    if not one.member
                    and (one.operation, one.epoch) == (event.operation, event.epoch)
                ]
            if isinstance(event, e.StartAccepted):
                named = (event.operation, event.incarnation, event.attempt)
                assert named not in self.starts, "a second start of one attempt was accepted"
                self.starts.add(named)
            if isinstance(event, e.OutcomeMarkedUnknown):
                self.unknown += [one for one in self.grants if c.named(one) == c.named(event)]

    def entry(self) -> None:
        """Time passes or not, and some of everything is asked; sometimes another owner does it."""
        chance = self.chance
        if chance.random() < 0.03:
            step_ms, silence_ms = chance.choice([None, None, 5_000]), chance.choice([0, 1_200])
            self.cell.take_over(step_ms=step_ms, silence_ms=silence_ms)
        asked = [self.ask() for _ in range(chance.choice([0, 1, 1, 2, 5]))]
        if asked and chance.random() < 0.1:
            asked.append(asked[0])
        after_ms = chance.choice([0, 1, 10, 100, 400, 3_000 if chance.random() < 0.1 else 0])
        timers = chance.random() < 0.9
        self.keep(self.cell.run(*asked, after_ms=after_ms, timers=timers))

    def ask(self) -> i.Input:
        """Any input."""
        if not self.grants:
            return self.chance.choice([self.submission, self.membership])()
        kinds = list(SHARES)
        (kind,) = self.chance.choices(kinds, [SHARES[kind] for kind in kinds])
        asked = kind(self)
        field = self.chance.choice(["epoch", "incarnation", "attempt"])
        wrong = self.chance.random() < 0.03 and hasattr(asked, field)
        return replace(asked, **{field: self.chance.choice([-1, 0, 2**31 - 1])}) if wrong else asked

    def some(self) -> e.GrantIssued:
        """A recent grant, or one whose outcome was unknown."""
        if self.unknown and self.chance.random() < 0.2:
            return self.chance.choice(self.unknown[-RECENT:])
        return self.chance.choice(self.grants[-RECENT:])

    def doubtful(self) -> e.GrantIssued:
        """A grant whose outcome was unknown, rather than any other."""
        if self.unknown and self.chance.random() < 0.9:
            return self.chance.choice(self.unknown[-RECENT:])
        return self.some()

    def epoch(self, member: str) -> str:
        return f"{member}-{self.lives[member]}"

    # -- what is asked ---------------------------------------------------------------------------

    def submission(self) -> i.OperationSubmitted:
        chance = self.chance
        if self.seen and chance.random() < 0.15:
            return chance.choice(self.seen)
        run, odd = chance.random() < 0.1, chance.random() < 0.15
        pool = chance.choice(["p", "p", "p", "q", "self", "open-to-all"])
        domain = "d2" if pool == "q" else chance.choice(["d", "d", "d", "d2"])
        asked = c.submitted(
            chance.choice(TENANTS),
            f"k{chance.randrange(200)}",
            domain=chance.choice(["none", "d3"]) if odd else domain,
            pool=pool,
            lane=chance.choice([*LANES, INTERACTIVE]),
            prompt_tokens=0 if run else chance.choice([950, -1] if odd else [0, 10, 300]),
            output_tokens_max=None if run or odd else chance.choice([0, 50, 50, 500]),
            start_within_ms=chance.choice([1, None] if odd else [500, 2_000, 60_000]),
            payload_bytes=1 << 40 if odd and chance.random() < 0.3 else chance.choice([0, 10]),
            member=chance.choice(MEMBERS) if pool == "self" else None,
            effect=chance.choice(["unsafe", "keyed", "read_only"]),
            runtime_ms=chance.choice([None, None, 300]),
            turns_max=2 if run else None,
            parent=self.some().operation if self.grants and chance.random() < 0.1 else None,
        )
        self.seen.append(asked)
        return asked

    def membership(self) -> i.Input:
        member, chance = self.chance.choice(MEMBERS), self.chance
        roll = chance.random()
        if roll < 0.3:
            if chance.random() < 0.3:
                self.lives[member] += 1
            pool = "p" if member == "m1" else chance.choice(["p", "q", "self", "open-to-all"])
            return c.join(
                member,
                places=chance.choice([0, 1, 3, 3]),
                member_epoch=self.epoch(member),
                pool=pool,
                tenant="a" if pool == "self" else None,
            )
        if roll < 0.98:
            return c.heartbeat(member, self.epoch(member), sent_ms=self.clock())
        self.lives[member] += 1
        return i.LeaveAnnounced(member=member, member_epoch=f"{member}-{self.lives[member] - 1}")

    def renewal(self) -> i.HeartbeatReported:
        member = self.chance.choice(MEMBERS)
        recent = [one for one in self.grants[-RECENT:] if one.member == member]
        named = self.chance.sample(recent, self.chance.randint(0, len(recent)))
        if self.chance.random() < 0.1:
            named.append(self.some())
        return c.heartbeat(member, self.epoch(member), *named, sent_ms=self.clock())

    def clock(self) -> int | None:
        """What a heartbeat tells of its member's clock: now its free places stand, now not."""
        return 7 if len(self.events) % 2 else None

    def claim(self) -> i.ClaimRequested:
        grant = self.some()
        return c.claim(grant, **self.taker(grant))

    def start(self) -> i.StartRequested:
        grant = self.some()
        return c.start(grant, **self.taker(grant))

    def taker(self, grant: e.GrantIssued) -> dict[str, str]:
        """Who may take it: whoever it names, or anybody if it names nobody."""
        member = grant.member or self.chance.choice(MEMBERS)
        return {"member": member, "member_epoch": grant.member_epoch or self.epoch(member)}

    def sent(self) -> i.SendReported:
        return c.sent(self.some(), self.chance.choice([0, 5, 150, 10_000, -1]))

    def result(self) -> i.ResultReported:
        grant, chance = self.some(), self.chance
        used = chance.choice([None, 0, grant.output_tokens_max, 5 * grant.output_tokens_max])
        return c.result(
            grant,
            chance.choice(OUTCOMES),
            output_tokens=used,
            send_delay_ms=chance.choice([None, 3]),
            retry_after_ms=chance.choice([None, 0, 100, 1_000]),
        )

    def checkpoint(self) -> i.CheckpointReported:
        return c.checkpoint(self.some(), self.chance.choice([0, 1, 1, 2, 3]))

    def usage(self) -> i.UsageReported:
        tokens = self.chance.choice([0, 40, 700, -1])
        grant, report = self.doubtful(), self.chance.randrange(3)
        member = MEMBERS[0] if report == 2 else grant.member  # a stranger, or the same
        return c.usage(grant, tokens, evidence=f"u{report}", member=member)

    def evidence(self) -> i.OutcomeEvidence:
        verdict = self.chance.choice(["completed", "failed", "not_executed", "inconclusive", "odd"])
        name = f"e{self.chance.randrange(20)}"
        return c.evidence(self.doubtful(), verdict, evidence=name, output_tokens=70)

    def reconcile(self) -> i.ReconcileRequested:
        grant = self.doubtful()
        verdict = self.chance.choice(["completed", "failed", "not_executed", "abandoned", "odd"])
        epoch = self.chance.choice([None, grant.epoch])
        return c.reconcile(grant, verdict, epoch=epoch, output_tokens=700 if epoch else None)

    def retry(self) -> i.RetryRequested:
        return c.retry(self.doubtful(), self.chance.choice([0, 5_000]))

    def cancellation(self) -> i.CancellationRequested:
        some = self.chance.choice(self.seen)
        tenant = self.chance.choice([some.tenant, "a"])
        return i.CancellationRequested(tenant=tenant, operation=c.id_of(some), reason="no")

    def configuration(self) -> i.ConfigProposed:
        chance = self.chance
        slots, tokens = chance.choice([0, 1, 4]), chance.choice([0, 90, 900])
        return chance.choice(
            [
                c.tenant(
                    chance.choice(TENANTS),
                    weight=chance.choice([0, 1, 2, 1_000_000]),
                    lanes=chance.choice([LANES, LANES, (INTERACTIVE,)]),
                ),
                c.domain(
                    c.dimension("slots", slots),
                    c.dimension("tokens", tokens, window_ms=3_000),
                    *chance.choice([(), (c.dimension("money", 9_000, window_ms=2_000),)]),
                    prices=chance.choice([PRICES, replace(PRICES, call_micros=200), None]),
                    name=chance.choice(["d", "d3"]),
                    policy=chance.choice(POLICIES),
                    bulk_weight=chance.choice([1, 5, 70]),
                    claim_by_ms=700,
                    retry_burst=chance.choice([0, 1, 3]),
                    **HOLD,
                    **SAVES,
                ),
            ]
        )


SHARES: dict[Callable[[Walk], i.Input], float] = {
    Walk.submission: 24,
    Walk.membership: 14,
    Walk.renewal: 6,
    Walk.claim: 3,
    Walk.start: 18,
    Walk.sent: 3,
    Walk.result: 16,
    Walk.checkpoint: 2,
    Walk.usage: 3,
    Walk.evidence: 3,
    Walk.reconcile: 2,
    Walk.retry: 2,
    Walk.cancellation: 3,
    Walk.configuration: 1,
}
"""How often each is asked, of a hundred."""
