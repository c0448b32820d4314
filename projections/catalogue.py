"""All views, in the order in which an event is shown to them."""

from typing import Any

from .projection import Projection
from .views.bound import BOUND
from .views.budget import DOMAIN_BUDGETS, TENANT_BUDGETS
from .views.config import CONFIG
from .views.domain import DOMAINS
from .views.history import HISTORIES
from .views.holding import HOLDINGS, UNCLAIMED
from .views.ledger import LEDGERS
from .views.listing import CHILDREN, DEAD_LETTERS, LISTED
from .views.members import MEMBERS
from .views.operation import OPERATIONS
from .views.quarantine import QUARANTINES
from .views.queue import QUEUES, WAITING
from .views.repeat import REPEATS
from .views.tenant import TENANTS
from .views.unknown import UNKNOWNS

PROJECTIONS: tuple[Projection[Any], ...] = (
    CONFIG,
    LISTED,
    WAITING,
    QUEUES,
    TENANTS,
    DOMAIN_BUDGETS,
    TENANT_BUDGETS,
    LEDGERS,
    DOMAINS,
    BOUND,
    MEMBERS,
    HOLDINGS,
    UNCLAIMED,
    DEAD_LETTERS,
    CHILDREN,
    HISTORIES,
    QUARANTINES,
    REPEATS,
    UNKNOWNS,  # the last two, since the others are shown both as they were before
    OPERATIONS,
)

VERSIONS = {projection.name: projection.version for projection in PROJECTIONS}
