"""What happened in a play, folded from the journal alone: waits, shares, backlog and takeovers.

Nothing that the demo saw while it ran is used, so the summary of a demo can be made again from its
topics by anybody.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from schemas import events as e
from schemas.ids import OperationId

AGAIN = frozenset(("throttled", "retryable"))
"""Outcomes after whose settlement the operation waits again."""
SAMPLE_EVERY_MS = 250
"""Points of the picture: finer would not be seen."""


class Recorded(NamedTuple):
    """One accepted entry, its events decoded."""

    time_ms: int
    """Follows the broker's append clock."""
    epoch: int
    events: tuple[Any, ...]


class Settled(NamedTuple):
    """One settlement, as the picture of shares needs it."""

    at_ms: int
    tenant: str
    cost_ns: int


class Sample(NamedTuple):
    """What waited at an instant, by tenant."""

    at_ms: int
    waiting: Mapping[str, int]
    oldest_ms: Mapping[str, int]
    """How long the longest waiting operation had waited."""


class Span(NamedTuple):
    """From an instant to a later one, in entry time."""

    first_ms: int
    last_ms: int


@dataclass(slots=True)
class Tenant:
    """Everything counted for one tenant."""

    weight: int
    waiting: dict[OperationId, int] = field(default_factory=dict)
    """Instant of admission of each operation that waits."""
    waits_ms: list[int] = field(default_factory=list)
    """From each admission to the first grant."""
    backlogged_cost_ns: int = 0
    """Settled while all tenants were backlogged."""


