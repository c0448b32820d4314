"""What may be asked of the views; all answers of one `Queries` reflect one position."""

from typing import NamedTuple

from schemas.topics import INPUT_TOPICS, Topic

from .attempts import AttemptQueries
from .capacity import CapacityQueries
from .keys import names
from .views.quarantine import QUARANTINES
from .views.tenant import Tenant


class Balance(NamedTuple):
    """What must be zero (requirement R141)."""

    offered: int
    """Submissions taken that nobody answered: less admitted, rejected, repeated, in conflict and
    quarantined ones."""
    admitted: int
    """Operations admitted that are neither live nor over."""


class Queries(AttemptQueries, CapacityQueries):
    """Answers from one snapshot; made for one request and dropped after it."""

    def quarantined(self) -> dict[str, int]:
        """Inputs that could not be read, by topic."""
        return {names(key)[0]: count for key, count in self.rows(QUARANTINES)}

    def balance(self, tenants: list[Tenant]) -> Balance:
        """Residues over all tenants, whose rows are handed in."""
        taken = self.inputs_taken(INPUT_TOPICS.index(Topic.SUBMISSIONS))
        answered = sum(offered(row) for row in tenants)
        lived = sum(row.admitted - sum(row.phases.values()) for row in tenants)
        return Balance(taken - answered - self.quarantined().get(Topic.SUBMISSIONS, 0), lived)


def offered(row: Tenant) -> int:
    """Submissions of a tenant that were answered."""
    return row.admitted + sum(row.refusals.values()) + row.duplicates + row.conflicts
