"""What held each domain's work back, minute by minute: a binding dimension, or a pause (R60).

A deferral is a sample: the owner records who could not go, and why, when it looks at the domain,
and at most once in `deferral_sample_ms`. So a minute without a row is one in which nobody was held
back, or in which nothing changed since the last sample. A pause is told once, when it begins;
`timeline` shows it in every minute until its end.

A domain's rows are a ring of `MINUTES_KEPT`, so that they need no pruning: a minute takes the row
of the one a day before it, and what nobody has taken yet is left out by `timeline`.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from projections.keys import join
from projections.projection import Projection, Seen
from schemas import events as e
from schemas.inputs import DimensionConfig, DomainConfig

MINUTE_MS = 60_000
MINUTES_KEPT = 1_440
"""A day: whoever asks why last night was slow asks in the morning."""
BINDINGS_MAX = 16
"""In one minute. A domain limits a few dimensions; only tenants' own can have more names."""
PAUSES_MAX = 16
"""That begin in one minute, as `BINDINGS_MAX`."""
TENANTS_MAX = 8
"""Named for one binding: who waits at all is told by the queues."""
LIMIT_ZERO = "limit_zero"
"""Cause of a pause that is a limit of zero, beside those that a cooldown has."""


class Binding(msgspec.Struct, array_like=True):
    """What was in the way of heads in one minute."""

    level: str
    dimension: str | None
    """None: the domain paused, whatever its dimensions."""
    held_by: str
    """As an `OperationDeferred` has it, or the cause of a pause."""
    since_ms: int
    until_ms: int
    """The first and the last instant in the minute at which that is known."""
    samples: int = 0
    """None for a pause."""
    tenants: list[str] = []
    """Whose heads the samples named: the first `TENANTS_MAX`."""


class Pause(NamedTuple):
    """A span in which a domain grants nothing, or nothing that takes of one dimension."""

    dimension: str | None
    cause: str
    since_ms: int
    until_ms: int | None
    """None: until the domain is configured again."""


class Minute(msgspec.Struct, array_like=True):
    """One minute of one domain."""

    number: int = 0
    """Minutes from 1970 to its begin."""
    bindings: list[Binding] = []
    further: int = 0
    """Samples of bindings beyond `BINDINGS_MAX`."""
    pauses: list[Pause] = []
    """That began in it."""
    configured_ms: int | None = None
    """When the domain was configured first, which ended what paused before."""


def zero_limits(domain: DomainConfig) -> list[DimensionConfig]:
    """The dimensions by which a domain's configuration pauses it."""
    return [one for one in domain.dimensions if one.limit == 0]


def timeline(
    rows: Iterable[Minute], standing: Iterable[Pause], *, now_ms: int, count: int
) -> list[Minute]:
    """Those of the latest `count` minutes in which something bound, oldest first.

    Args:
        rows: of one domain, in any order.
        standing: the pauses that hold at `now_ms`, since a row is not kept as long as a pause.
        now_ms: entry time; the last minute is the one that it lies in.
        count: at most `MINUTES_KEPT`.

    Returns: minutes with pauses among their bindings.
    """
    last = now_ms // MINUTE_MS
    first = last - MINUTES_KEPT + 1
    kept = {row.number: row for row in rows if row.number >= first}
    begun = {_name(pause) for row in kept.values() for pause in row.pauses}
    open_ = {_name(pause): pause for pause in standing if _name(pause) not in begun}
    found = []
    for number in range(first, last + 1):
        row = kept.get(number) or Minute(number)
        held, next_ms = _paused(open_, row), (number + 1) * MINUTE_MS
        bindings = [_shown(pause, number, now_ms) for pause in held.values()] + row.bindings
        if bindings and number > last - count:
            found.append(Minute(number, bindings, row.further))
        open_ = {name: one for name, one in held.items() if _end_ms(one, next_ms + 1) > next_ms}
    return found


