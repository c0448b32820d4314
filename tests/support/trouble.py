"""What handmade histories tell of attempts that do not simply end; each verb appends one entry."""

from typing import Any

from msgspec.structs import replace

from schemas.ids import OperationId
from schemas.journal import CAUSE_TIME
from tests.support.history import LEASE_MS, History
from tests.support.plants import started
from tests.support.words import e, i

HOLD_MS = 900_000
"""How long domain `d` holds an unknown outcome."""
BACKOFF_MS = 1_000
REFUSED = ("throttled", "quota_exhausted", "reauthentication_required")
"""Outcomes of a call that costs no tokens."""


def by_time(history: History, *events: Any) -> int:
    """Time alone is the cause."""
    return history.append([], [], events=[(CAUSE_TIME, event) for event in events])


def lease_name(history: History, operation: OperationId) -> Any:
    """The lease of its newest attempt."""
    return i.LeaseName(operation=operation, epoch=history.grants[operation].epoch)


def renew(history: History, *named: OperationId, **changes: Any) -> int:
    """Member `m` names these leases, and they are renewed."""
    about = {"member": "m", "member_epoch": "1"}
    leases = tuple(lease_name(history, one) for one in named)
    renewed = e.LeasesRenewed(**about, expires_ms=history.now_ms + 1 + LEASE_MS)
    return history.append(
        [i.HeartbeatReported(**about, leases=leases)],
        [e.HeartbeatRecorded(**about), replace(renewed, **changes)],
    )


def marking(history: History, operation: OperationId, cause: str, **changes: Any) -> Any:
    """The event that marks its outcome unknown."""
    until_ms = history.started_ms[operation] + HOLD_MS
    made = e.OutcomeMarkedUnknown(
        **history.named(operation), domain="d", cause=cause, hold_until_ms=until_ms
    )
    return replace(made, **changes)


def lapse(history: History, operation: OperationId, *, early_ms: int = 0) -> int:
    """Its lease ends without renewal after the start."""
    history.now_ms = history.started_ms[operation] + LEASE_MS - 1 - early_ms
    expired = e.LeaseExpired(**history.named(operation), started=True)
    return by_time(history, expired, marking(history, operation, "lease_expired"))


def doubt(history: History, operation: OperationId, *more: Any, **changes: Any) -> int:
    """Its holder says that it cannot tell."""
    asked = i.ResultReported(**history.named(operation), outcome="unknown")
    return history.append([asked], [marking(history, operation, "reported", **changes), *more])


def unknown(history: History, key: str = "a", **submission: Any) -> OperationId:
    """Submitted, granted, started, and of unknown outcome."""
    operation = history.submit(key, **submission)
    history.grant(operation)
    history.start(operation)
    doubt(history, operation)
    return operation


def reconciling(
    history: History, operation: OperationId, source: str, verdict: str, **changes: Any
) -> Any:
    """The event that says what became of it."""
    made = e.OutcomeReconciled(
        **history.named(operation), source=source, verdict=verdict, confidence="unknown"
    )
    return replace(made, **changes)


def looked_up(history: History, operation: OperationId, verdict: str, **changes: Any) -> Any:
    """What a reconciler tells."""
    grant = history.grants[operation]
    made = i.OutcomeEvidence(
        tenant="t",
        operation=operation,
        incarnation=grant.incarnation,
        epoch=grant.epoch,
        evidence="call 7",
        verdict=verdict,
        confidence="provider_reported",
    )
    return replace(made, **changes)


def noted(history: History, operation: OperationId, evidence: str) -> int:
    """A look-up that decides nothing is recorded."""
    event = e.EvidenceRecorded(
        **history.named(operation),
        source="provider_lookup",
        evidence=evidence,
        verdict="inconclusive",
        confidence="provider_reported",
    )
    return history.append(
        [looked_up(history, operation, "inconclusive", evidence=evidence)], [event]
    )


def never_ran(history: History, operation: OperationId) -> int:
    """A look-up shows that nothing was called: the reservation is released."""
    released = e.ReservationReleased(**history.named(operation), reason="not_executed")
    found = reconciling(history, operation, "provider_lookup", "not_executed")
    return history.append([looked_up(history, operation, "not_executed")], [found, released])


def forfeiting(history: History, operation: OperationId, **changes: Any) -> Any:
    """The event that gives up what an unknown outcome holds."""
    grant = history.grants[operation]
    made = e.ReservationForfeited(
        **history.named(operation),
        domain="d",
        tokens_reserved=grant.tokens,
        held_ms=history.held_ms(operation),
        cost_ns=grant.cost_ns,
    )
    return replace(made, **changes)


def closing(history: History, operation: OperationId, reason: str = "hold_bound") -> Any:
    """The event that calls for an operator."""
    grant = history.grants[operation]
    return e.OperatorActionNeeded(
        tenant="t",
        operation=operation,
        incarnation=grant.incarnation,
        epoch=grant.epoch,
        reason=reason,
    )


def give_up(history: History, operation: OperationId, *, early_ms: int = 0) -> int:
    """The bound of its hold has passed."""
    history.now_ms = history.started_ms[operation] + HOLD_MS - 1 - early_ms
    return by_time(history, forfeiting(history, operation), closing(history, operation))


def scheduling(history: History, operation: OperationId, cause: str, **changes: Any) -> Any:
    """The event that promises another attempt, after the first backoff."""
    grant = history.grants[operation]
    made = e.RetryScheduled(
        tenant="t",
        operation=operation,
        incarnation=grant.incarnation,
        attempt=grant.attempt,
        epoch=grant.epoch,
        cause=cause,
        not_before_ms=history.now_ms + 1 + BACKOFF_MS,
    )
    return replace(made, **changes)


def fails(history: History, operation: OperationId, outcome: str, *more: Any) -> int:
    """A result that does not end the operation, and what follows from it."""
    asked = i.ResultReported(**history.named(operation), outcome=outcome)
    used = {"tokens_actual": 0} if outcome in REFUSED else {}
    recorded = history.recording(operation, outcome)
    settled = history.settling(operation, **used)
    return history.append([asked], [recorded, settled, *more])


def failed(history: History, key: str = "a") -> OperationId:
    """One attempt failed, and another one follows."""
    operation = started(history, key)
    fails(history, operation, "retryable", scheduling(history, operation, "retryable"))
    return operation


def back(history: History, operation: OperationId, after_ms: int = BACKOFF_MS) -> int:
    """Its backoff is over."""
    history.wait(after_ms - 1)
    return by_time(history, e.OperationUnparked(tenant="t", operation=operation))


def checkpoint(history: History, operation: OperationId, number: int, **changes: Any) -> int:
    """Progress is reported and recorded."""
    told = {"number": number, "state_ref": f"s{number}"}
    asked = i.CheckpointReported(**history.named(operation), **told)
    made = e.CheckpointRecorded(**history.named(operation), **told)
    return history.append([asked], [replace(made, **changes)])
