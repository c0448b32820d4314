"""Questions about what is shared: tenants and their ledgers, queues, budgets, domains, members."""

from dataclasses import dataclass
from typing import NamedTuple

from schemas.inputs import DimensionConfig, TenantConfig
from schemas.phase import Phase

from .keys import join, names
from .reading import Reading
from .views.amounts import UNITS
from .views.bound import BOUND, LIMIT_ZERO, Minute, Pause, timeline, zero_limits
from .views.budget import DOMAIN_BUDGETS, TENANT_BUDGETS, Use, counted
from .views.config import CONFIG, Config, Piece
from .views.domain import DOMAINS, Domain, Saver
from .views.ledger import LEDGERS, Ledger
from .views.members import ACTIVE, MEMBERS, SUSPECT, Member
from .views.operation import OPERATIONS, Operation
from .views.queue import QUEUES, WAITING, Queue, Waiting
from .views.repeat import REPEATS
from .views.tenant import TENANTS, Tenant


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueAnswer:
    """One queue with its head."""

    lane: str
    pool: str
    domain: str
    row: Queue
    head: Waiting | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DimensionAnswer:
    """One dimension of one level; amounts are in its unit."""

    config: DimensionConfig
    held: int
    in_use: int
    unknown: int
    counted: int


class SaverAnswer(NamedTuple):
    """Who saves, and the operation itself."""

    saver: Saver
    operation: Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelAnswer:
    """One level of one domain; the tenant is None at the domain's own."""

    domain: str
    tenant: str | None
    policy: str | None
    version: int | None
    bulk_reserve_percent: int | None
    fares: Domain | None
    """How its provider fares; at the domain's own level, as the saver."""
    saver: SaverAnswer | None
    currency: str | None
    """Of the domain's prices, if it has any."""
    dimensions: list[DimensionAnswer]


class Slots(NamedTuple):
    """Slots of one domain, whether it limits them or not."""

    held: int
    in_use: int
    unknown: int


