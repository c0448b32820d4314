"""One dimension of one budget: what counts in it now, and when each charge leaves.

A provider counts a call when it arrives, and nobody but the provider knows when that was. A charge
therefore counts from the grant until its latest possible arrival has left the provider's window
(`exits`). A bucket goes on counting it then, until it is refilled. Concurrency counts until the
call is known to have ended.

A window with a pace lets a burst through at once and the rest at its own rate, or a greedy tenant
would use it up in pulses that nobody else gets into. What a call takes it takes of the pace too,
at its grant; what is refunded or returned goes back to it, for the pace measures what the provider
gets. It is tested before the call is added, so that a head larger than the burst passes, and then
the window owes. None of this is a matter of overshoot: that the exits prevent alone.
"""

from heapq import heappop, heappush

import msgspec

from schemas.inputs import DimensionConfig
from schemas.units import NANOS_PER_MILLI, Millis

from . import pace
from .due import Due
from .operations import Charge
from .tables import Overlay, Table, pack


class WindowRow(msgspec.Struct, array_like=True, gc=False):
    """Everything that counts now: held, started, and not yet left."""

    used: int = 0
    drained_ns: int = 0
    """When what it took will have drained at its own rate (`pace`), in the window's own time.

    Of a window: what was granted, for its pace. Of a bucket: what has arrived, to be refilled.
    """
    limit_before: int = 0
    """That of a paused bucket."""


