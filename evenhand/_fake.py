"""The rules of the double: a small cell in memory, decided under one lock."""

from collections import deque
from queue import SimpleQueue
from threading import RLock
from typing import Any, Final

from evenhand._attempt import Names, names
from evenhand._fake_ends import OVER, Evidence, after_checkpoint, after_evidence, after_result
from evenhand._fake_guards import refusal, rejected
from evenhand._fake_rows import Bounds, Inbox, Member, Row, clock_ms, grant
from evenhand._intent import operation_of
from evenhand._outcome import Outcome
from evenhand._words import bodies, codes, digest, events, ids, inputs, units
from evenhand.errors import EvenhandError, IdempotencyMismatch

_STARTED: Final = {bodies.State.STARTED, bodies.State.UNKNOWN}
_HAS_A_PLACE: Final = {bodies.State.GRANTED, bodies.State.STARTED}
_HAS_A_SLOT: Final = {*_HAS_A_PLACE, bodies.State.UNKNOWN}


class FakeCell:
    """Takes words, tells members, and knows every operation."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._rows: dict[ids.OperationId, Row] = {}
        self._order: deque[ids.OperationId] = deque()
        self._members: dict[ids.MemberId, Member] = {}
        self._inboxes: dict[ids.MemberId, Inbox] = {}
        self._lock = RLock()

    def inbox(self, member: ids.MemberId) -> Inbox:
        """Where the member hears; the same over all its lives."""
        with self._lock:
            return self._inboxes.setdefault(member, SimpleQueue())

    def row(self, operation: ids.OperationId) -> Row | None:
        """What is known of an operation."""
        return self._rows.get(operation)

    def submit(self, word: inputs.OperationSubmitted) -> Row:
        """The operation of a submission, new or known; raises what refuses it."""
        with self._lock:
            row = self._submit(word)
            self._dispatch()
            return row

    def take(self, word: inputs.Input) -> None:  # noqa: C901 - one arm a word
        """Decide one word, and grant what can be granted then."""
        with self._lock:
            match word:
                case inputs.OperationSubmitted():
                    self._tell_submitter(word)
                case inputs.CancellationRequested():
                    self._cancel(word.operation)
                case inputs.JoinRequested():
                    self._join(word)
                case inputs.HeartbeatReported():
                    self._beat(word)
                case inputs.LeaveAnnounced():
                    self._leave(word)
                case inputs.StartRequested():
                    self._start(word)
                case inputs.CheckpointReported():
                    self._checkpoint(word)
                case inputs.ResultReported():
                    self._end(word)
                case _ if isinstance(word, Evidence):
                    self._reconcile(word)
                case inputs.RetryRequested():
                    self._retry(word.operation)
                case _:
                    pass  # send reports and configuration change nothing here
            self._return_slots()
            self._dispatch()

    def _submit(self, word: inputs.OperationSubmitted) -> Row:
        """The operation of a submission, new or known; raises what refuses it."""
        operation = operation_of(word)
        known = self._rows.get(operation)
        if known is not None:
            if digest.payload_digest(known.word) != digest.payload_digest(word):
                raise IdempotencyMismatch(operation=operation.hex())
            return known
        waiting = [self._rows[one] for one in self._order]
        refused = refusal(word, self._rows, waiting, self._bounds)
        if refused is not None:
            raise refused("Expected otherwise by the fake cell", operation=operation.hex())
        self._rows[operation] = Row(word)
        if word.parent is not None:
            self._rows[word.parent].turns += 1
        self._order.append(operation)
        return self._rows[operation]

    def _tell_submitter(self, word: inputs.OperationSubmitted) -> None:
        operation, member = operation_of(word), word.member
        known = self._rows.get(operation)
        about: Any = None
        try:
            self._submit(word)
        except IdempotencyMismatch:
            about = events.SubmissionConflicted(
                tenant=word.tenant, operation=operation, member=member
            )
        except EvenhandError as error:
            about = rejected(word, operation, error)
        if about is None and known is not None:
            about = events.DuplicateObserved(
                tenant=word.tenant, operation=operation, state=known.state, member=member
            )
        if about is not None and member is not None:
            self._inboxes[member].put(about)

    def _cancel(self, operation: ids.OperationId) -> None:
        row = self._rows.get(operation)
        if row is None or row.state in OVER:
            return
        row.cancel_requested = True
        if row.state is bodies.State.UNKNOWN:
            return
        if row.state is bodies.State.STARTED and row.grant is not None:
            self._tell(events.CancelSignalled(**names(row.grant), cause="cancelled"))
            return
        if row.grant is not None:
            self._tell(events.GrantRevoked(**names(row.grant), reason="cancelled"))
        self._close(operation, row, bodies.State.CANCELLED)
        member = row.word.member
        if member is not None:
            word = row.word
            self._inboxes[member].put(
                events.OperationCancelled(
                    tenant=word.tenant, operation=operation, reason="", member=member
                )
            )

    def _join(self, word: inputs.JoinRequested) -> None:
        life: Any = {"member": word.member, "member_epoch": word.member_epoch}
        if word.pool not in (*self._bounds.pools, ids.SELF_POOL):
            self._inboxes[word.member].put(events.JoinRefused(**life, code=codes.Code.UNKNOWN_POOL))
            return
        inbox = self._inboxes[word.member]
        self._members[word.member] = Member(word.member_epoch, word.pool, word.places, inbox)
        inbox.put(
            events.MemberSlotGranted(
                **life, pool=word.pool, places=word.places, join_by_ms=units.Millis(0)
            )
        )

    def _beat(self, word: inputs.HeartbeatReported) -> None:
        member = self._members.get(word.member)
        if member is None or member.epoch != word.member_epoch:
            return
        member.offers = word.sent_ms is not None and member.pool in self._bounds.standing
        if word.sent_ms is not None and member.offers:
            self._tell(
                events.PlacesOffered(
                    member=word.member,
                    member_epoch=word.member_epoch,
                    sent_ms=word.sent_ms,
                    time_ms=clock_ms(),
                    authority_epoch=1,
                )
            )

    def _leave(self, word: inputs.LeaveAnnounced) -> None:
        member = self._members.get(word.member)
        if member is None or member.epoch != word.member_epoch:
            return
        member.draining = True
        for operation, row in self._rows.items():
            held = row.grant
            if row.state is bodies.State.GRANTED and held and held.member == word.member:
                self._tell(events.GrantRevoked(**names(held), reason="member_left"))
                self._wait_again(operation, row)

    def _return_slots(self) -> None:
        for name, member in list(self._members.items()):
            if member.draining and not self._places_taken(name):
                del self._members[name]
                member.inbox.put(
                    events.MemberSlotReturned(member=name, member_epoch=member.epoch, reason="left")
                )

    def _start(self, word: inputs.StartRequested) -> None:
        row = self._rows.get(word.operation)
        named = names(word)
        if row is None or row.state is not bodies.State.GRANTED or row.epoch != word.epoch:
            self._tell(events.StartRefused(**named, code=codes.Code.START_REFUSED))
            return
        self._accept(row, named)

    def _accept(self, row: Row, named: Names) -> None:
        row.state = bodies.State.STARTED
        self._tell(
            events.StartAccepted(
                **named,
                send_within_ms=units.Millis(self._bounds.send_within_ms),
                latest_arrival_ms=units.Millis(0),
            )
        )

    def _checkpoint(self, word: inputs.CheckpointReported) -> None:
        answer = after_checkpoint(self._rows[word.operation], word)
        if answer is not None:
            self._tell(answer)

    def _end(self, word: inputs.ResultReported) -> None:
        row = self._rows.get(word.operation)
        if row is None or row.state not in _STARTED or row.epoch != word.epoch:
            return
        row.result = word
        state = after_result(row, Outcome(word.outcome), self._bounds.attempts_max)
        self._move(word.operation, row, state)

    def expire_lease(self, operation: ids.OperationId) -> None:
        """The lease of a started attempt ends: its outcome is unknown, and its member is told."""
        with self._lock:
            row = self._rows[operation]
            assert row.grant is not None, "Expected a started attempt"
            assert row.state is bodies.State.STARTED, "Expected a started attempt"
            self._tell(events.LeaseExpired(**names(row.grant), started=True))
            state = after_result(row, Outcome.UNKNOWN, self._bounds.attempts_max)
            self._move(operation, row, state)
            self._dispatch()

    def reconcile(self, operation: ids.OperationId, verdict: str) -> None:
        """An operator says what became of an unknown outcome."""
        tenant = self._rows[operation].word.tenant
        self.take(
            inputs.ReconcileRequested(
                tenant=tenant, operation=operation, verdict=verdict, author="me", reason="a test"
            )
        )

    def _reconcile(self, word: Evidence) -> None:
        row = self._rows.get(word.operation)
        if row is None or row.state is not bodies.State.UNKNOWN:
            return
        if word.epoch in (None, row.epoch):
            self._move(word.operation, row, after_evidence(row, word))

    def _retry(self, operation: ids.OperationId) -> None:
        row = self._rows.get(operation)
        if row is not None and row.state in (bodies.State.DEAD, bodies.State.UNKNOWN_CLOSED):
            row.failures, row.throttles, row.code = 0, 0, None
            self._wait_again(operation, row)

    def _move(self, operation: ids.OperationId, row: Row, state: bodies.State) -> None:
        if state is bodies.State.WAITING:
            self._wait_again(operation, row)
        else:
            self._close(operation, row, state)

    def _wait_again(self, operation: ids.OperationId, row: Row) -> None:
        row.state, row.grant = bodies.State.WAITING, None
        self._order.appendleft(operation)

    def _close(self, operation: ids.OperationId, row: Row, state: bodies.State) -> None:
        row.state = state
        if operation in self._order:
            self._order.remove(operation)

    def _dispatch(self) -> None:
        for operation in list(self._order):
            row = self._rows[operation]
            member = self._free(row.word)
            if member is None or (row.takes_a_slot and self._slots_held() >= self._bounds.slots):
                continue
            self._order.remove(operation)
            row.epoch += 1
            row.state = bodies.State.GRANTED
            row.grant = grant(operation, row, member, self._members[member], self._bounds)
            self._tell(row.grant)
            if row.grant.started_ms is not None:
                self._accept(row, names(row.grant))

    def _slots_held(self) -> int:
        return sum(row.takes_a_slot and row.state in _HAS_A_SLOT for row in self._rows.values())

    def _free(self, word: inputs.OperationSubmitted) -> ids.MemberId | None:
        for name, member in self._members.items():
            mine = word.member in (None, name) and member.pool == word.pool
            if mine and not member.draining and self._places_taken(name) < member.places:
                return name
        return None

    def _places_taken(self, name: ids.MemberId) -> int:
        running = [row.grant for row in self._rows.values() if row.state in _HAS_A_PLACE]
        return sum(held is not None and held.member == name for held in running)

    def _tell(self, event: Any) -> None:
        self._inboxes[event.member].put(event)
