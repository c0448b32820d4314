"""What the workers of a world share, and what a process knows about its own starts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from schemas import events as e
from schemas.ids import MemberEpoch, MemberId, PoolId
from tests.simulation.clock import MILLI, SimulatedClock
from tests.simulation.inputs import InputTopics
from tests.simulation.outbox import PublicTopics
from tests.simulation.provider import Attempt, Provider

PLACES = 2
TTL_MS = 150
LEASE_MS = 500
SEND_WITHIN_MS = 30
TRANSIT_MS = 8
POOL = PoolId("workers")
OFFERS = 0.9
"""How often a heartbeat offers the free places."""
RHO_PPM = 200
LATE_MS = (50, 400, 1_200)
"""How much later a report may come than it should."""

HOUR_US = 3_600_000 * MILLI

Life = tuple[MemberId, MemberEpoch]


@dataclass
class Start:
    """What a process knows about a start it asked for."""

    grant: e.GrantIssued
    sent_ms: int
    is_held: bool = True
    """It is named in heartbeats until the lease is refused or the result is out."""
    called: bool = False
    turns: int = 0
    checkpoint: int = 0


@dataclass
class Crew:
    """What all workers share, and what the auditor may know of them."""

    random: Random
    clock: SimulatedClock
    inputs: InputTopics
    public: PublicTopics
    provider: Provider
    submit_turn: Callable[[e.GrantIssued, int], None]
    excused: set[Life] = field(default_factory=set)
    """Lives that died, stopped, or whose heartbeats were lost: theirs may end by lease."""
    called: dict[Attempt, int] = field(default_factory=dict)
    """Attempts that ran at their holder, each with when it began, in true time."""
    over: dict[Attempt, int] = field(default_factory=dict)
    """When their holder was done with them."""

    def was_running(self, attempt: Attempt, now_us: int) -> bool:
        """Whether its holder was at work on it then, and long before and after."""
        begun_us, over_us = self.called.get(attempt), self.over.get(attempt, now_us + HOUR_US)
        margin_us = 30 * MILLI
        return begun_us is not None and begun_us + margin_us < now_us < over_us - margin_us
