"""What is configured, and the budgets that follow from it: domains with their windows and lanes."""

from collections.abc import Iterable, Iterator

from schemas.ids import DomainId, PoolId, TenantId
from schemas.inputs import CellConfig, DimensionConfig, DomainConfig, PoolConfig, TenantConfig
from schemas.units import Millis

from .costs import Cost, Reserving, cost_of
from .due import Due
from .exits import Aging, takeover_term_ms
from .fairness import Lane
from .rows import ConfigRow, DomainRow
from .tables import Overlay, Table, pack
from .windows import Window

DEFAULT_BOUNDS = CellConfig(tenant_defaults=TenantConfig())


class Domain:
    """A budget domain: configuration, windows by level, and the lanes that share them."""

    def __init__(self, name: DomainId, config: DomainConfig, version: int, row: DomainRow) -> None:
        self.name = name
        self.row_key = pack(name)
        self.review_due = True
        """Parked work may have to be looked at again; only saves a scan, decides nothing."""
        self.config = config
        self.version = version
        self.row = row
        self.due: Due[Window] = Due()
        """Windows of every level, by when they change."""
        self.windows: list[Window] = []
        self.tenant_windows: dict[TenantId, list[Window]] = {}
        self.lanes: dict[str, Lane] = {}

    def levels(self, tenant: TenantId) -> list[Window]:
        """Every window a call of the tenant is charged in, domain level first."""
        own = self.tenant_windows.get(tenant)
        return self.windows + own if own else self.windows

    def dimensions(self) -> list[DimensionConfig]:
        """The dimensions of the domain level, which cost is measured in."""
        return [window.config for window in self.windows]

    def cost_of(self, one: Reserving) -> Cost:
        """What an operation takes while it runs, at the prices of the domain."""
        return cost_of(one, prices=self.config.prices)

    def freed(self, tenant: TenantId) -> None:
        """The tenant's own caps have more room, so that its heads have to be looked at again."""
        if tenant in self.tenant_windows:
            for lane in self.lanes.values():
                counter = lane.counters.get(tenant)
                if counter is not None:
                    lane.changed(counter)

    def all_windows(self) -> Iterator[Window]:
        """The windows of every level."""
        yield from self.windows
        for windows in self.tenant_windows.values():
            yield from windows


def tenant_scope(tenant: TenantId) -> str:
    """The scope of a tenant's own windows."""
    return f"tenant:{tenant}"


class Configured:
    """The active configuration; it changes only through `configure`, by an event (R156)."""

    def __init__(self, rows: Overlay) -> None:
        self._rows = rows
        self._now_ms = Millis(0)
        self.bounds = DEFAULT_BOUNDS
        self.aging = Aging(0, takeover_term_ms(DEFAULT_BOUNDS.clock_bound_ms))
        self.domains: dict[DomainId, Domain] = {}
        self.tenants: dict[TenantId, TenantConfig] = {}
        self.pools: dict[PoolId, PoolConfig] = {}
        self.windows: dict[tuple[str, str, str], Window] = {}
        """By scope, domain and dimension."""

    def version(self, scope: str, name: str) -> int:
        """The active version; 0 if there is none."""
        row: ConfigRow | None = self._rows.get(Table.CONFIG, pack(scope, name))
        return row.version if row else 0

    def tenant(self, tenant: TenantId) -> TenantConfig:
        """The tenant's configuration, or the cell's defaults."""
        return self.tenants.get(tenant, self.bounds.tenant_defaults)

    def is_open(self, pool: PoolId) -> bool:
        """Whether grants of the pool name no member: the first claim gets them."""
        config = self.pools.get(pool)
        return config is not None and config.unclaimed_max is not None

    def lease_ms(self, pool: PoolId | None) -> Millis:
        """How long a lease lasts in a pool; in pool self, or one that is gone, as the cell says."""
        config = self.pools.get(pool) if pool else None
        return self.bounds.self_lease_ms if config is None else config.lease_ms

    def runtime_ms(self, tenant: TenantId, asked: Millis | None) -> Millis:
        """How long an attempt may run: as asked for, at most what its tenant may."""
        most = self.tenant(tenant).runtime_ms_max
        return most if asked is None else min(asked, most)

    def runs(self, place: str, domain: DomainId) -> bool:
        """Whether a pool may run the domain's work; a member of pool self runs all of its own."""
        pool = self.pools.get(PoolId(place))
        return pool is None or not pool.domains or domain in pool.domains

    def configure(self, scope: str, name: str, row: ConfigRow, *, now_ms: Millis) -> None:
        """A piece of configuration is active from here on; now is window time."""
        self._now_ms = now_ms
        self._rows.put(Table.CONFIG, pack(scope, name), row)
        self.apply(name, row)

    def apply(self, name: str, row: ConfigRow) -> None:
        """Let memory follow a configuration that the rows hold."""
        if row.cell is not None:
            self.bounds = row.cell
            self.aging.term_ms = takeover_term_ms(row.cell.clock_bound_ms)
        elif row.pool is not None:
            self.pools[PoolId(name)] = row.pool
        elif row.tenant is not None:
            self.tenants[TenantId(name)] = row.tenant
            for domain in self.domains.values():
                self._tenant_level(domain, TenantId(name), row.tenant)
        else:
            assert row.domain is not None, "Expected one piece of configuration in a row"
            self._domain(DomainId(name), row.domain, row.version)

    def _domain(self, name: DomainId, config: DomainConfig, version: int) -> None:
        domain = self.domains.get(name)
        if domain is None:
            stored = self._rows.get(Table.DOMAIN, pack(name)) or DomainRow()
            domain = self.domains[name] = Domain(name, config, version, stored)
            for tenant, own in self.tenants.items():
                self._tenant_level(domain, tenant, own)
        domain.config, domain.version = config, version
        domain.windows = self._replace("domain", name, config.dimensions)
        for lane in domain.lanes.values():
            lane.configure(config)

    def _tenant_level(self, domain: Domain, tenant: TenantId, config: TenantConfig) -> None:
        own = [
            d
            for budget in config.budgets
            if budget.domain == domain.name
            for d in budget.dimensions
        ]
        domain.tenant_windows[tenant] = self._replace(tenant_scope(tenant), domain.name, own)
        domain.freed(tenant)
        if not own:
            del domain.tenant_windows[tenant]

    def _replace(
        self, scope: str, domain: DomainId, dimensions: Iterable[DimensionConfig]
    ) -> list[Window]:
        """The windows of one level; those no longer named are empty, and are forgotten."""
        wanted = {config.name: config for config in dimensions}
        for key in [k for k in self.windows if k[:2] == (scope, domain) and k[2] not in wanted]:
            del self.windows[key]
            self._rows.delete(Table.WINDOW, pack(*key))
        for name, config in wanted.items():
            key = (scope, domain, name)
            if key in self.windows:
                self.windows[key].configure(config, self._now_ms)
            else:
                due = self.domains[domain].due
                self.windows[key] = Window(self._rows, scope, domain, config, due, self.aging)
        return [self.windows[scope, domain, name] for name in wanted]
