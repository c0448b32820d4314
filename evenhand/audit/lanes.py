"""Lanes: who may use them, what bulk leaves to the others, and when it need not (R108 to R111).

Each lane's key is counted once more: the sum of what its grants cost and of what settlements
corrected, by weight. Of what idleness or blocking writes off the audit only knows that it never
lifts a key above V: it finds a key that forgets what was served, and one that was lifted too far.
"""

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, get_args

from schemas import events as e
from schemas.ids import DomainId, OperationId
from schemas.inputs import DomainConfig
from schemas.lanes import BULK

from .amounts import amount_of, amount_used, corrected_by, reserve
from .book import Book
from .config import Config
from .cursor import Cursor
from .records import WAITING, Charged, Key, key_of

CHECK = "lanes"
ROUNDING = 4
"""Keys are rounded wherever a weight changes, which the audit learns with the next grant."""
COST_NS_MAX = 366 * 86_400 * 10**9
"""No call costs more than a year of its budget."""
ABOUT_ONE = tuple(kind for kind in get_args(e.Event) if "operation" in kind.__struct_fields__)


class _Tag:
    """What a lane was served: between which keys it must be."""

    def __init__(self) -> None:
        self.base = self.served = self._high = 0
        self.weight = 1

    @property
    def low(self) -> int:
        """The key if nothing was written off since the last pick."""
        return self.base + self.served // self.weight

    def high(self, v: int) -> int:
        """The key if as much was written off as may be."""
        return max(self._high, v)

    def weigh(self, weight: int) -> None:
        """The weight in force; what was served stays worth what it was."""
        if weight != self.weight:
            self.base, self.served, self.weight = self.low, 0, weight

    def picked(self, key: int, cost_ns: int) -> None:
        """The key was told, and so much was granted."""
        if key != self.low:
            self.base, self.served = key, 0
        self.served += cost_ns
        self._high = self.low

    def correct(self, cost_ns: int, weight: int, v: int) -> None:
        """Served so much more or less than was granted."""
        self._high = self.high(v) - (-cost_ns // weight)
        if weight == self.weight:
            self.served += cost_ns
        else:
            self.base += -(-cost_ns // weight)


class Lanes:
    """The counters of all lanes, and how many wait in each."""

    def __init__(self, cursor: Cursor, config: Config, book: Book) -> None:
        self._cursor = cursor
        self._config = config
        self._book = book
        self._tags: defaultdict[tuple[DomainId, str], _Tag] = defaultdict(_Tag)
        self._v: Counter[DomainId] = Counter()
        self._waits: dict[OperationId, tuple[DomainId, str]] = {}
        self._waiting: Counter[tuple[DomainId, str]] = Counter()

    def handlers(self) -> dict[type, Callable[[Any], None]]:
        """What to call for which event."""
        return {
            e.OperationAdmitted: self._admitted,
            e.GrantIssued: self._granted,
            e.ReservationSettled: self._settled,
            e.ReservationReleased: self._returned,
            e.ReservationExpired: self._returned,
            e.UsageCorrected: self._corrected,
        }

    def returns(self) -> dict[type, Callable[[Any], None]]:
        """What to call after an event was folded: the operation may wait, or wait no longer."""
        return dict.fromkeys(ABOUT_ONE, self._follow)

    def _admitted(self, event: e.OperationAdmitted) -> None:
        entitled = self._config.tenant(event.tenant).lanes
        if event.lane not in entitled:
            self._found(f"Expected a lane of {entitled} for {event.tenant}, but it is {event.lane}")

    def _granted(self, event: e.GrantIssued) -> None:
        domain = self._config.domains.get(event.domain)
        if domain is None:
            return
        tag, v = self._tag(event.domain, event.lane, domain), self._v[event.domain]
        low, high = tag.low - ROUNDING, tag.high(v) + ROUNDING
        if not low <= event.lane_key <= high:
            detail = f"Expected a key of the lane from {low} to {high}"
            self._found(f"{detail}, but it is {event.lane_key}")
        if event.lane_weight != tag.weight:
            self._found(f"Expected lane weight {tag.weight}, but it is {event.lane_weight}")
        if event.by_floor:
            self._by_floor(event, domain)
        self._v[event.domain] = max(v, event.lane_key)
        tag.picked(event.lane_key, event.cost_ns)

    def _by_floor(self, event: e.GrantIssued, domain: DomainConfig) -> None:
        """Only bulk, with the lowest key, beside others or with a vector that is too large."""
        name, v = event.domain, self._v[event.domain]
        if event.lane != BULK:
            self._found(f"Expected no floor in lane {event.lane}")
        others = [
            lane
            for (its, lane), count in self._waiting.items()
            if its == name and lane != event.lane and count
        ]
        for lane in others:
            if event.lane_key > self._tag(name, lane, domain).high(v) + ROUNDING:
                self._found(
                    f"Expected the lowest key, but {event.lane_key} is above that of {lane}"
                )
        if not others and not self._too_large(event, domain):
            self._found("Expected others to wait beside a floor, or a vector above the reserve")

    def _too_large(self, event: e.GrantIssued, domain: DomainConfig) -> bool:
        return any(
            amount_of(event, one) > one.limit - reserve(one, domain.bulk_reserve_percent)
            for _, one in self._config.dimensions(event.tenant, event.domain)
        )

    # -- what the counters follow ----------------------------------------------------------------

    def _settled(self, event: e.ReservationSettled) -> None:
        self._correct(key_of(event), event.cost_ns - event.cost_reserved_ns)

    def _returned(self, event: e.ReservationReleased | e.ReservationExpired) -> None:
        reservation = self._book.open.get(key_of(event))
        if reservation is not None:
            self._correct(key_of(event), -reservation.grant.cost_ns)

    def _correct(self, key: Key, delta_ns: int) -> None:
        reservation = self._book.open.get(key)
        domain = None if reservation is None else self._config.domains.get(reservation.grant.domain)
        if reservation is not None and domain is not None:
            grant = reservation.grant
            tag = self._tag(grant.domain, grant.lane, domain)
            tag.correct(delta_ns, grant.lane_weight, self._v[grant.domain])

    def _corrected(self, event: e.UsageCorrected) -> None:
        """Tokens and money alone, by what they cost under the limits in force."""
        operation = self._book.operations.get(event.operation)
        domain = self._config.domains.get(event.domain)
        if operation is None or domain is None:
            return
        before_ns, actual_ns = (_cost_ns(used, domain) for used in corrected_by(event))
        tag = self._tag(event.domain, operation.queue[1], domain)
        tag.correct(actual_ns - before_ns, tag.weight, self._v[event.domain])

    def _follow(self, event: Any) -> None:
        operation = self._book.operations.get(event.operation)
        place = None
        if operation is not None and operation.state == WAITING:
            place = (operation.queue[3], operation.queue[1])
        before = self._waits.pop(event.operation, None)
        if before is not None:
            self._waiting[before] -= 1
        if place is not None:
            self._waits[event.operation] = place
            self._waiting[place] += 1

    def _tag(self, name: DomainId, lane: str, domain: DomainConfig) -> _Tag:
        tag = self._tags[name, lane]
        tag.weigh(getattr(domain, f"{lane}_weight", 1))
        return tag

    def _found(self, detail: str) -> None:
        self._cursor.found(CHECK, detail)


def _cost_ns(used: Charged, domain: DomainConfig) -> int:
    """How long what was used alone occupies its scarcest dimension."""
    costs = [
        -(-amount_used(used, one.unit) * one.window_ms * 1_000_000 // one.limit)
        for one in domain.dimensions
        if one.window_ms is not None and one.limit > 0
    ]
    return min(max([1, *costs]), COST_NS_MAX)
