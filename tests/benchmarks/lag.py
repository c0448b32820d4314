"""How far two tenants' service may drift apart, measured against the bound of scheduling.md 1.

Over every interval in which two tenants wait and, whenever one was picked, the other could have
gone too, their service by weight differs by at most one largest call of each, what was in flight
wrongly estimated by then, and the credit of whoever was blocked. Integers throughout.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

from schemas import events as e
from schemas.ids import OperationId
from schemas.units import NANOS_PER_MILLI, Tokens
from streams.core.costs import call_cost
from tests.benchmarks.play import Play


class Pick(NamedTuple):
    """One grant, and where the others stood."""

    tenant: str
    operation: OperationId
    waiting: frozenset[str]
    """Tenants that still or also waited at the pick."""
    fitting: frozenset[str]
    """Those of them whose head could have gone."""
    capped: frozenset[str]
    """Those that only their own caps held back."""
    in_flight: Mapping[str, frozenset[OperationId]]
    """Granted and not settled, after the pick."""


class Watch:
    """Sees the entries of a play that grants at most one operation in each."""

    def __init__(self, play: Play, tenants: Iterable[str]) -> None:
        self._play, self._tenants = play, tuple(tenants)
        self._waiting: dict[str, deque[tuple[OperationId, tuple[Tokens, Tokens]]]] = {
            n: deque() for n in tenants
        }
        self._in_flight: dict[str, frozenset[OperationId]] = dict.fromkeys(tenants, frozenset())
        self.picks: list[Pick] = []
        self.estimated: dict[OperationId, int] = {}
        self.settled: dict[OperationId, int] = {}
        self.largest = 0
        play.watchers.append(self._see)

    def _see(self, events: list[e.Event]) -> None:
        for event in events:
            match event:
                case e.OperationAdmitted():
                    tokens = event.prompt_tokens, event.output_tokens_max
                    self._waiting[event.tenant].append((event.operation, tokens))
                case e.GrantIssued():
                    self._picked(event)
                case e.ReservationSettled():
                    self.settled[event.operation] = event.cost_ns
                    self._in_flight[event.tenant] -= {event.operation}
                case _:
                    pass

    def _picked(self, grant: e.GrantIssued) -> None:
        operation, _ = self._waiting[grant.tenant].popleft()
        assert operation == grant.operation, "Expected first in, first out"
        self.estimated[operation] = grant.cost_ns
        self.largest = max(self.largest, grant.cost_ns)
        self._in_flight[grant.tenant] |= {operation}
        waiting = frozenset(name for name, queue in self._waiting.items() if queue)
        fitting = frozenset(name for name in waiting if self._fits(name, grant, own=False))
        capped = frozenset(name for name in waiting if not self._fits(name, grant, own=True))
        self.picks.append(
            Pick(grant.tenant, operation, waiting, fitting - capped, capped, dict(self._in_flight))
        )

    def _fits(self, tenant: str, grant: e.GrantIssued, *, own: bool) -> bool:
        """Whether the tenant's head had room before the grant; `own`: below its own caps."""
        cost = call_cost(*self._waiting[tenant][0][1], prices=None)
        taken = call_cost(grant.prompt_tokens, grant.output_tokens_max, prices=None)
        domain = self._play.core.state.config.domains[grant.domain]
        for window in domain.levels(tenant):
            if own is (window.level == "domain"):
                continue
            back = taken.amount(window.config) if not own or tenant == grant.tenant else 0
            if window.free + back < cost.amount(window.config):
                return False
        return True


