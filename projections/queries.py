"""What may be asked of the views; all answers of one `Queries` reflect one position."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from schemas.ids import CellId
from schemas.inputs import DimensionConfig, TenantConfig
from schemas.journal import Position
from schemas.phase import Phase

from .keys import after, join, names
from .ports import Snapshot
from .projection import Projection
from .reflected import TakenInput
from .rows import DECODE, NUMBERS, read
from .views.budget import DOMAIN_BUDGETS, TENANT_BUDGETS, UNITS, Use, counted
from .views.config import CONFIG, Config
from .views.members import MEMBERS, Member
from .views.operation import LISTED, OPERATIONS, Operation, listed_at
from .views.queue import QUEUES, WAITING, Queue, Waiting, queue_of
from .views.tenant import TENANTS, Tenant

PLACE_SCAN_MAX = 1_000
"""Waiting rows that are counted for a place, from either end: half a millisecond."""
PAGE_SCAN_MAX = 1_000
"""Operations that are looked at for one page: some five milliseconds."""


@dataclass(frozen=True, slots=True)
class Page:
    """Operations, newest first; `next` is where the following page begins, None at the end."""

    items: list[tuple[bytes, Operation]]
    next: bytes | None


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
    counted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelAnswer:
    """One level of one domain; the tenant is None at the domain's own."""

    domain: str
    tenant: str | None
    policy: str | None
    version: int | None
    dimensions: list[DimensionAnswer]


