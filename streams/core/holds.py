"""Uncertain reservations of attempts that are not the newest: held until evidence or bound."""

import struct
from collections.abc import Iterator

import msgspec

from schemas.ids import OPERATION_ID_BYTES, OperationId

from .operations import AttemptRow
from .tables import Overlay, Table
from .timers import Kind, Timers


class HoldKey(msgspec.Struct, frozen=True, gc=False):
    """Names one attempt for ever: epochs begin anew with each incarnation of an operation id."""

    operation: OperationId
    incarnation: int
    epoch: int


def hold_key(key: HoldKey) -> bytes:
    """In rows and timers."""
    return key.operation + _NUMBERS.pack(key.incarnation, key.epoch)


def parse_hold(key: bytes) -> HoldKey:
    """The key of a row or timer."""
    operation = OperationId(key[:OPERATION_ID_BYTES])
    return HoldKey(operation, *_NUMBERS.unpack(key[OPERATION_ID_BYTES:]))


def key_of(operation: OperationId, attempt: AttemptRow) -> HoldKey:
    """The name of an attempt."""
    return HoldKey(operation, attempt.incarnation, attempt.epoch)


_NUMBERS = struct.Struct(">QQ")


class Holds:
    """Bounded by slots: each of them keeps at least one."""

    def __init__(self, rows: Overlay, timers: Timers) -> None:
        self._rows = rows
        self._timers = timers
        self._held: dict[HoldKey, AttemptRow] = {}

    def load(self) -> None:
        """Remember the stored ones, at opening."""
        self._held.update((parse_hold(key), row) for key, row in self._rows.load(Table.HOLD))

    def get(self, key: HoldKey) -> AttemptRow | None:
        """The uncertain attempt, if it is an older one."""
        return self._held.get(key)

    def all(self) -> Iterator[tuple[OperationId, AttemptRow]]:
        """Every one, with its operation."""
        for key, attempt in self._held.items():
            yield key.operation, attempt

    def keep(self, operation: OperationId, attempt: AttemptRow) -> None:
        """It is no longer the newest of its operation; or more is known about it."""
        key = key_of(operation, attempt)
        self._held[key] = attempt
        self._rows.put(Table.HOLD, hold_key(key), attempt)

    def drop(self, key: HoldKey) -> AttemptRow:
        """Its reservation is closed."""
        attempt = self._held.pop(key)
        self._rows.delete(Table.HOLD, hold_key(key))
        self.unwatch(key.operation, attempt)
        return attempt

    def watch(self, operation: OperationId, attempt: AttemptRow) -> None:
        """Time will have something to say about this attempt, the newest or not."""
        assert attempt.uncertain is not None, "Expected an uncertain attempt"
        key = hold_key(key_of(operation, attempt))
        self._timers.set(attempt.uncertain.due_ms, Kind.HOLD, key)

    def unwatch(self, operation: OperationId, attempt: AttemptRow) -> None:
        """Nothing is to be waited for any more."""
        assert attempt.uncertain is not None, "Expected an uncertain attempt"
        key = hold_key(key_of(operation, attempt))
        self._timers.unset(attempt.uncertain.due_ms, Kind.HOLD, key)
