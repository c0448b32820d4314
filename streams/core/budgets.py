"""Whether a call may run now: every level and dimension looked at together, then taken together."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import msgspec

from schemas.inputs import DimensionConfig, Prices
from schemas.units import NANOS_PER_MILLI, Micros, Millis, Nanos, Requests, Slots, Tokens

from .exits import exit_ms
from .limits import COST_NS_MAX
from .operations import AttemptRow, Charge
from .outcomes import Binds, Fits, NeverFits, Paced
from .prices import money_of
from .windows import Window


class Used(msgspec.Struct, frozen=True, gc=False):
    """What a call used beside its request and its slot."""

    input_tokens: Tokens
    output_tokens: Tokens
    money: Micros

    @property
    def tokens(self) -> Tokens:
        """Input and output."""
        return Tokens(self.input_tokens + self.output_tokens)


def priced(prices: Prices | None, input_tokens: Tokens, output_tokens: Tokens) -> Used:
    """So many tokens, with what they and their call cost."""
    return Used(input_tokens, output_tokens, money_of(prices, input_tokens, output_tokens))


class Cost(msgspec.Struct, frozen=True, gc=False):
    """What one call takes of each unit (R49)."""

    requests: Requests
    tokens: Tokens
    """Input and output."""
    slots: Slots
    runs: int = 0
    input_tokens: Tokens = Tokens(0)
    output_tokens: Tokens = Tokens(0)
    money: Micros = Micros(0)

    def amount(self, dimension: DimensionConfig) -> int:
        """The part that counts in this dimension."""
        amount: int = getattr(self, dimension.unit)  # a unit has the name of its field
        return amount


UNLIMITED = 2**63
"""More than any call takes."""

RUN_COST = Cost(Requests(0), Tokens(0), Slots(0), 1)
"""A run holds no provider budget while it waits for its turns (R74)."""


class Reserving(Protocol):
    """What is known of an operation wherever its cost is asked for."""

    @property
    def prompt_tokens(self) -> Tokens:
        """The estimate of its input."""

    @property
    def output_tokens_max(self) -> Tokens:
        """The ceiling of its output."""

    @property
    def is_run(self) -> bool:
        """Whether it is a tool loop."""


def call_cost(prompt: Tokens, output: Tokens, prices: Prices | None) -> Cost:
    """One request, one slot, the estimated prompt, this call's output ceiling, and their price."""
    money = money_of(prices, prompt, output)
    return Cost(Requests(1), Tokens(prompt + output), Slots(1), 0, prompt, output, money)


def cost_after(attempt: AttemptRow, used: Used | None) -> Cost:
    """What the attempt takes in the end; unknown use, None, costs what was reserved."""
    if used is None:
        used = priced(attempt.prices, attempt.prompt_tokens, attempt.output_tokens_max)
    slots = attempt.slots  # a run is what holds none
    return Cost(
        attempt.requests,
        used.tokens,
        slots,
        1 - slots,
        used.input_tokens,
        used.output_tokens,
        used.money,
    )


def cost_of(one: Reserving, *, prices: Prices | None) -> Cost:
    """What an operation takes while it runs."""
    return RUN_COST if one.is_run else call_cost(one.prompt_tokens, one.output_tokens_max, prices)


def never_fits(windows: Iterable[Window], cost: Cost) -> NeverFits | None:
    """The first dimension whose whole limit is too small; a limit of zero is a pause."""
    for window in windows:
        if 0 < window.config.limit < cost.amount(window.config):
            return NeverFits(window.level, window.config.name)
    return None


def check(
    windows: Iterable[Window],
    cost: Cost,
    *,
    now_ms: Millis,
    keep: Callable[[Window], int] | None = None,
) -> Fits | Binds | Paced:
    """Look at all; take nothing. The first dimension without room binds (R40, R56).

    A dimension of which the call takes nothing never binds, however overdrawn it is.

    Args:
        windows: of every level.
        cost: what the call takes.
        now_ms: window time.
        keep: what must stay free beside the cost.

    Returns: `Paced` if there is room everywhere, and only a pace holds the call back.
    """
    paced: Paced | None = None
    for window in windows:
        amount = cost.amount(window.config)
        if not amount:
            continue
        free = window.free if keep is None else window.free - keep(window)
        if free < amount:
            return Binds(window.level, window.config.name)
        if window.opens_ms > now_ms and (paced is None or window.opens_ms > paced.until_ms):
            paced = Paced(window.opens_ms, window.level, window.config.name)
    return paced or Fits()


def room(
    windows: Iterable[Window], *, now_ms: Millis, keep: Callable[[Window], int] | None = None
) -> tuple[int, ...]:
    """The most that `check` may let through, in the order of `Cost`; 0 while a pace holds back."""
    most = dict.fromkeys(Cost.__struct_fields__, UNLIMITED)
    for window in windows:
        free = window.free if keep is None else window.free - keep(window)
        if free < 0 or window.opens_ms > now_ms:
            free = 0
        unit = window.config.unit
        most[unit] = min(most[unit], free)
    return tuple(most.values())


