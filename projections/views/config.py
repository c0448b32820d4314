"""What is configured: a row for each piece, and all of it in memory for the fold."""

import msgspec

from projections.keys import join
from projections.projection import Projection, Seen
from schemas import events as e
from schemas.inputs import (
    CellConfig,
    DimensionConfig,
    DomainConfig,
    PoolConfig,
    TenantConfig,
)


class Piece(msgspec.Struct, array_like=True):
    """One active piece; the body that its scope names is set."""

    scope: str = ""
    name: str = ""
    version: int = 0
    cell: CellConfig | None = None
    domain: DomainConfig | None = None
    tenant: TenantConfig | None = None
    pool: PoolConfig | None = None


class Level:
    """What is configured at one level of one domain, sorted once for the fold."""

    def __init__(self, dimensions: tuple[DimensionConfig, ...] = ()) -> None:
        self.dimensions = dimensions
        self.windows = tuple(d for d in dimensions if d.kind != "concurrency")
        self.arrivals = tuple(d for d in self.windows if d.instant == "arrival")
        """Windows that count a call from its arrival on."""


_NO_LEVEL = Level()


class Config:
    """All active pieces; memory follows tenants and budgets."""

    def __init__(self) -> None:
        self.defaults = TenantConfig()
        self.domains: dict[str, Piece] = {}
        self.tenants: dict[str, TenantConfig] = {}
        self.versions: dict[tuple[str, str], int] = {}
        """By scope and name."""
        self._domain_levels: dict[str, Level] = {}
        self._tenant_levels: dict[str, dict[str, Level]] = {}
        self._default_levels: dict[str, Level] = {}

    def put(self, piece: Piece) -> None:
        """A piece holds from here on."""
        self.versions[piece.scope, piece.name] = piece.version
        if piece.cell is not None:
            self.defaults = piece.cell.tenant_defaults
            self._default_levels = _by_domain(self.defaults)
        elif piece.domain is not None:
            self.domains[piece.name] = piece
            self._domain_levels[piece.name] = Level(piece.domain.dimensions)
        elif piece.tenant is not None:
            self.tenants[piece.name] = piece.tenant
            self._tenant_levels[piece.name] = _by_domain(piece.tenant)

    def tenant(self, name: str) -> TenantConfig:
        """What holds for a tenant: its own piece, or the cell's defaults."""
        return self.tenants.get(name, self.defaults)

    def tenant_version(self, name: str) -> int:
        """Version of a tenant's own piece; 0 if the cell's defaults hold for it."""
        return self.versions.get(("tenant", name), 0)

    def currency(self, domain: str) -> str | None:
        """That of a domain's prices; None without prices."""
        piece = self.domains.get(domain)
        prices = None if piece is None or piece.domain is None else piece.domain.prices
        return None if prices is None else prices.currency

    def domain_level(self, domain: str) -> Level:
        """A domain's own level; without dimensions if the domain is not configured."""
        return self._domain_levels.get(domain, _NO_LEVEL)

    def tenant_level(self, tenant: str, domain: str) -> Level:
        """A tenant's own level in a domain; mostly without dimensions."""
        return self._tenant_levels.get(tenant, self._default_levels).get(domain, _NO_LEVEL)


def _by_domain(config: TenantConfig) -> dict[str, Level]:
    return {budget.domain: Level(budget.dimensions) for budget in config.budgets}


def piece_of(event: e.ConfigActivated) -> Piece:
    """The piece that an event activates."""
    return Piece(
        scope=event.scope,
        name=event.name,
        version=event.version,
        cell=event.cell,
        domain=event.domain,
        tenant=event.tenant,
        pool=event.pool,
    )


def _by_name(seen: Seen) -> bytes | None:
    assert isinstance(seen.event, e.ConfigActivated)
    return join(seen.event.scope, seen.event.name)


def _activate(_: Piece, seen: Seen) -> Piece:
    assert isinstance(seen.event, e.ConfigActivated)
    return piece_of(seen.event)


CONFIG = Projection(
    name="config",
    number=8,
    version=1,
    row=Piece,
    wants=(e.ConfigActivated,),
    key=_by_name,
    initial=Piece,
    apply=_activate,
)
