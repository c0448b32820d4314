"""Submissions whose class of outcome is known before they are sent."""

from random import Random
from typing import Any, NamedTuple

from msgspec.structs import replace

from schemas import events as e
from schemas import inputs as i
from schemas.codes import Code
from schemas.ids import CellId, DimensionName, DomainId, TenantId, UserId, operation_id
from schemas.lanes import BULK, DECISION, INTERACTIVE, LANES
from schemas.units import Micros, Millis, Tokens
from streams.core.outcomes import Source, Unreadable
from streams.shell.inputs import Place
from tests.simulation import crew, provider
from tests.simulation.faults import Faults
from tests.simulation.inputs import PARTITIONS, InputTopics

CELL = CellId("cell")
DOMAIN = DomainId("model")
ENTITLED = {"ant": LANES, "bee": (INTERACTIVE, DECISION), "cat": (INTERACTIVE, BULK)}
"""Which lanes each tenant may use, once it is configured."""
TENANTS = tuple(ENTITLED)
POLICIES = ("weighted_round_robin", "deficit_round_robin", "virtual_counter")
CLOCK_BOUND_MS = 5
HOLD_MS = 900
"""Longer than the provider's longest call, its way and its span to be sent."""
EFFECTS = ("unsafe", "keyed", "read_only")
PROMPT_TOKENS = 3
LIMITS = {"output_tokens": provider.OUTPUT_MAX, "money": provider.MONEY_MAX}
PRICES = i.Prices("EUR", Micros(1_000_000), Micros(4_000_000), Micros(2))
LARGE = 0.15
"""How much of what is sent asks for a whole bucket at once."""


def configuration(random: Random, also: str | None) -> list[i.ConfigProposed]:
    """A small cell with short spans, so that everything happens within a second or two."""
    dimensions = (
        _window("requests", provider.REQUESTS_MAX),
        _window("tokens", provider.TOKENS_MAX),
        *(_window(unit, limit) for unit, limit in LIMITS.items() if unit == also),
        i.DimensionConfig(
            name=DimensionName("bucket"),
            unit="tokens",
            kind="bucket",
            limit=provider.BUCKET_MAX,
            window_ms=Millis(provider.REFILL_MS),
        ),
        i.DimensionConfig(
            name=DimensionName("slots"), unit="slots", kind="concurrency", limit=provider.SLOTS_MAX
        ),
    )
    cell = i.CellConfig(
        submissions_per_entry_max=3, grants_per_entry_max=4, timers_per_entry_max=4,
        member_ttl_ms=Millis(crew.TTL_MS), join_by_ms=Millis(300),
        clock_bound_ms=Millis(CLOCK_BOUND_MS), silence_ms=Millis(80),
        deferral_sample_ms=Millis(50), early_cancel_ms=Millis(200),
        tenant_defaults=i.TenantConfig(waiting_count_max=6, lanes=(INTERACTIVE,)),
    )  # fmt: skip
    domain = i.DomainConfig(
        policy=random.choice(POLICIES), dimensions=dimensions, prices=PRICES,
        claim_by_ms=Millis(120),
        send_within_ms=Millis(crew.SEND_WITHIN_MS), transit_ms=Millis(crew.TRANSIT_MS),
        hold_initial_ms=Millis(20), attempts_max=3, retry_backoff_ms=Millis(10), retry_burst=4,
        cooldown_ms=Millis(40), throttles_max=2, unknown_hold_ms=Millis(HOLD_MS),
        call_ms_max=random.choice((None, Millis(provider.CALL_MS_MAX))),
        skips_max=2, age_max_ms=Millis(60), saving_max_ms=Millis(random.choice((40, 600))),
        bulk_weight=random.choice((1, 5, 70)),
    )  # fmt: skip
    lease_ms = Millis(crew.LEASE_MS)
    standing = random.random() < 0.5
    pool = i.PoolConfig(members_max=4, places_max=8, lease_ms=lease_ms, standing=standing)
    return [
        _proposed("cell", CELL, cell=cell),
        _proposed("domain", DOMAIN, domain=domain),
        _proposed("pool", crew.POOL, pool=pool),
        *[
            _proposed(
                "tenant",
                name,
                tenant=i.TenantConfig(weight=weight, waiting_count_max=6, lanes=ENTITLED[name]),
            )
            for name, weight in (("ant", 2), ("bee", 1), ("cat", 1))
        ],
    ]