@dataclass(slots=True)
class _Interval:
    """From one pick on, what two tenants have got; all by weight, so times the other's weight."""

    largest: list[int]
    wrong: list[int] = field(default_factory=lambda: [0, 0])
    credit: list[int] = field(default_factory=lambda: [0, 0])
    now: int = 0
    low: int = 0
    high: int = 0

    def count(self, side: int, cost: int, largest: int) -> None:
        """One side got something; `cost` by weight."""
        self.now += cost if side == 0 else -cost
        self.low, self.high = min(self.low, self.now), max(self.high, self.now)
        self.largest[side] = max(self.largest[side], largest)

    def lag(self, by: list[int]) -> float:
        """The largest difference over any part of it, as a part of what is allowed."""
        allowed = sum(
            (self.largest[side] + self.wrong[side] + self.credit[side]) * by[side]
            for side in (0, 1)
        )
        # An integer division of a key loses less than one unit a tenant.
        return (self.high - self.low) / (allowed + 2 * sum(by)) if allowed else 0.0


def largest_lag(watch: Watch, weights: Mapping[str, int], window_ms: int) -> float:
    """The largest lag of any two tenants, as a part of what is allowed.

    Args:
        watch: has seen the whole play.
        weights: of the tenants compared.
        window_ms: of the shortest window: one that the shared budget held back keeps so much.
    """
    pairs = combinations(weights, 2)
    return max(_Pair(watch, weights, pair, window_ms).largest_lag() for pair in pairs)


class _Pair:
    """Two tenants compared over a whole play."""

    def __init__(
        self, watch: Watch, weights: Mapping[str, int], pair: tuple[str, str], window_ms: int
    ) -> None:
        self._watch, self._pair = watch, pair
        self._by = [weights[pair[1]], weights[pair[0]]]
        self._window_ns = window_ms * NANOS_PER_MILLI
        self._last = dict.fromkeys(pair, 0)
        """What each was last charged: it may still owe that."""
        self._credit = dict.fromkeys(pair, 0)
        self._wrong = dict.fromkeys(pair, 0)
        """The most of each that was in flight wrongly estimated: its correction is paid later."""
        self._worst = 0.0
        self._open: _Interval | None = None

    def largest_lag(self) -> float:
        """Over every interval in which both could have gone at each pick of one of them."""
        for pick in self._watch.picks:
            self._block(pick)
            for name in self._pair:
                self._wrong[name] = max(self._wrong[name], self._error(pick.in_flight[name]))
            if pick.tenant in self._pair:
                self._compare(pick)
            elif any(name not in pick.waiting for name in self._pair):
                self._end()
        self._end()
        return self._worst

    def _block(self, pick: Pick) -> None:
        """Whoever could not go keeps a credit; whoever has nothing waiting has none."""
        for name in self._pair:
            if name == pick.tenant or name in pick.fitting:
                continue
            if name not in pick.waiting:
                self._credit[name] = 0
            else:
                most_ns = 0 if name in pick.capped else self._window_ns
                self._credit[name] = max(self._credit[name], self._watch.largest, most_ns)

    def _compare(self, pick: Pick) -> None:
        watch, operation = self._watch, pick.operation
        estimated = watch.estimated[operation]
        cost = watch.settled.get(operation, estimated)
        if not all(name == pick.tenant or name in pick.fitting for name in self._pair):
            self._end()
        else:
            it = self._open = self._open or _Interval([self._last[name] for name in self._pair])
            side = self._pair.index(pick.tenant)
            it.count(side, cost * self._by[side], max(cost, estimated))
            for side, name in enumerate(self._pair):
                it.wrong[side] = self._wrong[name]
                it.credit[side] = max(it.credit[side], self._credit[name])
        self._last[pick.tenant] = max(cost, estimated)
        if pick.tenant not in pick.waiting:  # that was its last one
            self._end()
            self._credit[pick.tenant] = 0

    def _error(self, in_flight: Iterable[OperationId]) -> int:
        settled, estimated = self._watch.settled, self._watch.estimated
        return sum(abs(settled.get(one, estimated[one]) - estimated[one]) for one in in_flight)

    def _end(self) -> None:
        if self._open is not None:
            self._worst = max(self._worst, self._open.lag(self._by))
            self._open = None
