"""What is known of an attempt while nobody knows how it ended, and the evidence that came in."""

from typing import NamedTuple

import msgspec

from schemas import events as e


class Evidence(NamedTuple):
    """One step of reconciliation."""

    at_ms: int
    source: str
    verdict: str
    confidence: str
    evidence: str | None = None
    """Names it."""
    author: str | None = None
    """The operator who said so."""
    reason: str | None = None


class Doubt(msgspec.Struct, array_like=True, kw_only=True):
    """Why the outcome of an attempt is unknown, since when, and what was found."""

    cause: str
    since_ms: int
    hold_until_ms: int
    """The reservation is forfeited then, if it is still held."""
    error: str | None = None
    evidence: list[Evidence] = []
    """Oldest first; bounded by the owner."""


def doubt_of(event: e.OutcomeMarkedUnknown, now_ms: int) -> Doubt:
    """The doubt that begins with the event."""
    return Doubt(
        cause=event.cause,
        since_ms=now_ms,
        hold_until_ms=event.hold_until_ms,
        error=event.error,
    )


def evidence_of(event: e.EvidenceRecorded | e.OutcomeReconciled, now_ms: int) -> Evidence:
    """What the event adds."""
    said = event if isinstance(event, e.OutcomeReconciled) else None
    return Evidence(
        at_ms=now_ms,
        source=event.source,
        verdict=event.verdict,
        confidence=event.confidence,
        evidence=event.evidence,
        author=None if said is None else said.author,
        reason=None if said is None else said.reason,
    )
