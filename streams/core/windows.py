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

from heapq import heapify, heappop, heappush

import msgspec

from schemas.inputs import DimensionConfig
from schemas.units import NANOS_PER_MILLI, Millis

from . import pace
from .due import Due
from .exits import Aging
from .operations import Charge
from .tables import Overlay, Table, pack

Bucket = tuple[int, Millis]
"""Charges that leave together: the epoch in which they got their exit, and that exit. By the exit
alone, one that has left could be taken for another that leaves there after a takeover term."""


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
        aging: Aging,
    ) -> None:
        self.scope = scope
        self.level, _, self.tenant = scope.partition(":")
        self._rows = rows
        self._key = pack(scope, domain, config.name)
        self._row: WindowRow = rows.get(Table.WINDOW, self._key) or WindowRow()
        self._buckets: dict[Bucket, int] = {}
        self._exits: list[tuple[Millis, Bucket]] = []
        """When each leaves, the takeover term included."""
        self._due, self._aging = due, aging
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
        while exits and exits[0][1] not in self._buckets:
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
        for exit_at, leaving in self._in_order():
            missing -= leaving
            if missing <= 0:
                return exit_at
        return None

    def _refilled_at(self, amount: int) -> Millis | None:
        room, drained_ns = self.config.limit - amount - self._row.used, self._row.drained_ns
        at_ms, step = self._due.now_ms, self._rate.step
        for exit_at, leaving in (*self._in_order(), (None, 0)):
            if room >= 0:
                falls_ms = max(at_ms, self._rate.falls_ms(drained_ns, room // step * step))
                if exit_at is None or falls_ms < exit_at:
                    return falls_ms
            if exit_at is not None:
                drained_ns = self._rate.drained_ns(drained_ns, leaving, now_ms=exit_at)
                at_ms, room = exit_at, room + leaving
        return None

    def _in_order(self) -> list[tuple[Millis, int]]:
        """When what leaves."""
        return sorted((self._aging.leaves_ms(*one), n) for one, n in self._buckets.items())

    def load_bucket(self, bucket: Bucket, amount: int) -> None:
        """Remember a bucket that the store has, at opening."""
        self._buckets[bucket] = amount
        self._expect(bucket)

    def _expect(self, bucket: Bucket) -> None:
        leaves_ms = self._aging.leaves_ms(*bucket)
        heappush(self._exits, (leaves_ms, bucket))
        self._due.watch(self, leaves_ms)

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

    def set_exit(self, amount: int, exit_at: Millis, epoch: int | None = None) -> None:
        """Let an amount that counts already leave at `exit_at`, and later after a takeover.

        Args:
            amount: may be negative, to let less leave.
            exit_at: as `exits.exit_ms` has it.
            epoch: in which it was first known; None: that of the owner in force.
        """
        if amount == 0:
            return
        bucket = (self._aging.epoch if epoch is None else epoch, exit_at)
        if bucket not in self._buckets:
            self._expect(bucket)
        self._put_bucket(bucket, self._buckets.get(bucket, 0) + amount)

    def unset_exit(self, charge: Charge) -> bool:
        """Take a charge out of its bucket, so that it counts without an exit again.

        Returns: False if it has left the window already; then nothing changes.
        """
        if charge.exit_ms is None:
            return True
        if self._has_left(charge, charge.exit_ms):
            return False
        self.set_exit(-charge.amount, charge.exit_ms, charge.authority_epoch)
        return True

    def correct(self, charge: Charge, change: int, *, now_ms: Millis) -> None:
        """Count more or less for a charge that has an exit, unless it has left already.

        What has arrived in a bucket is refilled for all alike: an overdraft still adds to that, a
        refund comes too late to be told from what others have to refill.
        """
        assert charge.exit_ms is not None, "Expected a charge with an exit"
        if not self._has_left(charge, charge.exit_ms):
            self.set_exit(change, charge.exit_ms, charge.authority_epoch)
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
            leaves_ms, bucket = heappop(self._exits)
            amount = self._buckets.get(bucket)
            if amount is not None:
                self._put_bucket(bucket, 0)
                if self._is_bucket:
                    self._drain(amount, leaves_ms)
                self.add(-amount)
        self._look(now_ms)
        self._due.watch(self, self.due_ms)
        return opened or self.used < before

    def age(self, by_ms: Millis) -> None:
        """A takeover, or another takeover term: what has lived over one leaves by so much later.

        And a bucket is refilled that much later, since each owner may read another time.
        """
        self._exits = [(self._aging.leaves_ms(*bucket), bucket) for bucket in self._buckets]
        heapify(self._exits)
        self._due.watch(self, self.next_exit_ms)
        if self._is_bucket and self._row.drained_ns and by_ms > 0:
            self._row.drained_ns = self._row.drained_ns + by_ms * NANOS_PER_MILLI
            self._put()

    def _has_left(self, charge: Charge, exit_at: Millis) -> bool:
        """A charge is in its bucket until it leaves; one of nothing has none, so time tells."""
        bucket = (charge.authority_epoch, exit_at)
        if charge.amount:
            return bucket not in self._buckets
        return self._aging.leaves_ms(*bucket) <= self._due.now_ms

    def _put_bucket(self, bucket: Bucket, amount: int) -> None:
        epoch, exit_at = bucket
        row_key = self._key + epoch.to_bytes(8, "big") + exit_at.to_bytes(8, "big")
        if amount:
            self._buckets[bucket] = amount
            self._rows.put(Table.BUCKET, row_key, amount)
        else:
            del self._buckets[bucket]
            self._rows.delete(Table.BUCKET, row_key)
