"""All views, in the order in which an event is shown to them."""

from typing import Any

from .projection import Projection
from .views.budget import DOMAIN_BUDGETS, TENANT_BUDGETS
from .views.config import CONFIG
from .views.members import MEMBERS
from .views.operation import LISTED, OPERATIONS
from .views.queue import QUEUES, WAITING
from .views.tenant import TENANTS

PROJECTIONS: tuple[Projection[Any], ...] = (
    CONFIG,
    LISTED,
    WAITING,
    QUEUES,
    TENANTS,
    DOMAIN_BUDGETS,
    TENANT_BUDGETS,
    MEMBERS,
    OPERATIONS,  # last, since the others are shown the operation as it was before
)

VERSIONS = {projection.name: projection.version for projection in PROJECTIONS}
