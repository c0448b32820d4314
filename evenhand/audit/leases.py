"""Leases: claimed by the holder, renewed by the heartbeats of one life, ended by time alone (C2).

A lease lasts as long as its pool says, in lease time: entry time less steps of time and silences of
the scheduler, which can be no longer than the time between two entries. Nobody else's heartbeat
renews it, none that does not name it, and none that comes at its end or later; until then nothing
ends it but what becomes of the attempt (R66, R88). What has run for too long is asked to end, not
before its time.
"""

from collections.abc import Callable
from typing import Any

from schemas import events as e
from schemas import inputs as i
from schemas.entry import Entry
from schemas.ids import SELF_POOL, PoolId
from schemas.journal import CAUSE_TIME

from .book import Book
from .config import Config
from .cursor import Cursor
from .records import Key, Reservation, key_of

CHECK = "leases"
RUNTIME_LIMIT = "runtime-limit"


class Leases:
    """Looks at what gives, renews, extends and ends authority over an attempt."""

    def __init__(self, cursor: Cursor, config: Config, book: Book) -> None:
        self._cursor = cursor
        self._config = config
        self._book = book
        self._has_begun = False
        """A lease with an end was seen: the journal is not from before leases."""
        self._elapsed_ms = 0
        """From the entry before to this one, less a step of time."""

    def handlers(self) -> dict[type, Callable[[Any], None]]:
        """What to call for which event."""
        return {
            e.LeaseClaimed: self._claimed,
            e.StartAccepted: self._started,
            e.LeasesRenewed: self._renewed,
            e.RenewRefused: self._refused,
            e.LeasesExtended: self._extended,
            e.LeaseExpired: self._expired,
            e.CancelSignalled: self._signalled,
        }

    def begin(self, last: Entry, entry: Entry) -> None:
        """The next entry: a silence lies between it and the last one."""
        self._elapsed_ms = entry.time_ms - last.time_ms - (entry.time_step_ms or 0)

    def _claimed(self, event: e.LeaseClaimed) -> None:
        if event.expires_ms is None:
            if self._has_begun:
                self._found("Expected an end of the lease")
            return
        self._has_begun = True
        reservation = self._book.open.get(key_of(event))
        if reservation is not None:
            self._lasts(event.expires_ms, reservation.grant.pool)

    def _lasts(self, expires_ms: int, pool: PoolId) -> None:
        config = self._config.pools.get(pool)
        own = pool == SELF_POOL or config is None
        length_ms = self._config.cell.self_lease_ms if own or config is None else config.lease_ms
        until_ms = self._cursor.time_ms + length_ms
        if expires_ms != until_ms:
            self._found(f"Expected a lease until {until_ms}, but it lasts until {expires_ms}")

    def _started(self, event: e.StartAccepted) -> None:
        reservation = self._book.open.get(key_of(event))
        if reservation is not None and self._is_over(reservation):
            self._found(f"Expected no start of epoch {event.epoch}, whose lease has ended")

    def _renewed(self, event: e.LeasesRenewed) -> None:
        word = self._heartbeat(event)
        if word is None:
            return
        held = self._book.held.get((event.member, event.member_epoch), {})
        leases = {
            (key.operation, key.epoch): one for key, one in held.items() if one.lease_ms is not None
        }
        named = {(one.operation, one.epoch) for one in word.leases}
        unnamed = {(one.operation, one.epoch) for one in event.unnamed}
        renewed = leases.keys() - unnamed
        if not renewed:
            self._found(f"Expected a lease of {event.member} to be renewed, but none is")
        for one in sorted(renewed):
            if one not in named:
                self._found(f"Expected no renewal of {_about(*one)}, which was not named")
            if self._is_over(leases[one]):
                self._found(f"Expected no renewal of {_about(*one)}, which has ended")
        for one in sorted(unnamed):
            if one not in leases:
                self._found(f"Expected {_about(*one)} to be held by {event.member}")
            elif one in named and not self._is_over(leases[one]):
                self._found(f"Expected a renewal of {_about(*one)}, which was named")
        if leases:
            self._lasts(event.expires_ms, next(iter(leases.values())).grant.pool)

    def _refused(self, event: e.RenewRefused) -> None:
        word = self._heartbeat(event)
        if word is None:
            return
        if (event.operation, event.epoch) not in {(o.operation, o.epoch) for o in word.leases}:
            self._found(f"Expected {_about(event.operation, event.epoch)} to be named")
        held = self._book.held.get((event.member, event.member_epoch), {})
        for key, reservation in held.items():
            if (key.operation, key.epoch) != (event.operation, event.epoch):
                continue
            if reservation.lease_ms is not None and not self._is_over(reservation):
                self._found(f"Expected no refusal of {_about(key.operation, key.epoch)}")

    def _heartbeat(self, event: Any) -> i.HeartbeatReported | None:
        """The heartbeat behind the event, which must be of the life that it names."""
        if self._cursor.is_gone:
            return None
        word = self._cursor.word
        life = (event.member, event.member_epoch)
        if isinstance(word, i.HeartbeatReported) and (word.member, word.member_epoch) == life:
            return word
        name = type(event).__name__
        self._found(f"Expected {name} to follow a heartbeat of that life of {event.member}")
        return None

    def _extended(self, event: e.LeasesExtended) -> None:
        self._by_time(event)
        if not 0 < event.by_ms <= self._elapsed_ms:
            silence = f"a silence of 1 to {self._elapsed_ms} ms"
            self._found(f"Expected {silence}, but leases are extended by {event.by_ms}")

    def _expired(self, event: e.LeaseExpired) -> None:
        self._by_time(event)
        reservation = self._book.open.get(key_of(event))
        if reservation is None or reservation.lease_ms is None:
            self._found(f"Expected a lease of epoch {event.epoch} before its end")
            return
        if not self._is_over(reservation):
            self._found(f"Expected a lease until {self._end_of(reservation)}, not its end here")
        if event.started is not (reservation.accepted_ms is not None):
            self._found(f"Expected started to be {not event.started}")

    def _signalled(self, event: e.CancelSignalled) -> None:
        reservation = self._book.open.get(key_of(event))
        if event.cause != RUNTIME_LIMIT or self._cursor.cause != CAUSE_TIME or reservation is None:
            return
        until_ms = reservation.runs_until_ms
        if until_ms is not None and self._book.lease_now_ms < until_ms:
            until_ms += self._book.shift_ms
            self._found(f"Expected {_about(*_named(key_of(event)))} to run until {until_ms}")

    def _by_time(self, event: Any) -> None:
        if self._cursor.cause != CAUSE_TIME:
            self._found(f"Expected time alone to be the cause of {type(event).__name__}")

    def _is_over(self, reservation: Reservation) -> bool:
        return reservation.lease_ms is not None and reservation.lease_ms <= self._book.lease_now_ms

    def _end_of(self, reservation: Reservation) -> int:
        return (reservation.lease_ms or 0) + self._book.shift_ms

    def _found(self, detail: str) -> None:
        self._cursor.found(CHECK, detail)


def _named(key: Key) -> tuple[bytes, int]:
    return key.operation, key.epoch


def _about(operation: bytes, epoch: int) -> str:
    return f"the lease of {operation.hex()}, epoch {epoch},"