class Story:
    """The fold of a journal, entry by entry."""

    def __init__(self, weights: Mapping[str, int]) -> None:
        self.tenants = {name: Tenant(weight) for name, weight in weights.items()}
        self.counts: Counter[str] = Counter()
        self.backlogged: list[Span] = []
        """Spans in which every tenant had something waiting."""
        self.settlements: list[Settled] = []
        self.samples: list[Sample] = []
        self.takeovers: list[Span] = []
        """From the last entry of one owner to the first entry with a grant of the next."""
        self.began_ms: int | None = None
        """Entry time of the first admission."""
        self.started_ms: dict[OperationId, int] = {}
        """Entry time at which each operation's first start was accepted."""
        self.starts: Counter[OperationId] = Counter()
        self.open: dict[OperationId, int] = {}
        """Instant of admission of each operation that has not ended."""
        self.settled_twice = 0
        self._granted: set[OperationId] = set()
        self._settled: set[tuple[OperationId, int]] = set()
        self._again: set[OperationId] = set()
        self._last: Recorded | None = None
        self._bereft_ms: int | None = None

    @property
    def ended_ms(self) -> int:
        """Entry time of the last settlement, or of the first admission if there is none."""
        return self.settlements[-1].at_ms if self.settlements else self.began_ms or 0

    @property
    def backlogged_ms(self) -> int:
        """How long every tenant had something waiting."""
        return sum(span.last_ms - span.first_ms for span in self.backlogged)

    def fold(self, entries: Iterable[Recorded]) -> "Story":
        """Add entries in journal order."""
        for entry in entries:
            self._add(entry)
        return self

    def _add(self, entry: Recorded) -> None:
        backlogged = self._all_wait() and self._last is not None
        if backlogged and self._last is not None:
            self._stretch(Span(self._last.time_ms, entry.time_ms))
        if self._last is not None and entry.epoch > self._last.epoch and self.began_ms is not None:
            self._bereft_ms = self._last.time_ms
        for event in entry.events:
            self._tell(event, entry.time_ms, backlogged=backlogged)
            if isinstance(event, e.GrantIssued) and self._bereft_ms is not None:
                self.takeovers.append(Span(self._bereft_ms, entry.time_ms))
                self._bereft_ms = None
        self._last = entry
        if not self.samples or entry.time_ms >= self.samples[-1].at_ms + SAMPLE_EVERY_MS:
            self.samples.append(self.sample(entry.time_ms))

    def sample(self, at_ms: int) -> Sample:
        """What waits, as of the last entry."""
        waiting = {name: len(tenant.waiting) for name, tenant in self.tenants.items()}
        oldest = {
            name: at_ms - min(tenant.waiting.values(), default=at_ms)
            for name, tenant in self.tenants.items()
        }
        return Sample(at_ms, waiting, oldest)

    def _tell(  # noqa: C901 - one arm an event
        self, event: Any, at_ms: int, *, backlogged: bool
    ) -> None:
        name = getattr(event, "tenant", None)
        tenant = self.tenants.get(name) if isinstance(name, str) else None
        if tenant is None:
            return
        self.counts[type(event).__name__] += 1
        match event:
            case e.OperationAdmitted():
                self.began_ms = at_ms if self.began_ms is None else self.began_ms
                self.open[event.operation] = tenant.waiting[event.operation] = at_ms
            case e.GrantIssued():
                tenant.waiting.pop(event.operation, None)
                if event.operation not in self._granted:
                    self._granted.add(event.operation)
                    tenant.waits_ms.append(at_ms - self.open[event.operation])
            case e.GrantExpired() | e.GrantRevoked():
                tenant.waiting[event.operation] = self.open[event.operation]
            case e.ReservationReleased(reason="not_sent"):
                tenant.waiting[event.operation] = self.open[event.operation]
            case e.ResultRecorded(outcome=outcome) if outcome in AGAIN:
                self._again.add(event.operation)
            case e.StartAccepted():
                self.started_ms.setdefault(event.operation, at_ms)
                self.starts[event.operation] += 1
            case e.ReservationSettled():
                self._settle(event, tenant, at_ms, backlogged=backlogged)
            case e.OperationExpired() | e.OperationCancelled() | e.OperationDeadLettered():
                tenant.waiting.pop(event.operation, None)
                self.open.pop(event.operation, None)
            case _:
                pass

    def _settle(
        self, event: e.ReservationSettled, tenant: Tenant, at_ms: int, *, backlogged: bool
    ) -> None:
        attempt = event.operation, event.epoch
        self.settled_twice += attempt in self._settled
        self._settled.add(attempt)
        if event.operation in self._again:
            self._again.discard(event.operation)
            tenant.waiting[event.operation] = self.open[event.operation]
        else:
            self.open.pop(event.operation, None)
        self.settlements.append(Settled(at_ms, event.tenant, event.cost_ns))
        if backlogged:
            tenant.backlogged_cost_ns += event.cost_ns

    def _all_wait(self) -> bool:
        return all(tenant.waiting for tenant in self.tenants.values())

    def _stretch(self, span: Span) -> None:
        if self.backlogged and self.backlogged[-1].last_ms == span.first_ms:
            self.backlogged[-1] = Span(self.backlogged[-1].first_ms, span.last_ms)
        else:
            self.backlogged.append(span)


def shares_over_time(story: Story, window_ms: int) -> list[tuple[int, dict[str, float]]]:
    """Each tenant's share of the cost settled in the window before each sample.

    Returns: instants in order; those in whose window nothing was settled are left out.
    """
    points: list[tuple[int, dict[str, float]]] = []
    cost: Counter[str] = Counter()
    first = last = 0
    settled = story.settlements
    assert all(a.at_ms <= b.at_ms for a, b in pairwise(settled)), "Expected entry time not to fall"
    for sample in story.samples:
        while last < len(settled) and settled[last].at_ms <= sample.at_ms:
            cost[settled[last].tenant] += settled[last].cost_ns
            last += 1
        while first < last and settled[first].at_ms <= sample.at_ms - window_ms:
            cost[settled[first].tenant] -= settled[first].cost_ns
            first += 1
        total = sum(cost.values())
        if total:
            points.append((sample.at_ms, {name: cost[name] / total for name in story.tenants}))
    return points
