"""What the journal says has happened to each operation and reservation, believed and not judged.

The checks read the book as it was before an event; `folds` writes into it after they have spoken.
"""

from collections import Counter
from typing import Any

from msgspec.structs import replace

from schemas import events as e
from schemas.ids import MemberEpoch, MemberId, OperationId

from .records import NOBODY, UNKNOWN, Charged, Key, Life, Operation, Refused, Reservation, key_of


class Book:
    """Operations by id, reservations while they are open, and totals of both."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.shift_ms = 0
        """Lease time is entry time less all steps of time and all silences of the scheduler."""
        self.operations: dict[OperationId, Operation] = {}
        self.refused: dict[OperationId, Refused] = {}
        self.open: dict[Key, Reservation] = {}
        self.doubtful: dict[Key, Reservation] = {}
        """Closed ones of which nobody knows the outcome, as long as it matters."""
        self.held: dict[Life, dict[Key, Reservation]] = {}
        """What takes a place of a member: granted or running, and not unknown."""
        self.touched: dict[Key, Reservation] = {}
        """Reservations that ended or closed in this entry."""
        self.closed: Counter[str] = Counter()
        self.forgotten: Counter[str] = Counter()
        """Terminal operations that the owner no longer remembers."""

    @property
    def lease_now_ms(self) -> int:
        """Now, in lease time."""
        return self.now_ms - self.shift_ms

    def find(self, word: Any) -> Reservation | None:
        """The attempt that an event or input is about, while it holds something or is unknown."""
        key = key_of(word)
        return self.open.get(key) or self.doubtful.get(key)

    def newest(self, word: Any) -> Operation | None:
        """The operation, if the event or input is about its newest attempt."""
        operation = self.operations.get(word.operation)
        if operation is None:
            return None
        named = (word.incarnation, word.epoch)
        return operation if named == (operation.incarnation, operation.epoch) else None

    # -- which operations there are ---------------------------------------------------------------

    def admitted(self, event: e.OperationAdmitted) -> None:
        """A new incarnation waits; a turn is counted at its run."""
        self.forget(event)
        self.operations[event.operation] = Operation(
            incarnation=event.incarnation,
            sequence=event.sequence,
            queue=(event.tenant, event.lane, event.pool, event.domain),
            member=event.member,
            user=event.user,
            reserved=Charged(event.prompt_tokens, event.output_tokens_max, 0),
            deadline_ms=event.deadline_ms,
            digest=event.payload_digest,
            effect=event.effect,
            runtime_ms=event.runtime_ms,
            turns_max=event.turns_max,
        )
        run = None if event.parent is None else self.operations.get(event.parent)
        if run is not None:
            run.turns += 1

    def rejected(self, event: e.OperationRejected) -> None:
        """A permanent refusal binds its key."""
        if event.binds_key and event.payload_digest:
            self.forget(event)
            self.refused[event.operation] = Refused(event.payload_digest, self.now_ms)

    def forget(
        self, event: e.OperationForgotten | e.OperationAdmitted | e.OperationRejected
    ) -> None:
        """The guard horizon has passed; an earlier incarnation is known no more."""
        operation = self.operations.pop(event.operation, None)
        if operation is not None:
            self.forgotten[operation.state] += 1
        self.refused.pop(event.operation, None)

    # -- what several folds share -----------------------------------------------------------------

    def step_time(self, step_ms: int) -> None:
        """Entry time was stepped forward: what was measured in it before moves with it."""
        if not step_ms:
            return
        self.shift_ms += step_ms
        for reservation in (*self.open.values(), *self.doubtful.values()):
            reservation.claim_by_ms += step_ms
            reservation.latest_ms += step_ms
            if reservation.accepted_ms is not None:
                reservation.accepted_ms += step_ms
            if reservation.hold_until_ms is not None:
                reservation.hold_until_ms += step_ms

    def end(self, key: Key, how: str) -> None:
        """The grant or the attempt ended, and how; its reservation must be closed for that."""
        reservation = self.open.get(key) or self.touched.get(key)
        if reservation is not None:
            reservation.ended = how
            self.touched[key] = reservation
            self.leave_place(key, reservation)

    def take_place(self, key: Key, reservation: Reservation) -> None:
        """It takes a place of the member that it names."""
        self.held.setdefault(reservation.life, {})[key] = reservation

    def hand_over(self, reservation: Reservation, member: MemberId, life: MemberEpoch) -> None:
        """Who claims the grant of an open pool has it from then on."""
        if reservation.grant.member == NOBODY:
            key = key_of(reservation.grant)
            self.leave_place(key, reservation)
            reservation.grant = replace(reservation.grant, member=member, member_epoch=life)
            self.take_place(key, reservation)

    def leave_place(self, key: Key, reservation: Reservation) -> None:
        """It takes no place of its member any more."""
        held = self.held.get(reservation.life, {})
        held.pop(key, None)
        if not held:
            self.held.pop(reservation.life, None)

    def move(self, operation_id: OperationId, state: str) -> None:
        """The operation is in this state from now on."""
        operation = self.operations.get(operation_id)
        if operation is None:
            return
        if operation.state == UNKNOWN:
            self.doubtful.pop(Key(operation_id, operation.incarnation, operation.epoch), None)
        operation.state = state
        operation.not_before_ms = None
        operation.ended_ms = self.now_ms
