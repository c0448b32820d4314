"""What each lane of a handmade history was served, so that its grants can name true keys."""

from collections import Counter
from typing import Any

from schemas.ids import OperationId
from tests.support.words import e

WEIGHTS = {"interactive": 70, "decision": 25, "bulk": 5}
"""Those that hold where a domain names none."""


class LaneKeys:
    """Cost by lane, of what was granted and not given back."""

    def __init__(self) -> None:
        self._served: Counter[str] = Counter()
        self._costs: dict[tuple[OperationId, int], tuple[str, int]] = {}

    def see(self, event: Any) -> None:
        """Count what its lane was served, or was not served after all."""
        if isinstance(event, e.GrantIssued):
            self._costs[event.operation, event.epoch] = event.lane, event.cost_ns
            self._served[event.lane] += event.cost_ns
        elif isinstance(event, e.ReservationReleased | e.ReservationExpired):
            lane, cost_ns = self._costs.get((event.operation, event.epoch), ("interactive", 0))
            self._served[lane] -= cost_ns

    def key(self, lane: str) -> int:
        """Where its turn is."""
        return self._served[lane] // WEIGHTS[lane]
