"""The auditor's own idea of lanes: who may use which, and what is kept for whom."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from schemas import events as e
from schemas.lanes import BULK, LANES
from tests.simulation.provider import REQUESTS_MAX, SLOTS_MAX
from tests.simulation.workload import ENTITLED

RESERVE = 1
"""What bulk leaves of slots and of requests: 15 %, rounded up."""


class Place(NamedTuple):
    """Where an operation waits, and behind how many of all that were admitted."""

    tenant: str
    lane: str
    number: int

    def comes_back_before(self, saver: "Place") -> bool:
        """First in, first out within one tenant and lane, whoever saves."""
        return self[:2] == saver[:2] and self.number < saver.number


@dataclass
class Lanes:
    """Where each operation waits, and which head saves."""

    places: dict[bytes, Place] = field(default_factory=dict)
    saver: bytes | None = None
    count: int = 0

    def admitted(self, event: e.OperationAdmitted) -> Iterator[str]:
        self.count += 1
        self.places[event.operation] = Place(event.tenant, event.lane, self.count)
        if event.lane not in ENTITLED[event.tenant]:
            yield f"{event.tenant} may not use lane {event.lane}"

    def saves(self, event: e.SavingStarted) -> Iterator[str]:
        if self.saver is not None:
            yield f"{event.operation.hex()} saves beside {self.saver.hex()}"
        self.saver = event.operation

    def configured(self, event: e.ConfigActivated) -> None:
        """A change of its domain or tenant ends saving; there is one domain."""
        saver = None if self.saver is None else self.places[self.saver]
        if event.scope == "domain" or (saver and (event.scope, event.name) == ("tenant", saver[0])):
            self.saver = None

    def loses_a_member(self) -> None:
        """Maybe nobody is left to run the saver, and then it saves no longer."""
        self.saver = None

    def leaves_queue(self, operation: bytes) -> None:
        """It saves no longer."""
        if operation == self.saver:
            self.saver = None

    def granted(self, event: e.GrantIssued, slots: int, requests: int) -> Iterator[str]:
        """How many are taken at least, this one among them."""
        self.leaves_queue(event.operation)
        if event.turns_max is not None:  # a run takes no slot
            return
        left = min(SLOTS_MAX - slots, REQUESTS_MAX - requests)
        if event.lane == BULK and not event.by_floor and left < RESERVE:
            yield f"{event.operation.hex()} is of bulk and takes the reserve"
        if self.saver is not None and left < 1 and self._is_held_back(event.operation):
            yield f"{event.operation.hex()} takes what {self.saver.hex()} saves"

    def _is_held_back(self, operation: bytes) -> bool:
        assert self.saver is not None, "Expected a saver"
        place, saver = self.places[operation], self.places[self.saver]
        lower = LANES.index(place.lane) >= LANES.index(saver.lane)
        return lower and not place.comes_back_before(saver)
