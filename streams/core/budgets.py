"""Whether a call may run now: every level and dimension looked at together, then taken together."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from schemas.units import Millis

from .costs import Cost, settled_amount
from .exits import exit_ms
from .operations import Charge
from .outcomes import Binds, Fits, NeverFits, Paced
from .windows import Window

UNLIMITED = 2**63
"""More than any call takes."""


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
    """What exits depend on beside the call: the step of entry time, and who sets them."""

    now_ms: Millis
    """Window time: entry time less all time steps."""
    stepped_ms: Millis
    """Sum of all time steps; windows run in entry time less this, so a step moves all exits."""
    epoch: int


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
        if not window.unset_exit(charge):
            continue
        if charge.exit_ms is None:  # else a takeover term stays, whatever a report says
            charge.authority_epoch = clocking.epoch
        exit_at = exit_ms(window.config, latest_ms=latest_ms, send_within_ms=send_within_ms)
        charge.exit_ms = Millis(exit_at - clocking.stepped_ms)
        window.set_exit(charge.amount, charge.exit_ms, charge.authority_epoch)


def give_back(held: Iterable[tuple[Charge, Window]], clocking: Clocking) -> None:
    """The reservation ends unused: everything returns (what has left already has returned)."""
    for charge, window in held:
        if window.unset_exit(charge):
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
                window.correct(charge, change, now_ms=clocking.now_ms)
            continue
        window.charge(change, clocking.now_ms)
        exit_at = exit_ms(config, latest_ms=now_ms, send_within_ms=send_within_ms)
        window.set_exit(amount, Millis(exit_at - clocking.stepped_ms))
