"""The demo's cell: one model with hard limits, three tenants that want more than it can give."""

from collections.abc import Iterator

from evenhand.dev.judge import Limits
from evenhand.dev.play import TENANTS
from schemas.ids import DimensionName, DomainId, PoolId, TenantId
from schemas.inputs import (
    CellConfig,
    ConfigProposed,
    DimensionConfig,
    DomainConfig,
    PoolConfig,
    TenantConfig,
)
from schemas.units import Millis

CELL, DOMAIN, POOL = "main", DomainId("model"), PoolId("workers")
SPEED_UP = 10
"""Arrivals, service and windows alike, so that an hour of traffic is six minutes."""
LIMITS = Limits(requests=420, tokens=1_065_000, slots=30, window_ms=6_000)
"""What the provider allows: a tenth of a minute of 4,200 requests and 10,650,000 tokens."""
WEIGHTS = {"code": 2, "chat-a": 1, "chat-b": 1}
WAITING_MAX, WAITING_TENANT_MAX = 3_000, 1_000
USER = "the traces"
OVER_API = ("chat-b",)
"""Tenants that submit over the API; the others write to the topics themselves."""
START_WITHIN_MS = 60_000
SEND_WITHIN_MS = Millis(200)
TRANSIT_MS = Millis(250)
"""From a worker's send to the provider's own stamp. The way is loopback, but everything shares two
cores: a stall of more than 156 ms between the two was seen, and with 100 ms it cost two calls over
the limit in the provider's record."""
HOLD_INITIAL_MS = Millis(300)
"""Before the first settlement teaches better: some seconds of service, sped up."""
WORKERS, PLACES = 2, 20


def proposals() -> Iterator[ConfigProposed]:
    """Everything that an operator would apply, in any order."""
    by = ("the demo", "the play that was tried in simulation")
    cell = CellConfig(waiting_count_max=WAITING_MAX, tenant_defaults=TenantConfig())
    yield _proposed("cell", CELL, by, cell=cell)
    domain = DomainConfig(
        policy="virtual_counter",
        dimensions=tuple(_dimensions()),
        waiting_count_max=WAITING_MAX,
        send_within_ms=SEND_WITHIN_MS,
        transit_ms=TRANSIT_MS,
        hold_initial_ms=HOLD_INITIAL_MS,
        report_send=True,
    )
    yield _proposed("domain", DOMAIN, by, domain=domain)
    yield _proposed("pool", POOL, by, pool=PoolConfig())
    for name in TENANTS:
        tenant = TenantConfig(weight=WEIGHTS[name], waiting_count_max=WAITING_TENANT_MAX)
        yield _proposed("tenant", TenantId(name), by, tenant=tenant)


def _dimensions() -> Iterator[DimensionConfig]:
    window_ms = Millis(LIMITS.window_ms)
    for name, limit in (("requests", LIMITS.requests), ("tokens", LIMITS.tokens)):
        yield DimensionConfig(
            name=DimensionName(name), unit=name, kind="sliding", limit=limit, window_ms=window_ms
        )
    slots = DimensionName("slots")
    yield DimensionConfig(name=slots, unit="slots", kind="concurrency", limit=LIMITS.slots)


def _proposed(
    scope: str,
    name: str,
    by: tuple[str, str],
    *,
    cell: CellConfig | None = None,
    domain: DomainConfig | None = None,
    tenant: TenantConfig | None = None,
    pool: PoolConfig | None = None,
) -> ConfigProposed:
    author, reason = by
    return ConfigProposed(
        scope=scope,
        name=name,
        author=author,
        reason=reason,
        cell=cell,
        domain=domain,
        tenant=tenant,
        pool=pool,
    )
