"""Budgets as the reference model keeps them: a list of charges, summed up at every look."""

from bisect import bisect_left
from collections.abc import Iterable
from functools import partial
from typing import Any

from schemas import inputs as i
from schemas.inputs import DimensionConfig
from tests.contract.reference_prices import Vector, needs
from tests.contract.reference_windows import (
    NANOS,
    amount,
    burst,
    ceil,
    cost_ns,
    leaves_ms,
    leaving,
    refill_ns,
    refilled_ns,
    settled,
)
from tests.contract.reference_work import Attempt, Charge, Work

SPREAD_MS = 21

Level = tuple[str, str, DimensionConfig]
"""Scope, domain, and one dimension there."""


class Ledger:
    """All charges of a cell, and the limits that they count against."""

    def __init__(self) -> None:
        self.charges: list[Charge] = []
        self.drained: dict[tuple[str, str, str], int] = {}
        """By place: when all that a paced dimension took has drained, in nanoseconds."""
        self.debts: dict[tuple[str, str, str], int] = {}
        """By place: when a bucket is full again but for what has not arrived, likewise."""
        self.now_ms = 0
        self.bounds = i.CellConfig(tenant_defaults=i.TenantConfig())
        self.domains: dict[str, i.DomainConfig] = {}
        self.tenants: dict[str, i.TenantConfig] = {}
        self.pools: dict[str, i.PoolConfig] = {}
        self.pauses: dict[str, int | None] = {}
        """Domains that grant nothing until then; None: until they are configured again."""

    def configure(self, asked: Any) -> None:
        before = {place: self.rate(*place) for place in self.drained}
        self.replace(asked)
        for place, rate in before.items():
            if self.rate(*place) != rate:
                del self.drained[place]

    def replace(self, asked: Any) -> None:
        match asked.scope:
            case "cell":
                self.bounds = asked.cell
                self.pools["self"] = i.PoolConfig(lease_ms=asked.cell.self_lease_ms)
            case "domain":
                self.domains[asked.name] = asked.domain
                self.pauses.pop(asked.name, None)
            case "tenant":
                self.tenants[asked.name] = asked.tenant
            case "pool":
                self.pools[asked.name] = asked.pool

    @property
    def term_ms(self) -> int:
        return self.bounds.clock_bound_ms + SPREAD_MS

    def tenant(self, name: str) -> i.TenantConfig:
        return self.tenants.get(name, self.bounds.tenant_defaults)

    def levels_of(self, domain: str) -> list[Level]:
        """Every level of every tenant."""
        own = [self.levels(domain, name) for name in self.tenants]
        shared = self.levels(domain, "")
        return [*shared, *(level for found in own for level in found if level not in shared)]

    def levels(self, domain: str, tenant: str) -> list[Level]:
        own = [b for b in self.tenant(tenant).budgets if b.domain == domain]
        return [
            *(("domain", domain, one) for one in self.domains[domain].dimensions),
            *((f"tenant:{tenant}", domain, one) for budget in own for one in budget.dimensions),
        ]

    def current(self, scope: str, domain: str, name: str) -> DimensionConfig | None:
        """The dimension as it is configured now."""
        tenant = scope.removeprefix("tenant:")
        here = [
            one
            for level, _, one in self.levels(domain, tenant)
            if (level, one.name) == (scope, name)
        ]
        return here[0] if here else None

    def rate(self, *place: str) -> tuple[int, int] | None:
        one = self.current(*place)
        return None if one is None else (one.limit, one.window_ms or 0)

    def takes(self, work: Work) -> Vector:
        """What a call of it takes, at the prices in force."""
        return needs(work.asked, self.domains[work.asked.domain].prices)

    def never_fits(self, work: Work) -> bool:
        """Alone above a limit; a limit of zero is a pause."""
        levels = self.levels(work.asked.domain, work.asked.tenant)
        return any(0 < one.limit < amount(one, self.takes(work)) for _, _, one in levels)

    def forget_before(self, now_ms: int) -> None:
        """What has left counts no more; a bucket begins to be refilled with it."""
        self.now_ms = now_ms
        for domain in self.domains:
            for level in self.levels_of(domain):
                for (at_ms, _), left in leaving(self.counting(level), now_ms):
                    self.refill(level, left, at_ms)
        # A takeover brings a charge of nothing back, if it has left only just before.
        kept_ms = {True: now_ms, False: now_ms - self.term_ms}
        self.charges = [
            c for c in self.charges if c.exit_ms is None or c.exit_ms > kept_ms[c.amount > 0]
        ]

    def take_over(self, step_ms: int) -> None:
        """A step of time moves every exit; the takeover term is added to each once."""
        self.drained = {place: at + step_ms * NANOS for place, at in self.drained.items()}
        by_ns = (step_ms + self.term_ms) * NANOS
        self.debts = {place: at + by_ns for place, at in self.debts.items()}
        for charge in self.charges:
            if charge.exit_ms is not None:
                charge.exit_ms += step_ms + (0 if charge.aged else self.term_ms)
                charge.aged = True

    def counting(self, level: Level) -> list[Charge]:
        scope, domain, dimension = level
        here = (scope, domain, dimension.name)
        return [c for c in self.charges if (c.scope, c.domain, c.dimension.name) == here]

    def used(self, level: Level, at_ms: int = 0) -> int:
        """What counts in it, once all has left that leaves until `at_ms`.

        The level may be one of which something is kept free, but its bucket is refilled as ever.
        """
        charges = self.counting(level)
        held = sum(c.amount for c in charges if c.exit_ms is None or c.exit_ms > at_ms)
        scope, domain, one = level
        if one.kind != "bucket":
            return held
        one = self.current(scope, domain, one.name) or one
        debt_ns = self.debts.get((scope, domain, one.name), 0)
        for (exit_ms, _), left in leaving(charges, at_ms):
            debt_ns = refilled_ns(one, debt_ns, left, exit_ms)
        left_ns = max(0, debt_ns - max(at_ms, self.now_ms) * NANOS)
        step = ceil(one.limit, 256)
        return held + ceil(ceil(left_ns * one.limit, refill_ns(one)), step) * step

    def refill(self, level: Level, amount: int, at_ms: int) -> None:
        scope, domain, one = level
        place = scope, domain, one.name
        if one.kind == "bucket":
            self.debts[place] = refilled_ns(one, self.debts.get(place, 0), amount, at_ms)

    def fits(self, levels: Iterable[Level], takes: Vector, *, at_ms: int = 0) -> bool:
        """Whether a call fits everywhere, once all has left that leaves until `at_ms`."""
        return all(
            wanted == 0 or wanted + self.used(level, at_ms) <= level[2].limit
            for level in levels
            for wanted in [amount(level[2], takes)]
        )

    def earliest_ms(self, levels: list[Level], takes: Vector) -> int | None:
        """The first instant at which exits alone make it fit, or None."""
        exits = sorted({0, *(charge.exit_ms or 0 for charge in self.charges)})
        buckets = [level for level in levels if level[2].kind == "bucket"]
        others = [level for level in levels if level not in buckets]
        found = [next((at for at in exits if self.fits(others, takes, at_ms=at)), None)]
        for level in buckets:
            last_ms = max(self.now_ms, *exits) + 2 * (level[2].window_ms or 0)
            every = range(self.now_ms, last_ms)
            fits = partial(self.fits, [level], takes)
            at = bisect_left(every, 1, key=lambda at_ms, fits=fits: fits(at_ms=at_ms))
            found.append(every[at] if at < len(every) else None)
        return None if None in found else max(at for at in found if at is not None)

    def verdict(self, work: Work, now_ms: int) -> str:
        """What becomes of a head: it fits, is too late, will be before it can fit, or stays."""
        levels = self.levels(work.asked.domain, work.asked.tenant)
        if work.deadline_ms <= now_ms:
            return "deadline"
        takes = self.takes(work)
        paced_ms = self.paced_ms(levels, takes)
        if self.fits(levels, takes) and paced_ms <= now_ms:
            return "fits"
        earliest_ms = self.earliest_ms(levels, takes)
        if earliest_ms is None or max(earliest_ms, paced_ms) < work.deadline_ms:
            return "stays"
        return "not_before"

    def paced_ms(self, levels: list[Level], takes: Vector) -> int:
        """From when every pace lets a call through: less than its burst is then left to drain."""
        opens = [0]
        for scope, domain, one in levels:
            if amount(one, takes) and (burst_ns := burst(one)) is not None:
                drained_ns = self.drained.get((scope, domain, one.name), 0)
                opens.append((drained_ns - burst_ns) // NANOS + 1)
        return max(opens)

    def pace(self, charge: Charge, change: int, now_ms: int) -> None:
        """It has taken so much more, or less; all drains within one window from now at most."""
        place = charge.scope, charge.domain, charge.dimension.name
        one = self.current(*place)
        if not change or one is None or one.window_ms is None or burst(one) is None:
            return
        window_ns, now_ns = one.window_ms * NANOS, now_ms * NANOS
        takes_ns = ceil(abs(change) * window_ns, one.limit)
        drained_ns = max(self.drained.get(place, 0), now_ns)
        drained_ns += takes_ns if change > 0 else -takes_ns
        self.drained[place] = sorted((now_ns, drained_ns, now_ns + window_ns))[1]

    def hold(self, attempt: Attempt) -> None:
        levels = self.levels(attempt.asked.domain, attempt.asked.tenant)
        attempt.charges = [Charge(*level, amount(level[2], attempt.takes)) for level in levels]
        self.charges += attempt.charges
        for charge in attempt.charges:
            self.pace(charge, charge.amount, attempt.granted_ms)

    def give_back(self, attempt: Attempt, now_ms: int) -> None:
        """Unused; the pace gets back what has not left."""
        for charge in attempt.charges:
            if charge in self.charges:
                self.pace(charge, -charge.amount, now_ms)
        self.drop(attempt.charges)

    def arrive(self, attempt: Attempt) -> None:
        """The call arrives at `latest_ms` at last; what has left stays away."""
        for charge in attempt.charges:
            at_arrival = charge.dimension.instant == "arrival" and charge.dimension.window_ms
            if at_arrival and charge in self.charges and not self.is_over(charge):
                charge.exit_ms = self.leaves_ms(charge, attempt.latest_ms)
                charge.exit_ms += self.term_ms if charge.aged else 0

    def is_over(self, charge: Charge) -> bool:
        """A charge of nothing has left as soon as its instant is there."""
        return not charge.amount and (charge.exit_ms or self.now_ms + 1) <= self.now_ms

    def settle(self, attempt: Attempt, actual: Vector | None, now_ms: int) -> int:
        """The call has ended; what it cost."""
        self.drop(charge for charge in attempt.charges if charge.dimension.kind == "concurrency")
        self.drop([charge for charge in attempt.charges if self.is_over(charge)])
        for charge in attempt.charges:
            before, charge.amount = charge.amount, settled(charge.dimension, charge.amount, actual)
            if charge in self.charges:
                self.pace(charge, charge.amount - before, now_ms)
            elif charge.amount > before:
                level = (charge.scope, charge.domain, charge.dimension)
                self.refill(level, charge.amount - before, now_ms)
            if charge.exit_ms is None and charge.dimension.window_ms:
                charge.exit_ms = self.leaves_ms(charge, now_ms)
        dimensions = self.domains[attempt.asked.domain].dimensions
        return cost_ns(dimensions, attempt.takes, actual, now_ms - attempt.granted_ms)

    def correct(self, work: Work, before: Vector, actual: Vector, now_ms: int) -> None:
        """Use beyond the charge counts from now on; nothing comes back."""
        reserved = needs(work.asked, work.prices)
        for level in self.levels(work.asked.domain, work.asked.tenant):
            dimension = level[2]
            charged = amount(dimension, before)
            if dimension.amount == "reserved" and before["tokens"] > 0:
                charged = max(charged, amount(dimension, reserved))
            extra = amount(dimension, actual) - charged
            if extra > 0:
                charge = Charge(*level, extra)
                charge.exit_ms = self.leaves_ms(charge, now_ms)
                self.charges.append(charge)
                self.pace(charge, extra, now_ms)

    def leaves_ms(self, charge: Charge, latest_ms: int) -> int:
        send_within_ms = self.domains[charge.domain].send_within_ms
        return leaves_ms(charge.dimension, latest_ms, send_within_ms)

    def drop(self, held: Iterable[Charge]) -> None:
        gone = set(map(id, held))
        self.charges = [charge for charge in self.charges if id(charge) not in gone]