def earliest_ms(windows: Sequence[Window], cost: Cost, *, now_ms: Millis) -> Millis | None:
    """The first instant, in window time, at which exits and paces alone let the call through.

    Returns: 0 if it is now; None when no exit brings it: a slot or an unstarted grant must end
    first.
    """
    latest = Millis(0)
    for window in windows:
        amount = cost.amount(window.config)
        if amount and window.opens_ms > max(now_ms, latest):
            latest = window.opens_ms
        if 0 < amount > window.free:
            fits_at = window.fits_at(amount)
            if fits_at is None:
                return None
            latest = max(latest, fits_at)
    return latest


def cost_ns(dimensions: Iterable[DimensionConfig], cost: Cost, *, hold_ms: Millis) -> Nanos:
    """How long the call alone would occupy its scarcest dimension, in nanoseconds.

    max over dimensions of ceil(v * W / L), at least 1; concurrency: ceil(slots * hold / K)
    (scheduling.md section 1), at most `COST_NS_MAX`. A paused dimension, L = 0, says nothing.
    """
    longest = 1
    for dimension in dimensions:
        longest = max(longest, _occupies_ns(dimension, cost.amount(dimension), hold_ms))
    return Nanos(min(longest, COST_NS_MAX))


def _occupies_ns(dimension: DimensionConfig, amount: int, hold_ms: Millis) -> int:
    if dimension.limit <= 0:
        return 1
    span_ms = hold_ms if dimension.window_ms is None else dimension.window_ms
    return -(-amount * span_ms * NANOS_PER_MILLI // dimension.limit)


def settled_cost_ns(
    dimensions: Iterable[DimensionConfig], reserved: Cost, actual: Cost, *, hold_ms: Millis
) -> Nanos:
    """The cost of a call that ended: what each dimension charges for it in the end."""
    longest = 1
    for one in dimensions:
        amount = settled_amount(one, reserved.amount(one), actual.amount(one))
        longest = max(longest, _occupies_ns(one, amount, hold_ms))
    return Nanos(min(longest, COST_NS_MAX))


def settled_amount(dimension: DimensionConfig, reserved: int, actual: int) -> int:
    """What a dimension charges once use is known.

    Use above the reservation is an overdraft and counts everywhere (R54).
    """
    return max(reserved, actual) if dimension.amount == "reserved" else actual


# -- what the fold does with the windows; each mirrors the one before ---------------------------


def hold(windows: Iterable[Window], cost: Cost, *, now_ms: Millis) -> list[Charge]:
    """Take the whole cost everywhere; it counts without an exit until the call starts.

    Now is window time.
    """
    charges = []
    for window in windows:
        amount = cost.amount(window.config)
        window.charge(amount, now_ms)
        charges.append(Charge(window.level, window.config.name, amount))
    return charges


class Clocking(msgspec.Struct, frozen=True, gc=False):
    """What exits depend on beside the call: the step of entry time, and the takeover term."""

    now_ms: Millis
    """Window time: entry time less all time steps."""
    stepped_ms: Millis
    """Sum of all time steps; windows run in entry time less this, so a step moves all exits."""
    epoch: int
    term_ms: Millis


def set_arrival(
    held: Iterable[tuple[Charge, Window]],
    *,
    latest_ms: Millis,
    send_within_ms: Millis,
    clocking: Clocking,
) -> None:
    """The call arrives at `latest_ms` at last: each charge that counts at arrival gets its exit.

    Called again with an earlier instant it moves the exits, unless the charge has left already.
    """
    for charge, window in held:
        if window.config.kind == "concurrency" or window.config.instant == "completion":
            continue
        if not window.unset_exit(charge, epoch=clocking.epoch, term_ms=clocking.term_ms):
            continue
        aged = charge.exit_ms is not None and charge.authority_epoch < clocking.epoch
        exit_at = exit_ms(window.config, latest_ms=latest_ms, send_within_ms=send_within_ms)
        charge.exit_ms = Millis(exit_at - clocking.stepped_ms)
        if aged:  # accepted before a takeover: the report does not take its term away
            window.set_exit(charge.amount, Millis(charge.exit_ms + clocking.term_ms), aged=True)
        else:
            charge.authority_epoch = clocking.epoch
            window.set_exit(charge.amount, charge.exit_ms)


def give_back(held: Iterable[tuple[Charge, Window]], clocking: Clocking) -> None:
    """The reservation ends unused: everything returns (what has left already has returned)."""
    for charge, window in held:
        if window.unset_exit(charge, epoch=clocking.epoch, term_ms=clocking.term_ms):
            window.charge(-charge.amount, clocking.now_ms)


def settle(
    held: Iterable[tuple[Charge, Window]],
    actual: Cost,
    *,
    now_ms: Millis,
    send_within_ms: Millis,
    clocking: Clocking,
) -> None:
    """The call ended: slots return, the rest becomes what each dimension charges in the end.

    A dimension that counts at completion keeps its charge until `now` plus the window (R52).
    """
    for charge, window in held:
        config = window.config
        if config.kind == "concurrency":
            window.add(-charge.amount)
            continue
        amount = settled_amount(config, charge.amount, actual.amount(config))
        change = amount - charge.amount
        if charge.exit_ms is not None:
            if change:
                window.correct(
                    charge,
                    change,
                    now_ms=clocking.now_ms,
                    epoch=clocking.epoch,
                    term_ms=clocking.term_ms,
                )
            continue
        window.charge(change, clocking.now_ms)
        exit_at = exit_ms(config, latest_ms=now_ms, send_within_ms=send_within_ms)
        window.set_exit(amount, Millis(exit_at - clocking.stepped_ms))