class Window:
    """The charges of one dimension at one level; `used` never counts less than the provider may.

    `scope` is `domain`, or `tenant:` and the tenant's name; its first word is the level.
    """

    def __init__(
        self,
        rows: Overlay,
        scope: str,
        domain: str,
        config: DimensionConfig,
        due: "Due[Window]",
    ) -> None:
        self.scope = scope
        self.level, _, self.tenant = scope.partition(":")
        self._rows = rows
        self._key = pack(scope, domain, config.name)
        self._row: WindowRow = rows.get(Table.WINDOW, self._key) or WindowRow()
        self._buckets: dict[tuple[bool, Millis], int] = {}
        """(aged, exit) -> amount; aged charges have had their takeover term."""
        self._exits: list[tuple[Millis, bool]] = []
        self._due = due
        self.watched_ms: Millis | None = None
        self._debt = 0
        """Of a bucket: what has arrived and was not refilled at the last look."""
        self._set(config)
        self.look_again()

    def configure(self, config: DimensionConfig, now_ms: Millis) -> None:
        """Limit and pace are these from here on; now is window time.

        Another rate begins with an empty pace, but a bucket still has to refill what it had.
        """
        row, before = self._row, self._rate
        debt = before.left(row.drained_ns, now_ms) if self._is_bucket else 0
        if self._is_bucket and not config.limit:
            row.limit_before = before.limit
            self._put()
        self._set(config)
        if row.drained_ns and self._rate != before:
            drained_ns = self._rate.drained_ns(0, debt, now_ms=now_ms)
            row.drained_ns = drained_ns if debt else 0
            self._put()
        self.look_again()

    def _set(self, config: DimensionConfig) -> None:
        self.config = config
        self._is_bucket = config.kind == "bucket"
        self._burst_ns = pace.burst_ns(config)
        self._rate = pace.rate(config, before=self._row.limit_before)

    def look_again(self) -> None:
        """Limit, pace or the time of the windows were changed."""
        self._pace()
        self._look(self._due.now_ms)
        self._due.watch(self, self.due_ms)

    def _look(self, now_ms: Millis) -> None:
        if self._is_bucket:
            self._debt = self._rate.left(self._row.drained_ns, now_ms)

    def _pace(self) -> None:
        self.opens_ms = Millis(0)  # from when its pace lets a call through
        if self._burst_ns is not None:
            self.opens_ms = pace.opens_ms(self._row.drained_ns, self._burst_ns)
        self._is_shut = self.opens_ms > self._due.now_ms

    @property
    def used(self) -> int:
        """What counts now, in the dimension's unit."""
        return self._row.used + self._debt

    @property
    def free(self) -> int:
        """What a new charge may take; negative when a limit was lowered below use."""
        return self.config.limit - self._row.used - self._debt

    @property
    def leaving(self) -> int:
        """The part of `used` that goes by itself."""
        return sum(self._buckets.values()) + self._debt

    @property
    def next_exit_ms(self) -> Millis | None:
        """The earliest instant at which something leaves, in the window's own time."""
        exits = self._exits
        while exits and (exits[0][1], exits[0][0]) not in self._buckets:
            heappop(exits)  # its charges have moved
        return exits[0][0] if exits else None

    @property
    def due_ms(self) -> Millis | None:
        """When time alone changes it next, in the window's own time."""
        instants = [self.next_exit_ms]
        if self._debt:
            instants.append(self._rate.falls_ms(self._row.drained_ns, self._debt - self._rate.step))
        if self._is_shut:
            instants.append(self.opens_ms)
        return min((instant for instant in instants if instant is not None), default=None)

    def fits_at(self, amount: int) -> Millis | None:
        """The earliest exit after which `amount` is free; None if no exit brings that by itself."""
        if self._is_bucket:
            return self._refilled_at(amount)
        missing = amount - self.free
        for (_, exit_at), leaving in sorted(self._buckets.items(), key=lambda item: item[0][1]):
            missing -= leaving
            if missing <= 0:
                return exit_at
        return None

    def _refilled_at(self, amount: int) -> Millis | None:
        room, drained_ns = self.config.limit - amount - self._row.used, self._row.drained_ns
        at_ms, step = self._due.now_ms, self._rate.step
        exits = sorted((exit_at, leaving) for (_, exit_at), leaving in self._buckets.items())
        for exit_at, leaving in (*exits, (None, 0)):
            if room >= 0:
                falls_ms = max(at_ms, self._rate.falls_ms(drained_ns, room // step * step))
                if exit_at is None or falls_ms < exit_at:
                    return falls_ms
            if exit_at is not None:
                drained_ns = self._rate.drained_ns(drained_ns, leaving, now_ms=exit_at)
                at_ms, room = exit_at, room + leaving
        return None

    def load_bucket(self, *, aged: bool, exit_at: Millis, amount: int) -> None:
        """Remember a bucket that the store has, at opening."""
        self._buckets[aged, exit_at] = amount
        heappush(self._exits, (exit_at, aged))
        self._due.watch(self, exit_at)

    def add(self, amount: int) -> None:
        """Count an amount from now on, or less of it again; without an exit."""
        self._row.used += amount
        self._put()

    def _put(self) -> None:
        self._rows.put(Table.WINDOW, self._key, self._row)

    def charge(self, amount: int, now_ms: Millis) -> None:
        """Count an amount, or less of it again, and let the pace know; now is window time."""
        row = self._row
        if amount and self._burst_ns is not None:
            row.drained_ns = self._rate.drained_ns(row.drained_ns, amount, now_ms=now_ms)
            self._pace()
            if self._is_shut:
                self._due.watch(self, self.opens_ms)
        row.used += amount
        self._rows.put(Table.WINDOW, self._key, row)

    def _drain(self, amount: int, now_ms: Millis) -> None:
        row = self._row
        row.drained_ns = self._rate.drained_ns(row.drained_ns, amount, now_ms=now_ms)

    def set_exit(self, amount: int, exit_at: Millis, *, aged: bool = False) -> None:
        """Let an amount that counts already leave at `exit_at`."""
        if amount == 0:
            return
        key = (aged, exit_at)
        if key not in self._buckets:
            heappush(self._exits, (exit_at, aged))
            self._due.watch(self, exit_at)
        self._put_bucket(key, self._buckets.get(key, 0) + amount)

    def unset_exit(self, charge: Charge, *, epoch: int, term_ms: Millis) -> bool:
        """Take a charge out of its bucket, so that it counts without an exit again.

        Returns: False if it has left the window already; then nothing changes.
        """
        if charge.exit_ms is None:
            return True
        key = _bucket(charge, charge.exit_ms, epoch, term_ms)
        if self._has_left(charge, key):
            return False
        self.set_exit(-charge.amount, key[1], aged=key[0])
        return True

    def correct(
        self, charge: Charge, change: int, *, now_ms: Millis, epoch: int, term_ms: Millis
    ) -> None:
        """Count more or less for a charge that has an exit, unless it has left already.

        What has arrived in a bucket is refilled for all alike: an overdraft still adds to that, a
        refund comes too late to be told from what others have to refill.
        """
        assert charge.exit_ms is not None, "Expected a charge with an exit"
        key = _bucket(charge, charge.exit_ms, epoch, term_ms)
        if not self._has_left(charge, key):
            self.set_exit(change, key[1], aged=key[0])
            self.charge(change, now_ms)
        elif self._is_bucket and change > 0:
            self._drain(change, now_ms)
            self._look(now_ms)
            self._put()
            self._due.watch(self, self.due_ms)

    def leave(self, now_ms: Millis) -> bool:
        """Drop what has left by `now_ms`.

        Returns: whether anything became free, or the pace lets a call through since.
        """
        opened, before = self._is_shut and self.opens_ms <= now_ms, self.used
        self._due.now_ms, self._is_shut = now_ms, self.opens_ms > now_ms
        while self._exits and self._exits[0][0] <= now_ms:
            exit_at, aged = heappop(self._exits)
            amount = self._buckets.get((aged, exit_at))
            if amount is not None:
                self._put_bucket((aged, exit_at), 0)
                if self._is_bucket:
                    self._drain(amount, exit_at)
                self.add(-amount)
        self._look(now_ms)
        self._due.watch(self, self.due_ms)
        return opened or self.used < before

    def age(self, term_ms: Millis) -> None:
        """A takeover: every charge that has not had its term yet leaves that much later.

        And a bucket is refilled that much later, since each owner may read another time.
        """
        self._move(aged=False, by_ms=term_ms)
        self._refill_later(term_ms)

    def age_again(self, by_ms: Millis) -> None:
        """The term itself has changed, so the exits that it has moved move by the difference."""
        self._move(aged=True, by_ms=by_ms)
        self._refill_later(max(Millis(0), by_ms))

    def _refill_later(self, by_ms: Millis) -> None:
        if self._is_bucket and self._row.drained_ns:
            self._row.drained_ns = self._row.drained_ns + by_ms * NANOS_PER_MILLI
            self._put()

    def _move(self, *, aged: bool, by_ms: Millis) -> None:
        found = [(at, amount) for (was, at), amount in sorted(self._buckets.items()) if was is aged]
        for exit_at, _ in found:
            self._put_bucket((aged, exit_at), 0)
        for exit_at, amount in found:
            self.set_exit(amount, Millis(exit_at + by_ms), aged=True)

    def _has_left(self, charge: Charge, key: tuple[bool, Millis]) -> bool:
        """A charge is in its bucket until it leaves; one of nothing has none, so time tells."""
        return key not in self._buckets if charge.amount else key[1] <= self._due.now_ms

    def _put_bucket(self, key: tuple[bool, Millis], amount: int) -> None:
        aged, exit_at = key
        row_key = self._key + int(aged).to_bytes(8, "big") + exit_at.to_bytes(8, "big")
        if amount:
            self._buckets[key] = amount
            self._rows.put(Table.BUCKET, row_key, amount)
        else:
            del self._buckets[key]
            self._rows.delete(Table.BUCKET, row_key)


def _bucket(charge: Charge, exit_at: Millis, epoch: int, term_ms: Millis) -> tuple[bool, Millis]:
    """Where the charge is now: a takeover since it got its exit has moved it once."""
    aged = charge.authority_epoch < epoch
    return aged, Millis(exit_at + term_ms) if aged else exit_at
