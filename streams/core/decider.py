"""START HERE. Inputs come in, `decide` says what follows, events go out, `evolve` remembers.

`step` makes one entry: each input is decided on the state that the one before left, then due
timers, then one bounded dispatch pass. Replay calls `evolve` alone, so that recovery visibly runs
no decision. Writing an event is applying it: nothing else changes the state.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, assert_never

import msgspec

from schemas import events as e
from schemas import inputs as i
from schemas.ids import CellId, MemberId, OperationId
from schemas.journal import CAUSE_DISPATCH, CAUSE_TIME
from schemas.topics import INPUT_TOPICS
from schemas.units import Millis

from . import (
    admission,
    cancellation,
    checkpoints,
    configuration,
    dispatch,
    leases,
    membership,
    parking,
    reconciliation,
    results,
    retries,
    settlement,
    starts,
    unknowns,
    usage,
)
from .evolution import evolve
from .limits import DETAIL_CHARS_MAX
from .outcomes import Taken, Unreadable
from .state import State
from .timers import Kind, Timer

CORE_VERSION = 5
"""Raised with every change that makes the same inputs give other events or rows."""


class Decided(msgspec.Struct, frozen=True, gc=False):
    """One event and what caused it, as `EntryEvent.cause` has it."""

    cause: int
    event: e.Event


class Acted(NamedTuple):
    """What an entry did beside its inputs; recorded only by what followed from it."""

    timers: bool = True
    """False for an entry that must not let time act yet (journal.md section 2)."""
    silence_ms: Millis = Millis(0)
    """How long the scheduler was silent before it; no lease pays for that."""


def as_recorded(decided: Iterable[Decided]) -> Acted:
    """How an entry acted that has these events.

    Timers acted if and only if it says so: one that is due always has something to say, and an
    owner that may not let time act yet says nothing of it.
    """
    timed = [one.event for one in decided if one.cause == CAUSE_TIME]
    silences = [event.by_ms for event in timed if isinstance(event, e.LeasesExtended)]
    return Acted(len(timed) > len(silences), Millis(sum(silences)))


def step(state: State, taken: Sequence[Taken], acted: Acted) -> list[Decided]:
    """All events of one entry, already folded; `State.begin` came before.

    Args:
        state: changed by every event, in order.
        taken: inputs in the order taken; a cause is an index into it.
        acted: whether time may act, and the silence before it.
    """
    decided: list[Decided] = []
    if acted.silence_ms and state.lives:
        extended = e.LeasesExtended(cell=state.cell.cell, by_ms=acted.silence_ms)
        _fold(state, decided, CAUSE_TIME, [extended])
    for ordinal, one in enumerate(taken):
        _fold(state, decided, ordinal, decide(state, one))
    if acted.timers:
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


def _decide(state: State, asked: i.Input) -> Sequence[e.Event] | Unreadable:  # noqa: C901, PLR0912 - one arm each
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
            return results.result(state, asked)
        case i.JoinRequested():
            return membership.join(state, asked)
        case i.HeartbeatReported():
            return leases.heartbeat(state, asked)
        case i.LeaveAnnounced():
            return membership.leave(state, asked)
        case i.ConfigProposed():
            return configuration.propose(state, asked)
        case i.ClaimRequested():
            return leases.claim(state, asked)
        case i.CheckpointReported():
            return checkpoints.checkpoint(state, asked)
        case i.UsageReported():
            return usage.report(state, asked)
        case i.OutcomeEvidence():
            return reconciliation.evidence(state, asked)
        case i.ReconcileRequested():
            return reconciliation.reconcile(state, asked)
        case i.RetryRequested():
            return retries.retry(state, asked)
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
        case Kind.LEASE:
            return leases.due(state, timer.subject)
        case Kind.HOLD:
            return unknowns.hold_due(state, timer.subject)
        case Kind.RETRY:
            return retries.backoff_due(state, OperationId(timer.subject))
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
            if isinstance(found[0], e.GrantIssued):
                _fold(state, decided, CAUSE_DISPATCH, starts.at_once(state, found[0]))
            room -= len(found)


def _fold(state: State, decided: list[Decided], cause: int, events: Sequence[e.Event]) -> None:
    for event in events:
        evolve(state, event)
        decided.append(Decided(cause, event))
