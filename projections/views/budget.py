"""What is held, in use and counted at each level of each budget domain.

A reservation is *held* from its grant and *in use* from its start until it is closed; while its
outcome is unknown it is among *unknown* too, whatever its operation does meanwhile. What *counts*
against a limit follows scheduling.md section 5: a charge counts from the grant on, and in a window
until its latest arrival has left it, in buckets of W/256. Of the owner's own window only the
takeover term and steps of time are left out: after one, a charge may show as gone up to
`clock_bound_ms` plus 21 ms, or the step, before the owner frees it. Decisions never read this view.
"""

from collections.abc import Callable
from functools import partial

import msgspec

from projections.keys import join
from projections.projection import Projection, Seen
from schemas import events as e
from schemas.inputs import DimensionConfig

from .amounts import UNITS, Amounts, Taken, add, amounts, nothing, usage, used
from .config import Level
from .unknown import Reserved

BUCKETS_PER_WINDOW = 256
RHO_PPM = 200
MILLION = 1_000_000
EXITS_KEPT_MAX = 4 * BUCKETS_PER_WINDOW
"""Exits that have passed are dropped only then, so that dropping costs nothing on average."""

Exits = dict[int, int]
"""Instant at which it leaves -> amount."""


class Use(msgspec.Struct, array_like=True):
    """What one level of one domain has given out."""

    held: Amounts = msgspec.field(default_factory=nothing)
    in_use: Amounts = msgspec.field(default_factory=nothing)
    unknown: Amounts = msgspec.field(default_factory=nothing)
    """The part of `in_use` whose outcome is unknown."""
    exits: dict[str, Exits] = {}
    """By dimension, for windows; of a bucket when each began to be refilled."""
    full_ns: dict[str, int] = {}
    """By bucket: when it is full again but for `exits`."""


