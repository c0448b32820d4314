"""START HERE. Inputs come in, `decide` says what follows, events go out, `evolve` remembers.

`step` makes one entry: each input is decided on the state that the one before left, then due
timers, then one bounded dispatch pass. Replay calls `evolve` alone, so that recovery visibly runs
no decision. Writing an event is applying it: nothing else changes the state.
"""

from collections.abc import Sequence
from typing import NamedTuple, assert_never

from schemas import events as e
from schemas import inputs as i
from schemas.ids import CellId, MemberId, OperationId
from schemas.journal import CAUSE_DISPATCH, CAUSE_TIME
from schemas.topics import INPUT_TOPICS

from . import (
    admission,
    cancellation,
    configuration,
    dispatch,
    membership,
    parking,
    settlement,
    starts,
)
from .limits import DETAIL_CHARS_MAX
from .outcomes import Taken, Unreadable
from .state import State
from .timers import Kind, Timer

CORE_VERSION = 1
"""Raised with every change that makes the same inputs give other events or rows."""


class Decided(NamedTuple):
    """One event and what caused it, as `EntryEvent.cause` has it."""

    cause: int
    event: e.Event


def step(state: State, taken: Sequence[Taken], *, timers: bool) -> list[Decided]:
    """All events of one entry, already folded; `State.begin` came before.

    Args:
        state: changed by every event, in order.
        taken: inputs in the order taken; a cause is an index into it.
        timers: False for an entry that must not let time act yet (journal.md section 2).
    """
    decided: list[Decided] = []
    for ordinal, one in enumerate(taken):
        _fold(state, decided, ordinal, decide(state, one))
    if timers:
        room = state.bounds.timers_per_entry_max
        while room > 0 and (timer := state.timers.due(state.now_ms)) is not None:
            found = decide_due(state, timer)
            _fold(state, decided, CAUSE_TIME, found)
            room -= max(1, len(found))  # a timer that nothing follows from must not hold the owner
    _dispatch(state, decided)
    return decided


def decide(state: State, taken: Taken) -> Sequence[e.Event]:
    """What follows from one input; reads the state and changes nothing.

    Returns: complete before any of it is folded; empty when a repeat changes nothing.
    """
    found = taken.body if isinstance(taken.body, Unreadable) else _decide(state, taken.body)
    if not isinstance(found, Unreadable):
        return found
    source = taken.source
    return [
        e.InputQuarantined(
            topic=INPUT_TOPICS[source.topic],
            partition=source.partition,
            offset=source.offset,
            code=found.code,
            detail=found.detail[:DETAIL_CHARS_MAX],
        )
    ]


def _decide(state: State, asked: i.Input) -> Sequence[e.Event] | Unreadable:
    match asked:
        case i.OperationSubmitted():
            return admission.admit(state, asked)
        case i.CancellationRequested():
            return cancellation.cancel(state, asked)
        case i.StartRequested():
            return starts.start(state, asked)
        case i.SendReported():
            return starts.sent(state, asked)
        case i.ResultReported():
            return settlement.result(state, asked)
        case i.JoinRequested():
            return membership.join(state, asked)
        case i.HeartbeatReported():
            return membership.heartbeat(state, asked)
        case i.LeaveAnnounced():
            return membership.leave(state, asked)
        case i.ConfigProposed():
            return configuration.propose(state, asked)
        case _:
            assert_never(asked)


def decide_due(state: State, timer: Timer) -> Sequence[e.Event]:
    """What follows from an instant having come; never empty, or the timer would stay due."""
    match timer.kind:
        case Kind.DEADLINE:
            return settlement.deadline_due(state, OperationId(timer.subject))
        case Kind.CLAIM_BY:
            return settlement.claim_by_due(state, OperationId(timer.subject))
        case Kind.MEMBER:
            return membership.due(state, MemberId(timer.subject.decode()))
        case Kind.FORGET:
            return admission.forget_due(state, OperationId(timer.subject))
        case Kind.EARLY_CANCEL:
            return cancellation.forget_due(timer.subject)
        case _:
            assert_never(timer.kind)