class Queries:
    """Answers from one snapshot; made for one request and dropped after it."""

    def __init__(self, cell: CellId, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        mark = snapshot.mark()
        self.time_ms = 0 if mark is None else mark.time_ms
        """Time of the last entry that is reflected."""
        self._taken = {} if mark is None else {(t, p): n for t, p, n in mark.taken}
        self.position = (
            Position(cell, 0, -1, 0)
            if mark is None
            else Position(cell, mark.head.generation, mark.head.offset, mark.head_index)
        )

    def taken(self, wanted: TakenInput) -> bool:
        """Whether an entry that is reflected has taken this input."""
        return self._taken.get((wanted.topic, wanted.partition), 0) > wanted.offset

    def operation(self, operation: bytes) -> Operation | None:
        """What is known of an operation id."""
        row: Operation | None = read(self._snapshot, OPERATIONS, operation)
        return row

    def place(self, row: Operation) -> int | None:
        """Place in its queue, 1 for the next; None if it does not wait, or deep in a long queue."""
        if row.phase is not Phase.WAITING:
            return None
        queue = queue_of(row)
        counts: Queue | None = read(self._snapshot, QUEUES, queue)
        assert counts is not None, "Expected a queue where an operation waits"
        number = NUMBERS[WAITING.number]
        own = number + queue + join(row.sequence)
        behind = self._count(own, after(number + queue)) - 1
        if behind < PLACE_SCAN_MAX:
            return counts.waiting - behind
        ahead = self._count(number + queue, own)
        return ahead + 1 if ahead < PLACE_SCAN_MAX else None

    def _count(self, first: bytes, end: bytes) -> int:
        """Rows from `first` to `end`, counted no further than is of use."""
        return sum(1 for _ in islice(self._snapshot.scan(first, end), PLACE_SCAN_MAX + 1))

    def page(
        self,
        *,
        tenant: str | None,
        begin: bytes | None,
        limit: int,
        keep: Callable[[Operation], bool],
    ) -> Page:
        """At most `limit` operations that `keep` wants, of one tenant or of all.

        A page ends early, and may be empty, after `PAGE_SCAN_MAX` operations; `begin` from
        elsewhere never leads outside the tenant.
        """
        prefix = NUMBERS[LISTED.number] + (b"" if tenant is None else join(tenant))
        first = prefix if begin is None else max(prefix, NUMBERS[LISTED.number] + begin)
        items: list[tuple[bytes, Operation]] = []
        for seen, (key, listed) in enumerate(self._snapshot.scan(first, after(prefix))):
            if len(items) == limit or seen == PAGE_SCAN_MAX:
                return Page(items, key[1:])
            operation = DECODE[LISTED.number](listed)
            row = self.operation(operation)
            # A key that was used again after its horizon is listed at its last admission only.
            if row is not None and key.endswith(listed_at(row)) and keep(row):
                items.append((operation, row))
        return Page(items, None)

    def _all(self, projection: Projection[Any], prefix: bytes = b"") -> Iterator[tuple[bytes, Any]]:
        first = NUMBERS[projection.number] + prefix
        for key, row in self._snapshot.scan(first, after(first)):
            yield key[1:], DECODE[projection.number](row)

    def config(self) -> Config:
        """What is configured."""
        config = Config()
        for _, piece in self._all(CONFIG):
            config.put(piece)
        return config

    def tenant(self, name: str) -> tuple[Tenant, TenantConfig] | None:
        """One tenant with what holds for it; None if it is neither configured nor ever seen."""
        config = self.config()
        row: Tenant | None = read(self._snapshot, TENANTS, join(name))
        if row is None and name not in config.tenants:
            return None
        return row or Tenant(), config.tenant(name)

    def tenants(self) -> dict[str, tuple[Tenant, TenantConfig]]:
        """All tenants that are configured or were ever seen, by name."""
        config = self.config()
        found = {names(key)[0]: row for key, row in self._all(TENANTS)}
        return {
            name: (found.get(name) or Tenant(), config.tenant(name))
            for name in sorted(found.keys() | config.tenants.keys())
        }

    def queues(self, tenant: str) -> list[QueueAnswer]:
        """The tenant's queues in which something waits."""
        answers = []
        for key, row in self._all(QUEUES, join(tenant)):
            _, lane, pool, domain = names(key)
            head = next((waiting for _, waiting in self._all(WAITING, key)), None)
            answers.append(QueueAnswer(lane=lane, pool=pool, domain=domain, row=row, head=head))
        return answers

    def budgets(self, domain: str | None = None) -> list[LevelAnswer]:
        """Levels of one configured domain or of all: each domain's own, then its tenants'."""
        config = self.config()
        answers = []
        for name in sorted(config.domains) if domain is None else [domain]:
            if name not in config.domains:
                return []
            answers.append(self._level(config, name, None))
            tenants = {names(key)[1] for key, _ in self._all(TENANT_BUDGETS, join(name))}
            answers += [
                self._level(config, name, tenant)
                for tenant in sorted(tenants | config.tenants.keys())
                if config.tenant_level(tenant, name).dimensions
            ]
        return answers

    def _level(self, config: Config, domain: str, tenant: str | None) -> LevelAnswer:
        piece = config.domains[domain]
        assert piece.domain is not None, "Expected a domain's piece to have its body"
        if tenant is None:
            dimensions = piece.domain.dimensions
            row = read(self._snapshot, DOMAIN_BUDGETS, join(domain))
        else:
            dimensions = config.tenant_level(tenant, domain).dimensions
            row = read(self._snapshot, TENANT_BUDGETS, join(domain, tenant))
        use: Use = row or Use()
        return LevelAnswer(
            domain=domain,
            tenant=tenant,
            policy=piece.domain.policy if tenant is None else None,
            version=piece.version if tenant is None else None,
            dimensions=[
                DimensionAnswer(
                    config=dimension,
                    held=use.held[UNITS.index(dimension.unit)],
                    in_use=use.in_use[UNITS.index(dimension.unit)],
                    counted=counted(use, dimension, self.time_ms),
                )
                for dimension in dimensions
            ],
        )

    def members(self) -> dict[str, Member]:
        """Members of all pools, by name."""
        return dict(sorted((names(key)[0], row) for key, row in self._all(MEMBERS)))
