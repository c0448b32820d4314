"""Which configuration is in force at the position under audit, from the config events alone."""

from collections.abc import Sequence

from schemas.events import ConfigActivated
from schemas.ids import DomainId, PoolId, TenantId
from schemas.inputs import CellConfig, DimensionConfig, DomainConfig, PoolConfig, TenantConfig

from .cursor import Cursor

CHECK = "config"


class Config:
    """The newest version of every piece."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._versions: dict[tuple[str, str], int] = {}
        self.cell = CellConfig(tenant_defaults=TenantConfig())
        self.domains: dict[DomainId, DomainConfig] = {}
        self.pools: dict[PoolId, PoolConfig] = {}
        self._tenants: dict[TenantId, TenantConfig] = {}

    def tenant(self, tenant: TenantId) -> TenantConfig:
        """What holds for the tenant: its own configuration, else the cell's defaults."""
        return self._tenants.get(tenant, self.cell.tenant_defaults)

    def version(self, scope: str, name: str) -> int:
        """Version of a piece; 0 if it was never configured."""
        return self._versions.get((scope, name), 0)

    def dimensions(
        self, tenant: TenantId, domain: DomainId
    ) -> Sequence[tuple[str, DimensionConfig]]:
        """Every dimension that limits a call of the tenant in the domain, with its level."""
        found = [("domain", dimension) for dimension in self.domains[domain].dimensions]
        for budget in self.tenant(tenant).budgets:
            if budget.domain == domain:
                found.extend(("tenant", dimension) for dimension in budget.dimensions)
        return found

    def activated(self, event: ConfigActivated) -> None:
        """Versions count up by one; the new piece replaces the old one whole."""
        expected = self.version(event.scope, event.name) + 1
        if event.version != expected:
            detail = f"Expected version {expected} of {event.scope} {event.name}"
            self._cursor.found(CHECK, f"{detail}, but it is {event.version}")
        self._versions[event.scope, event.name] = event.version
        if event.cell is not None:
            self.cell = event.cell
        if event.domain is not None:
            self.domains[DomainId(event.name)] = event.domain
        if event.tenant is not None:
            self._tenants[TenantId(event.name)] = event.tenant
        if event.pool is not None:
            self.pools[PoolId(event.name)] = event.pool