def genesis(cell: CellId, topics: Sequence[i.TopicIdentity]) -> list[Decided]:
    """The events of a cell's first entry; they are folded like any others."""
    return [Decided(CAUSE_TIME, e.CellBegan(cell=cell, topics=tuple(topics)))]


def _dispatch(state: State, decided: list[Decided]) -> None:
    """One bounded pass over the dirty domains; a domain it completes is dirty no longer."""
    room = state.bounds.grants_per_entry_max
    for name in sorted(state.dirty):
        domain = state.config.domains[name]
        while room > 0:
            found = parking.review(state, domain) or dispatch.next_decision(state, domain)
            if not found:
                del state.dirty[name]
                break
            _fold(state, decided, CAUSE_DISPATCH, found)
            room -= len(found)


def _fold(state: State, decided: list[Decided], cause: int, events: Sequence[e.Event]) -> None:
    for event in events:
        evolve(state, event)
        decided.append(Decided(cause, event))


def evolve(state: State, event: e.Event) -> None:  # noqa: C901, PLR0912 - one arm an event
    """Remember one event; the only function that changes the state. Frequent events come first."""
    match event:
        case e.OperationAdmitted():
            admission.admitted(state, event)
        case e.GrantIssued():
            dispatch.granted(state, event)
        case e.LeaseClaimed():
            pass  # the lease is the attempt; it has no expiry of its own yet
        case e.StartAccepted():
            starts.accepted(state, event)
        case e.ResultRecorded():
            settlement.recorded(state, event)
        case e.ReservationSettled():
            settlement.settled(state, event)
        case e.SendObserved():
            starts.observed(state, event)
        case e.OperationRejected():
            admission.rejected(state, event)
        case e.OperationForgotten():
            admission.forgotten(state, event.operation)
        case e.OperationParked():
            parking.parked(state, event)
        case e.OperationUnparked():
            parking.unparked(state, event)
        case e.OperationDeferred():
            dispatch.deferred(state, event)
        case e.OperationExpired():
            dispatch.expired(state, event)
        case e.OperationCancelled():
            cancellation.cancelled(state, event)
        case e.CancelSignalled():
            cancellation.signalled(state, event)
        case e.CancellationRemembered():
            cancellation.remembered(state, event)
        case e.CancellationForgotten():
            cancellation.forgotten(state, event)
        case e.ReservationReleased() | e.ReservationExpired():
            settlement.returned(state, event)
        case e.GrantExpired() | e.GrantRevoked():
            settlement.grant_ended(state, event)
        case _:
            _evolve_rest(state, event)


_Rest = (
    membership.Lived
    | e.ConfigActivated
    | e.CellBegan
    | e.DuplicateObserved
    | e.SubmissionConflicted
    | e.StartRefused
    | e.ResultRefusedStale
    | e.JoinRefused
    | e.ConfigRefused
    | e.InputQuarantined
)


def _evolve_rest(state: State, event: _Rest) -> None:
    """Members, configuration, and what is only told."""
    match event:
        case (
            e.HeartbeatRecorded()
            | e.MemberSlotGranted()
            | e.MemberActivated()
            | e.MemberRestored()
            | e.MemberSuspected()
            | e.MemberDrainRequested()
            | e.MemberLost()
            | e.MemberSlotReturned()
        ):
            membership.fold(state, event)
        case e.ConfigActivated():
            configuration.activated(state, event)
        case e.CellBegan():
            configuration.began(state, event)
        case (
            e.DuplicateObserved()
            | e.SubmissionConflicted()
            | e.StartRefused()
            | e.ResultRefusedStale()
            | e.JoinRefused()
            | e.ConfigRefused()
            | e.InputQuarantined()
        ):
            pass  # told to whoever asked; the state stays as it is
        case _:
            assert_never(event)