def _name(pause: Pause) -> tuple[str | None, str]:
    return pause.dimension, pause.cause


def _end_ms(pause: Pause, without_ms: int) -> int:
    return without_ms if pause.until_ms is None else pause.until_ms


def _paused(
    before: Mapping[tuple[str | None, str], Pause], row: Minute
) -> dict[tuple[str | None, str], Pause]:
    """All pauses in a minute, given those that hold when it begins."""
    held = dict(before)
    if row.configured_ms is not None:
        held = {name: _cut(pause, row.configured_ms) for name, pause in held.items()}
    for pause in row.pauses:
        since_ms = held.get(_name(pause), pause).since_ms
        held[_name(pause)] = pause._replace(since_ms=since_ms)
    return held


def _cut(pause: Pause, at_ms: int) -> Pause:
    return pause._replace(until_ms=min(at_ms, _end_ms(pause, at_ms)))


def _shown(pause: Pause, number: int, now_ms: int) -> Binding:
    """A pause as it looks in one minute."""
    begin_ms = number * MINUTE_MS
    end_ms = min(begin_ms + MINUTE_MS - 1, now_ms)
    return Binding(
        "domain",
        pause.dimension,
        pause.cause,
        since_ms=max(pause.since_ms, begin_ms),
        until_ms=min(end_ms, _end_ms(pause, end_ms)),
    )


def _by_minute(seen: Seen) -> bytes | None:
    event = seen.event
    if isinstance(event, e.ConfigActivated) and event.domain is None:
        return None
    name = event.name if isinstance(event, e.ConfigActivated) else event.domain
    return join(name, seen.time_ms // MINUTE_MS % MINUTES_KEPT)


def _apply(row: Minute, seen: Seen) -> Minute:
    number = seen.time_ms // MINUTE_MS
    if row.number != number:
        row = Minute(number)
    match event := seen.event:
        case e.OperationDeferred():
            _sample(row, event, seen.time_ms)
        case e.CooldownSet():
            _pause(row, Pause(None, event.cause, seen.time_ms, event.until_ms))
        case e.ConfigActivated(domain=DomainConfig() as domain):
            _configure(row, domain, seen.time_ms)
        case _:
            raise AssertionError(f"Expected an event that holds work back, got {event}")
    return row


def _sample(row: Minute, event: e.OperationDeferred, now_ms: int) -> None:
    what = event.level, event.dimension, event.held_by
    for one in row.bindings:
        if (one.level, one.dimension, one.held_by) == what:
            binding = one
            break
    else:
        if len(row.bindings) == BINDINGS_MAX:
            row.further += 1
            return
        binding = Binding(*what, since_ms=now_ms, until_ms=now_ms)
        row.bindings.append(binding)
    binding.until_ms = now_ms
    binding.samples += 1
    if event.tenant not in binding.tenants and len(binding.tenants) < TENANTS_MAX:
        binding.tenants.append(event.tenant)


def _pause(row: Minute, pause: Pause) -> None:
    """It begins, or goes on for longer."""
    for place, one in enumerate(row.pauses):
        if _name(one) == _name(pause):
            row.pauses[place] = pause._replace(since_ms=one.since_ms)
            return
    row.pauses.append(pause)
    del row.pauses[:-PAUSES_MAX]


def _configure(row: Minute, domain: DomainConfig, now_ms: int) -> None:
    """Whatever paused the domain ends, but for limits of zero, which begin."""
    if row.configured_ms is None:
        row.configured_ms = now_ms
    row.pauses = [_cut(pause, now_ms) for pause in row.pauses]
    for one in zero_limits(domain):
        _pause(row, Pause(one.name, LIMIT_ZERO, now_ms, None))


BOUND = Projection(
    name="bound",
    number=20,
    version=1,
    row=Minute,
    wants=(e.OperationDeferred, e.CooldownSet, e.ConfigActivated),
    key=_by_minute,
    initial=Minute,
    apply=_apply,
)