class CapacityQueries(Reading):
    """Answers about what is shared."""

    def config(self) -> Config:
        """What is configured."""
        config = Config()
        for _, piece in self.rows(CONFIG):
            config.put(piece)
        return config

    def tenant(self, name: str) -> tuple[Tenant, TenantConfig] | None:
        """One tenant with what holds for it; None if it is neither configured nor ever seen."""
        config = self.config()
        row: Tenant | None = self.row(TENANTS, join(name))
        if row is None and name not in config.tenants:
            return None
        return row or Tenant(), config.tenant(name)

    def tenants(self) -> dict[str, tuple[Tenant, TenantConfig]]:
        """All tenants that are configured or were ever seen, by name."""
        config = self.config()
        found = {names(key)[0]: row for key, row in self.rows(TENANTS)}
        return {
            name: (found.get(name) or Tenant(), config.tenant(name))
            for name in sorted(found.keys() | config.tenants.keys())
        }

    def ledgers(self, tenant: str) -> dict[str, Ledger]:
        """The tenant's two ledgers in each domain in which it ever had a grant, by name."""
        return {names(key)[1]: row for key, row in self.rows(LEDGERS, join(tenant))}

    def suspected_new_keys(self, tenant: str) -> int:
        """Submissions that look like an earlier one of the tenant under a new key."""
        row = self.row(REPEATS, join(tenant))
        return 0 if row is None else row.suspected

    def queues(self, tenant: str) -> list[QueueAnswer]:
        """The tenant's queues in which something waits."""
        answers = []
        for key, row in self.rows(QUEUES, join(tenant)):
            _, lane, pool, domain = names(key)
            head = next((waiting for _, waiting in self.rows(WAITING, key)), None)
            answers.append(QueueAnswer(lane=lane, pool=pool, domain=domain, row=row, head=head))
        return answers

    def domains(self) -> dict[str, Domain]:
        """How every configured domain's provider fares, by name."""
        return {names(key)[0]: row for key, row in self.rows(DOMAINS)}

    def budgets(self, domain: str | None = None) -> list[LevelAnswer]:
        """Levels of one configured domain or of all: each domain's own, then its tenants'."""
        config = self.config()
        answers = []
        for name in sorted(config.domains) if domain is None else [domain]:
            if name not in config.domains:
                return []
            answers.append(self._level(config, name, None))
            tenants = {names(key)[1] for key, _ in self.rows(TENANT_BUDGETS, join(name))}
            answers += [
                self._level(config, name, tenant)
                for tenant in sorted(tenants | config.tenants.keys())
                if config.tenant_level(tenant, name).dimensions
            ]
        return answers

    def bound(self, domain: str, *, minutes: int) -> list[Minute] | None:
        """What bound in the latest minutes, oldest first; None if the domain is not configured."""
        piece: Piece | None = self.row(CONFIG, join("domain", domain))
        if piece is None or piece.domain is None:
            return None
        standing = [Pause(one.name, LIMIT_ZERO, 0, None) for one in zero_limits(piece.domain)]
        fares: Domain | None = self.row(DOMAINS, join(domain))
        if fares is not None and fares.pause_cause and fares.is_paused(self.time_ms):
            standing.append(Pause(None, fares.pause_cause, 0, fares.paused_until_ms))
        rows = (row for _, row in self.rows(BOUND, join(domain)))
        return timeline(rows, standing, now_ms=self.time_ms, count=minutes)

    def slots(self) -> dict[str, Slots]:
        """Slots given out in every configured domain, by name."""
        unit = UNITS.index("slots")
        found = {}
        for name in self.config().domains:
            use: Use = self.row(DOMAIN_BUDGETS, join(name)) or Use()
            found[name] = Slots(use.held[unit], use.in_use[unit], use.unknown[unit])
        return found

    def _level(self, config: Config, domain: str, tenant: str | None) -> LevelAnswer:
        piece = config.domains[domain]
        assert piece.domain is not None, "Expected a domain's piece to have its body"
        if tenant is None:
            dimensions = piece.domain.dimensions
            row = self.row(DOMAIN_BUDGETS, join(domain))
            fares = self.row(DOMAINS, join(domain))
        else:
            dimensions = config.tenant_level(tenant, domain).dimensions
            row = self.row(TENANT_BUDGETS, join(domain, tenant))
            fares = None
        return LevelAnswer(
            domain=domain,
            tenant=tenant,
            policy=piece.domain.policy if tenant is None else None,
            version=piece.version if tenant is None else None,
            bulk_reserve_percent=piece.domain.bulk_reserve_percent if tenant is None else None,
            fares=fares,
            saver=None if fares is None else self._saver(fares, config),
            currency=config.currency(domain),
            dimensions=[self._use(dimension, row or Use()) for dimension in dimensions],
        )

    def _saver(self, fares: Domain, config: Config) -> SaverAnswer | None:
        """Who still saves: it waits as it did when it began, and somebody is there to run it."""
        saver = fares.saver
        if saver is None or saver.tenant_version != config.tenant_version(saver.tenant):
            return None
        row: Operation | None = self.row(OPERATIONS, saver.operation)
        if row is None or row.phase is not Phase.WAITING:
            return None
        same = (row.incarnation, row.epoch) == (saver.incarnation, saver.epoch)
        return SaverAnswer(saver, row) if same and self._is_served(row) else None

    def _is_served(self, waiting: Operation) -> bool:
        piece = self.row(CONFIG, join("pool", waiting.pool))
        if piece is not None and piece.pool.unclaimed_max is not None:
            return True  # an open pool needs no member
        return any(
            member.pool == waiting.pool and member.state in (ACTIVE, SUSPECT)
            for name, member in self.members().items()
            if waiting.member in (None, name)
        )

    def _use(self, dimension: DimensionConfig, use: Use) -> DimensionAnswer:
        unit = UNITS.index(dimension.unit)
        return DimensionAnswer(
            config=dimension,
            held=use.held[unit],
            in_use=use.in_use[unit],
            unknown=use.unknown[unit],
            counted=counted(use, dimension, self.time_ms),
        )

    def members(self) -> dict[str, Member]:
        """Members of all pools, by name."""
        return dict(sorted((names(key)[0], row) for key, row in self.rows(MEMBERS)))