def counted(row: Use, dimension: DimensionConfig, now_ms: int) -> int:
    """What counts against the dimension's limit at `now_ms`."""
    unit = UNITS.index(dimension.unit)
    leaving = row.exits.get(dimension.name, {})
    windowed = sum(amount for exit_at, amount in leaving.items() if exit_at > now_ms)
    if dimension.kind == "bucket":
        missing_ns = max(0, _full_ns(row, dimension, now_ms) - now_ms * MILLION)
        windowed += -(-missing_ns * dimension.limit // _refill_ns(dimension))
    if dimension.kind == "concurrency" or dimension.instant == "completion":
        return row.held[unit] + row.in_use[unit] + windowed
    return row.held[unit] + windowed


def exit_ms(dimension: DimensionConfig, *, latest_ms: int, send_within_ms: int) -> int:
    """When a charge that arrives at `latest_ms` at last no longer counts (R172)."""
    window_ms = dimension.window_ms
    assert window_ms is not None, f"Expected a window, but {dimension.name} has none"
    if dimension.kind == "fixed" and dimension.reset_ms is not None:
        u = dimension.reset_uncertainty_ms
        return _reset_after(dimension, dimension.reset_ms, window_ms, latest_ms + u) + u
    if dimension.kind == "bucket":
        return latest_ms + 1
    exact = latest_ms + window_ms + 1 - (-RHO_PPM * (window_ms + send_within_ms) // MILLION)
    bucket = max(1, -(-window_ms // BUCKETS_PER_WINDOW))
    return -(-exact // bucket) * bucket


def _reset_after(dimension: DimensionConfig, reset_ms: int, window_ms: int, at_ms: int) -> int:
    """The next end of a fixed window; one that less than half a window follows is none."""
    known = (reset_ms, *dimension.later_resets_ms)
    begin_ms = max((one for one in known if one <= at_ms), default=reset_ms)
    later_ms = min((one for one in known if one > at_ms), default=None)
    ends_ms = begin_ms + ((at_ms - begin_ms) // window_ms + 1) * window_ms
    return ends_ms if later_ms is None or 2 * (later_ms - ends_ms) >= window_ms else later_ms


def _refill_ns(bucket: DimensionConfig) -> int:
    assert bucket.window_ms is not None, f"Expected a span, but {bucket.name} has none"
    return bucket.window_ms * (MILLION + RHO_PPM)


def _full_ns(row: Use, bucket: DimensionConfig, now_ms: int) -> int:
    """When it is full again, if nothing arrives after now."""
    full_ns, whole_ns = row.full_ns.get(bucket.name, 0), _refill_ns(bucket)
    for at_ms, amount in sorted(row.exits.get(bucket.name, {}).items()):
        if at_ms <= now_ms:
            takes_ns = amount * whole_ns // max(1, bucket.limit)
            full_ns = max(full_ns, at_ms * MILLION) + takes_ns
            full_ns = min(full_ns, at_ms * MILLION + whole_ns)
    return full_ns


def _leave(row: Use, dimension: DimensionConfig, exit_at: int, amount: int, now_ms: int) -> None:
    exits = row.exits.setdefault(dimension.name, {})
    exits[exit_at] = exits.get(exit_at, 0) + amount
    if len(exits) > EXITS_KEPT_MAX:
        if dimension.kind == "bucket":
            row.full_ns[dimension.name] = _full_ns(row, dimension, now_ms)
        row.exits[dimension.name] = {at: n for at, n in exits.items() if at > now_ms}


def _charge(row: Use, dimension: DimensionConfig, held: Reserved, now_ms: int, sign: int) -> None:
    """Count a started charge until its exit, or no longer, unless it has left already."""
    assert held.latest_arrival_ms is not None, "Expected a start before its charge"
    exit_at = exit_ms(
        dimension, latest_ms=held.latest_arrival_ms, send_within_ms=held.send_within_ms
    )
    if exit_at > now_ms:
        _leave(row, dimension, exit_at, sign * amounts(held)[UNITS.index(dimension.unit)], now_ms)


def _reserved(seen: Seen) -> Reserved:
    assert seen.reserved is not None, f"Expected to know what was reserved for {seen.event}"
    return seen.reserved


def _start(row: Use, event: e.StartAccepted, seen: Seen, level: Level) -> None:
    held = _reserved(seen)
    add(row.held, amounts(held), -1)
    add(row.in_use, amounts(held), 1)
    for dimension in level.arrivals:
        exit_at = exit_ms(
            dimension, latest_ms=event.latest_arrival_ms, send_within_ms=event.send_within_ms
        )
        _leave(row, dimension, exit_at, amounts(held)[UNITS.index(dimension.unit)], seen.time_ms)


def _observe(row: Use, event: e.SendObserved, seen: Seen, level: Level) -> None:
    held = _reserved(seen)
    for dimension in level.arrivals:
        exit_at = exit_ms(
            dimension, latest_ms=event.latest_arrival_ms, send_within_ms=held.send_within_ms
        )
        amount = amounts(held)[UNITS.index(dimension.unit)]
        _charge(row, dimension, held, seen.time_ms, -1)
        _leave(row, dimension, exit_at, amount, seen.time_ms)


def _close(row: Use, seen: Seen) -> Reserved:
    """A started reservation is over."""
    held = _reserved(seen)
    add(row.in_use, amounts(held), -1)
    if held.doubt is not None:
        add(row.unknown, amounts(held), -1)
    return held


def _settle(row: Use, used: Taken | None, seen: Seen, level: Level) -> None:
    held = _close(row, seen)
    for dimension in level.windows:
        unit = UNITS.index(dimension.unit)
        reserved = actual = amounts(held)[unit]
        if dimension.unit != "requests" and used is not None:
            # Use above the reservation is an overdraft and counts everywhere (R54).
            floor = reserved if dimension.amount == "reserved" else 0
            actual = max(floor, used[unit])
        if dimension.instant == "completion":
            exit_at = exit_ms(dimension, latest_ms=seen.time_ms, send_within_ms=held.send_within_ms)
            _leave(row, dimension, exit_at, actual, seen.time_ms)
        elif actual != reserved:
            assert held.latest_arrival_ms is not None
            exit_at = exit_ms(
                dimension, latest_ms=held.latest_arrival_ms, send_within_ms=held.send_within_ms
            )
            if exit_at > seen.time_ms:
                _leave(row, dimension, exit_at, actual - reserved, seen.time_ms)


def _return(row: Use, seen: Seen, level: Level) -> None:
    """Nothing was sent: nothing was spent."""
    held = _reserved(seen)
    if held.started_ms is None:
        add(row.held, amounts(held), -1)
        return
    _close(row, seen)
    for dimension in level.arrivals:
        _charge(row, dimension, held, seen.time_ms, -1)


def _correct(row: Use, event: e.UsageCorrected, seen: Seen, level: Level) -> None:
    """Use beyond what was charged counts from now on; nothing comes back (R55)."""
    domain = seen.config.domains[event.domain].domain
    assert domain is not None and seen.operation is not None, "Expected both"  # noqa: PT018
    one = seen.operation
    before = usage(event.input_tokens_before, event.tokens_before, event.money_before_micros)
    actual = usage(event.input_tokens_actual, event.tokens_actual, event.money_actual_micros)
    tokens = one.prompt_tokens + one.output_tokens_max
    reserved = usage(one.prompt_tokens, tokens, one.charged_money_micros)
    for dimension in level.windows:
        unit = UNITS.index(dimension.unit)
        charged = before[unit]
        if dimension.amount == "reserved" and event.tokens_before > 0:  # 0: perhaps released
            charged = max(charged, reserved[unit])
        if actual[unit] > charged:
            exit_at = exit_ms(
                dimension, latest_ms=seen.time_ms, send_within_ms=domain.send_within_ms
            )
            _leave(row, dimension, exit_at, actual[unit] - charged, seen.time_ms)


LevelOf = Callable[[Seen], Level]


def _apply(row: Use, seen: Seen, *, level_of: LevelOf) -> Use:
    level = level_of(seen)
    match event := seen.event:
        case e.GrantIssued():
            add(row.held, amounts(event), 1)
        case e.StartAccepted():
            _start(row, event, seen, level)
        case e.SendObserved():
            _observe(row, event, seen, level)
        case e.OutcomeMarkedUnknown():
            add(row.unknown, amounts(_reserved(seen)), 1)
        case e.ReservationSettled():
            _settle(row, used(event), seen, level)
        case e.ReservationForfeited():
            _settle(row, None, seen, level)
        case e.ReservationReleased() | e.ReservationExpired():
            _return(row, seen, level)
        case e.UsageCorrected():
            _correct(row, event, seen, level)
        case _:
            raise AssertionError(f"Expected an event about a reservation, got {event}")
    return row


def _domain_of(seen: Seen) -> str:
    return _reserved(seen).domain


def _domain_level(seen: Seen) -> Level:
    return seen.config.domain_level(_domain_of(seen))


def _tenant_level(seen: Seen) -> Level:
    return seen.config.tenant_level(seen.event.tenant, _domain_of(seen))


def _by_tenant(seen: Seen) -> bytes | None:
    """The tenant's row, if the tenant had a level of its own when the grant was made."""
    if isinstance(seen.event, e.GrantIssued | e.UsageCorrected):
        concerned = bool(_tenant_level(seen).dimensions)
    else:
        concerned = _reserved(seen).tenant_level
    return join(_domain_of(seen), seen.event.tenant) if concerned else None


_WANTS = (
    e.GrantIssued,
    e.StartAccepted,
    e.SendObserved,
    e.OutcomeMarkedUnknown,
    e.ReservationSettled,
    e.ReservationReleased,
    e.ReservationExpired,
    e.ReservationForfeited,
    e.UsageCorrected,
)

DOMAIN_BUDGETS = Projection(
    name="domain_budget",
    number=6,
    version=6,
    row=Use,
    wants=_WANTS,
    key=lambda seen: join(_domain_of(seen)),
    initial=Use,
    apply=partial(_apply, level_of=_domain_level),
)
TENANT_BUDGETS = Projection(
    name="tenant_budget",
    number=7,
    version=6,
    row=Use,
    wants=_WANTS,
    key=_by_tenant,
    initial=Use,
    apply=partial(_apply, level_of=_tenant_level),
)
