"""Every grant fitted at its position, in every dimension at every level (R39, R44, R46, R56).

At a grant, what counts already plus what is granted must not exceed the limit in force. Lowering a
limit revokes nothing; a dimension that changes its kind or its window starts counting afresh. Nor
may a grant go against a pace (R46). What a call was settled above its reservation it owes the pace
while it counts; what came back is believed to have come back to the pace in any case.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from schemas import events as e
from schemas.entry import Entry
from schemas.ids import DomainId, TenantId
from schemas.inputs import DimensionConfig
from schemas.lanes import BULK

from .amounts import amount_of, amount_used, corrected_by, price, reserve, used_by
from .book import Book
from .bucket import Bucket
from .config import Config
from .cursor import Cursor
from .fixed import Fixed
from .pace import Pace
from .records import Charged, Key, key_of
from .saving import Saving
from .windows import CLOCK_SPREAD_MS, Concurrency, Sliding, Window

CHECK = "budgets"
TOLD = ("tokens", "input_tokens", "output_tokens", "money")
"""Units of which a settlement says what was used."""

Place = tuple[str, str, DomainId, str]
"""Level, tenant (none at the domain's own), domain and dimension."""


@dataclass(slots=True)
class _Limited:
    place: Place
    config: DimensionConfig
    window: Window
    pace: Pace = field(default_factory=Pace)


class Budgets:
    """All windows of a cell, and which of them each open reservation was charged to."""

    def __init__(self, cursor: Cursor, config: Config, book: Book, saving: Saving) -> None:
        self._saving = saving
        self._cursor = cursor
        self._config = config
        self._book = book
        self._limited: dict[Place, _Limited] = {}
        self._levels: dict[tuple[TenantId, DomainId], Sequence[_Limited]] = {}
        self._charged: dict[Key, Sequence[_Limited]] = {}

    def handlers(self) -> dict[type, Callable[[Any], None]]:
        """What to call for which event."""
        return {
            e.ConfigActivated: self._reconfigured,
            e.GrantIssued: self._granted,
            e.StartAccepted: self._started,
            e.SendObserved: self._observed,
            e.ReservationSettled: self._settled,
            e.ReservationReleased: self._dropped,
            e.ReservationExpired: self._dropped,
            e.ReservationForfeited: self._forfeited,
            e.UsageCorrected: self._corrected,
        }

    def begin(self, entry: Entry) -> None:
        """A takeover or a step of time changes when charges leave."""
        if entry.takeover:
            for limited in self._limited.values():
                limited.window.used(entry.time_ms)
                limited.window.extend(self._config.cell.clock_bound_ms + CLOCK_SPREAD_MS)
        if entry.time_step_ms:
            for limited in self._limited.values():
                limited.window.step(entry.time_step_ms)
                limited.pace.step(entry.time_step_ms)

    def _reconfigured(self, event: e.ConfigActivated) -> None:
        """Another rate begins with an empty pace, and a dimension that is gone is forgotten."""
        if event.domain is None and event.tenant is None:
            return
        for tenant, domain in [names for names in self._levels if event.name in names]:
            del self._levels[tenant, domain]
            self._of(tenant, domain)
        level = "domain" if event.tenant is None else "tenant"
        for place in [one for one in self._limited if one[0] == level and event.name in one[1:3]]:
            named = self._config.dimensions(TenantId(place[1]), place[2])
            if (level, place[3]) not in [(at, dimension.name) for at, dimension in named]:
                del self._limited[place]

    def _granted(self, event: e.GrantIssued) -> None:
        if event.domain not in self._config.domains:
            self._cursor.found(CHECK, f"Expected a configured domain, not {event.domain}")
            return
        key = key_of(event)
        levels, now_ms = self._of(event.tenant, event.domain), self._cursor.time_ms
        bound = event.lane == BULK and not event.by_floor
        percent = self._config.domains[event.domain].bulk_reserve_percent if bound else 0
        for limited in levels:
            dimension = limited.config
            amount = amount_of(event, dimension)
            used = limited.window.used(now_ms)
            where = f"{limited.place[0]} {dimension.name} of {event.domain}"
            vector = self._saving.kept(event, limited.place[0], dimension)
            most = dimension.limit - max(reserve(dimension, percent), vector)
            if amount and used + amount > most:
                counted = f"{used} counted and {amount} were granted"
                self._cursor.found(CHECK, f"Expected {most} in {where}, but {counted}")
            if amount and not limited.pace.allows(dimension, now_ms):
                self._cursor.found(CHECK, f"Expected no grant yet by the pace of {where}")
            limited.window.hold(key, amount)
            limited.pace.take(dimension, amount, now_ms)
        self._charged[key] = levels

    def _started(self, event: e.StartAccepted) -> None:
        now_ms = self._cursor.time_ms
        self._arrive(event, now_ms, event.send_within_ms)

    def _observed(self, event: e.SendObserved) -> None:
        reservation = self._book.open.get(key_of(event))
        if reservation is not None and reservation.accepted_ms is not None:
            self._arrive(event, reservation.accepted_ms, reservation.grant.send_within_ms)

    def _arrive(self, event: Any, first_ms: int, send_within_ms: int) -> None:
        key = key_of(event)
        for limited in self._charged.get(key, ()):
            limited.window.used(self._cursor.time_ms)
            limited.window.arrive(key, first_ms, event.latest_arrival_ms, send_within_ms)

    def _settled(self, event: e.ReservationSettled) -> None:
        self._close(event, used_by(event))

    def _forfeited(self, event: e.ReservationForfeited) -> None:
        self._close(event, None)

    def _close(
        self, event: e.ReservationSettled | e.ReservationForfeited, used: Charged | None
    ) -> None:
        key = key_of(event)
        reservation = self._book.open.get(key)
        now_ms = self._cursor.time_ms
        if reservation is None:
            return
        grant = reservation.grant
        for limited in self._charged.pop(key, ()):
            amount = amount_of(grant, limited.config)
            if limited.config.unit in TOLD and used is not None:
                actual = amount_used(used, limited.config.unit)
                refund = limited.config.amount == "actual"
                amount = actual if refund else max(amount, actual)
            limited.window.used(now_ms)
            change = amount - amount_of(grant, limited.config)
            if change < 0 or limited.window.holds(key, now_ms):
                self._pay(limited, change)
            limited.window.settle(key, amount, now_ms, grant.send_within_ms)

    def _dropped(self, event: e.ReservationReleased | e.ReservationExpired) -> None:
        key = key_of(event)
        reservation = self._book.open.get(key)
        for limited in self._charged.pop(key, ()):
            limited.window.drop(key)
            if reservation is not None:
                self._pay(limited, -amount_of(reservation.grant, limited.config))

    def _pay(self, charged: _Limited, amount: int) -> None:
        """The pace now in force at this place has so much more to let drain, or less."""
        limited = self._limited.get(charged.place)
        if limited is not None:
            limited.pace.take(limited.config, amount, self._cursor.time_ms)

    def _corrected(self, event: e.UsageCorrected) -> None:
        """What was used beyond the charge counts from now on; nothing comes back (R55)."""
        operation = self._book.operations.get(event.operation)
        domain = self._config.domains.get(event.domain)
        if operation is None or domain is None:
            return
        now_ms, send_within_ms = self._cursor.time_ms, domain.send_within_ms
        key = (key_of(event), self._cursor.position)
        before, actual = corrected_by(event)
        paid = price(operation.prices, operation.reserved)
        most = operation.reserved._replace(money=paid)
        for limited in self._of(event.tenant, event.domain):
            unit = limited.config.unit
            charged = amount_used(before, unit)
            if limited.config.amount == "reserved" and before.tokens > 0:
                charged = max(charged, amount_used(most, unit))
            extra = amount_used(actual, unit) - charged
            if extra > 0:
                limited.window.used(now_ms)
                limited.window.hold(key, extra)
                self._pay(limited, extra)
                limited.window.arrive(key, now_ms, now_ms, send_within_ms)
                limited.window.settle(key, extra, now_ms, send_within_ms)

    def _of(self, tenant: TenantId, domain: DomainId) -> Sequence[_Limited]:
        """What limits a call of the tenant in the domain, under the configuration in force."""
        found = self._levels.get((tenant, domain))
        if found is None:
            dimensions = self._config.dimensions(tenant, domain)
            found = [self._current(level, tenant, domain, each) for level, each in dimensions]
            self._levels[tenant, domain] = found
        return found

    def _current(
        self, level: str, tenant: TenantId, domain: DomainId, dimension: DimensionConfig
    ) -> _Limited:
        owner = tenant if level == "tenant" else ""
        place = (level, owner, domain, dimension.name)
        before = self._limited.get(place)
        if before is None or _shape(before.config) != _shape(dimension):
            self._limited[place] = _Limited(place, dimension, _window_for(dimension))
        elif before.config != dimension:
            pace = before.pace if before.config.limit == dimension.limit else Pace()
            self._limited[place] = _Limited(place, dimension, before.window, pace)
        return self._limited[place]


def _shape(dimension: DimensionConfig) -> tuple[Any, ...]:
    """Everything but the limit: what it means to be counted; a bucket is its capacity."""
    return (
        dimension.unit,
        dimension.kind,
        dimension.window_ms,
        dimension.reset_ms,
        dimension.later_resets_ms,
        dimension.reset_uncertainty_ms,
        dimension.amount,
        dimension.instant,
        dimension.limit if dimension.kind == "bucket" else None,
    )


def _window_for(dimension: DimensionConfig) -> Window:
    """An empty window of the dimension's kind; a fixed one of unknown alignment is sliding."""
    if dimension.kind == "concurrency":
        return Concurrency()
    if dimension.kind == "bucket":
        return Bucket(dimension)
    if dimension.kind == "fixed" and dimension.reset_ms is not None:
        return Fixed(dimension)
    return Sliding(dimension)
