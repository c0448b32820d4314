"""One cell in simulated time: the shipped core, callers, workers, and a provider with its record.

True time is in microseconds and nobody reads it; entries have the time that a clock makes of it.
Equal seeds give equal plays.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random
from typing import Any, NamedTuple

from schemas import events as e
from schemas import inputs as i
from schemas.ids import OperationId
from tests.benchmarks.record import MILLI, Record, Seen
from tests.support import cells as s
from tests.support import core as c
from tests.support.rows import MemoryRows

SEED = 7
MILLION = 1_000_000
FOREVER_MS = s.FOREVER_MS


class Call(NamedTuple):
    """What somebody asks for, and what it will really take."""

    tenant: str
    tokens: int = 1
    """Reserved."""
    service_ms: int = 0
    used: int | None = None
    """Tokens in the end; None: as reserved."""
    output: int = 0
    """The part of the reserved tokens that is output."""
    used_output: int = 0
    more: dict[str, Any] = {}  # noqa: RUF012 - never changed
    """Further fields of the submission."""


class Way(NamedTuple):
    """How long things may be on their way, in microseconds; drawn between 0 and this."""

    ask_us: int = 0
    """From a grant to the start request."""
    send_us: int = 0
    """From the start request to the call."""
    transit_us: int = 0
    """From the call to its arrival at the provider."""


AT_ONCE = Way()


@dataclass
class Clock:
    """What entries take for the time: it may run fast and be ahead."""

    rate_ppm: int = 0
    ahead_ms: int = 0

    def entry_ms(self, true_us: int) -> int:
        return true_us * (MILLION + self.rate_ppm) // (MILLION * MILLI) + self.ahead_ms

    def true_us(self, entry_ms: int) -> int:
        """The first instant at which an entry has at least this time."""
        return -(-(entry_ms - self.ahead_ms) * MILLION * MILLI // (MILLION + self.rate_ppm))


@dataclass(slots=True)
class Story:
    """What became of one call, in true time."""

    call: Call
    asked_us: int
    grant: e.GrantIssued | None = None
    granted_us: int = 0
    requested_us: int = 0
    seen: Seen | None = None

    @property
    def wait_ms(self) -> float:
        """From submission to grant."""
        return (self.granted_us - self.asked_us) / MILLI


@dataclass
class Play:
    """Runs until nothing is due any more, or as long as it is told."""

    dimensions: Iterable[i.DimensionConfig]
    tenants: Iterable[i.ConfigProposed] = ()
    places: int = 1_000
    way: Way = AT_ONCE
    seed: int = SEED
    repeats: float = 0
    """Part of the workers' words that comes a second time, up to two seconds later."""
    bounds: dict[str, Any] = field(default_factory=dict)
    domain: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chance = Random(self.seed)
        self.clock = Clock()
        self.now_us = 0
        self.core = c.Core(rows=MemoryRows())
        self.begun_ms = self.core.now_ms
        self.record = Record()
        self.stories: dict[OperationId, Story] = {}
        self.heard: Counter[str] = Counter()
        """Events by kind."""
        self.watchers: list[Callable[[list[e.Event]], None]] = []
        """Each sees the events of every entry, after it."""
        self._due: list[tuple[int, int, Any]] = []
        self._sequence = 0
        self._refills: dict[str, Callable[[], Call]] = {}
        domain = {"waiting_count_max": 10**9, "waiting_bytes_max": 10**15, **self.domain}
        of_tenants = i.TenantConfig(waiting_count_max=10**9, waiting_bytes_max=10**15)
        events = self.core.run(
            s.bounds(tenant_defaults=of_tenants, waiting_count_max=10**9, **self.bounds),
            c.domain(*self.dimensions, **domain),
            c.pool(lease_ms=FOREVER_MS),
            *self.tenants,
        )
        refused = c.only(e.ConfigRefused, events)
        assert not refused, f"Expected the configuration to hold, but {refused}"
        self.core.run(c.join(places=self.places), c.heartbeat())

    # -- what happens when --------------------------------------------------------------------

    def later(self, at_us: int, what: i.Input | Callable[[], None]) -> None:
        """An input that comes then, or something to do."""
        self._sequence += 1
        heappush(self._due, (at_us, self._sequence, what))

    def submit(self, call: Call) -> OperationId:
        """Ask for it now; its own number is its key."""
        asked = c.submitted(
            call.tenant,
            str(len(self.stories)),
            **{
                "prompt_tokens": call.tokens - call.output,
                "output_tokens_max": call.output,
                "start_within_ms": 2_592_000_000,
                **call.more,
            },
        )
        operation = c.id_of(asked)
        self.stories[operation] = Story(call, self.now_us)
        self.later(self.now_us, asked)
        return operation

    def submit_at(self, at_us: int, call: Call) -> None:
        """Ask for it then."""
        self.later(at_us, lambda: self.submit(call))

    def backlog(self, tenant: str, make: Callable[[], Call], *, depth: int = 4) -> None:
        """The tenant always has so many calls waiting, from now on."""
        self._refills[tenant] = make
        for _ in range(depth):
            self.submit(make())

    def drain(self, tenant: str) -> None:
        """It asks for nothing more."""
        self._refills.pop(tenant, None)

    def poisson(self, make: Callable[[], Call], per_s: float, first_us: int, until_us: int) -> None:
        """Independent calls at this rate over a span."""
        at_us = first_us
        while (at_us := at_us + int(self.chance.expovariate(per_s) * MILLION)) < until_us:
            self.submit_at(at_us, make())

    def run(self, until_us: int) -> None:
        """Let time pass."""
        while (at_us := self._next_us()) <= until_us:
            self.now_us = max(self.now_us, at_us)
            asked: list[i.Input] = []
            while self._due and self._due[0][0] <= self.now_us:
                what = heappop(self._due)[2]
                if callable(what):
                    what()
                else:
                    asked.append(what)
            self._entry(*asked)
            while self.core.state.more:
                self._entry()
        self.now_us = until_us

    def _next_us(self) -> int:
        due_us = self._due[0][0] if self._due else FOREVER_MS * MILLI
        due_ms = self.core.state.next_due_ms
        if due_ms is None:
            return due_us
        alone_ms = max(due_ms, self.core.now_ms + 1) - self.begun_ms
        return min(due_us, self.clock.true_us(alone_ms))

    def take_over(self, ahead_ms: int) -> None:
        """A new owner, whose estimate of the time is another."""
        self.clock.ahead_ms = ahead_ms
        self._pass_time()
        self.core.take_over()
        self.core.entries.clear()

    def _pass_time(self) -> None:
        self.core.now_ms = max(self.core.now_ms, self.begun_ms + self.clock.entry_ms(self.now_us))

    def _entry(self, *asked: i.Input) -> None:
        self._pass_time()
        events = self.core.run(*asked)
        self.core.entries.clear()
        for event in events:
            self.heard[type(event).__name__] += 1
            match event:
                case e.GrantIssued():
                    self._granted(event)
                case e.StartAccepted():
                    self._started(event)
                case _:
                    pass
        for watch in self.watchers:
            watch(events)

    # -- workers and provider -----------------------------------------------------------------

    def _granted(self, grant: e.GrantIssued) -> None:
        story = self.stories[grant.operation]
        story.grant, story.granted_us = grant, self.now_us
        story.requested_us = self.now_us + self._drawn(self.way.ask_us)
        self._say(story.requested_us, c.start(grant))
        refill = self._refills.get(story.call.tenant)
        if refill is not None:
            self.submit(refill())

    def _started(self, event: e.StartAccepted) -> None:
        story = self.stories[event.operation]
        grant, call = story.grant, story.call
        assert grant is not None, "Expected a grant before its start"
        if story.seen is not None:
            return  # heard before: it was asked twice
        sent_us = max(self.now_us, story.requested_us + self._drawn(self.way.send_us))
        at_us = sent_us + self._drawn(self.way.transit_us)
        ended_us = at_us + call.service_ms * MILLI
        used = call.tokens if call.used is None else call.used
        parts = call.output, call.used_output, self.domain.get("prices")
        story.seen = Seen(at_us, ended_us, call.tenant, call.tokens, used, *parts)
        self.record.calls.append(story.seen)
        delay_ms = -(-(sent_us - story.requested_us) // MILLI)
        if grant.report_send:
            self._say(sent_us, c.sent(grant, delay_ms))
        tokens = {"prompt_tokens": used - call.used_output, "output_tokens": call.used_output}
        self._say(ended_us, c.result(grant, send_delay_ms=delay_ms, **tokens))

    def _say(self, at_us: int, word: i.Input) -> None:
        self.later(at_us, word)
        if self.repeats and self.chance.random() < self.repeats:
            self.later(at_us + self.chance.randint(0, 2 * MILLION), word)

    def _drawn(self, most_us: int) -> int:
        """Often one of the ends, where rules break."""
        if not most_us:
            return 0
        return self.chance.choice((0, most_us, self.chance.randint(0, most_us)))


def tenants(**weights: int) -> list[i.ConfigProposed]:
    """Each with this weight and room for everything."""
    room = {"waiting_count_max": 10**9, "waiting_bytes_max": 10**15}
    return [c.tenant(name, weight=weight, **room) for name, weight in weights.items()]


def dimension(name: str, limit: int, **over: Any) -> i.DimensionConfig:
    """As `tests.support.core` has it, but with the pace that a window has by default."""
    return c.dimension(name, limit, **{"pace_percent": None, **over})