def _window(unit: str, limit: int) -> i.DimensionConfig:
    window_ms = Millis(provider.WINDOW_MS)
    return i.DimensionConfig(
        name=DimensionName(unit), unit=unit, kind="sliding", limit=limit, window_ms=window_ms
    )


def _proposed(scope: str, name: str, **body: Any) -> i.ConfigProposed:
    return i.ConfigProposed(scope=scope, name=name, author="simulation", reason="begin", **body)


class Sent(NamedTuple):
    """What was sent, and which answers may come: new, again, other, impossible or unreadable."""

    kind: str
    body: i.OperationSubmitted | None


class Workload:
    """Sends one thing at a time and remembers, by position, what must become of it."""

    def __init__(self, random: Random, faults: Faults, inputs: InputTopics) -> None:
        self._random, self._inputs = random, inputs
        self.faults = faults
        self.sent: dict[Source, Sent] = {}
        self._known: list[i.OperationSubmitted] = []

    def step(self) -> None:
        drawn = self._random.random()
        if self._random.random() < self.faults.unreadable:
            self._unreadable()
        elif drawn < 0.72 or not self._known:
            self._new("new")
        elif drawn < 0.80:
            self._send(self._random.choice(self._known), "again")
        elif drawn < 0.85:
            self._conflict()
        elif drawn < 0.90:
            self._new("impossible")
        else:
            self._cancel()

    def _new(self, kind: str) -> None:
        random = self._random
        tenant, tokens = TenantId(random.choice(TENANTS)), random.randint(4, 12)
        lane = random.choice(ENTITLED[tenant])
        if random.random() < LARGE:
            tokens = provider.BUCKET_MAX - PROMPT_TOKENS
        if kind == "impossible":
            foreign = [one for one in LANES if one not in ENTITLED[tenant]]
            tokens, lane = random.choice(
                [(10 * provider.TOKENS_MAX, lane), *((tokens, one) for one in foreign)]
            )
        is_run = kind == "new" and self._random.random() < 0.1
        submitted = i.OperationSubmitted(
            tenant=tenant, lane=lane, user=UserId("user"),
            idempotency_key=f"key-{len(self.sent)}", pool=crew.POOL, domain=DOMAIN,
            prompt_tokens=Tokens(0 if is_run else PROMPT_TOKENS),
            output_tokens_max=None if is_run else Tokens(tokens),
            start_within_ms=Millis(self._random.choice((200, 500, 1_000, 3_000))),
            effect=self._random.choice(EFFECTS), turns_max=2 if is_run else None,
            runtime_ms=self._random.choice((None, Millis(300))),
        )  # fmt: skip
        if kind == "new":
            self._known.append(submitted)
        self._send(submitted, kind)
        if self._random.random() < self.faults.repeat:
            self._send(submitted, "impossible" if kind == "impossible" else "again")

    def turn(self, run: e.GrantIssued, number: int) -> None:
        """A provider turn of a run, sent by the worker that has it; maybe one too many."""
        submitted = i.OperationSubmitted(
            tenant=run.tenant, user=run.user,
            idempotency_key=f"turn-{run.operation.hex()}-{number}", pool=crew.POOL,
            domain=DOMAIN, prompt_tokens=Tokens(3), output_tokens_max=Tokens(5),
            start_within_ms=Millis(400), effect="read_only", parent=run.operation,
        )  # fmt: skip
        self._send(submitted, "new")

    def _conflict(self) -> None:
        first = self._random.choice(self._known)
        other = replace(first, prompt_tokens=Tokens(first.prompt_tokens + 1))
        self._send(other, "other")

    def _cancel(self) -> None:
        first = self._random.choice(self._known)
        operation = operation_id(
            pool=first.pool, tenant=first.tenant, user=first.user,
            idempotency_key=first.idempotency_key,
        )  # fmt: skip
        self._inputs.send(i.CancellationRequested(tenant=first.tenant, operation=operation))

    def _unreadable(self) -> None:
        place = Place(self._random.randrange(6), self._random.randrange(PARTITIONS))
        body = Unreadable(Code.WRONG_PARTITION, "Expected another partition")
        self.sent[self._inputs.put(place, body)] = Sent("unreadable", None)

    def _send(self, submitted: i.OperationSubmitted, kind: str) -> None:
        self.sent[self._inputs.send(submitted)] = Sent(kind, submitted)
