"""Which unknown outcomes a reconciler looks up next, without I/O.

OutcomeMarkedUnknown ─► asked after a second, then after twice as long each time
a decisive answer, or OutcomeReconciled by anybody, or OperatorActionNeeded ─► forgotten
LOOK_UPS_MAX answers without a decision ─► forgotten: the hold bound ends it
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from evenhand._outcome import REFERENCE_BYTES_MAX
from evenhand._started import AttemptKey
from evenhand._words import events, ids, inputs, units

FIRST_AFTER_S: Final = 1.0
"""What was sent last may still be on its way to the provider."""
AGAIN_AFTER_S_MAX: Final = 120.0
LOOK_UPS_MAX: Final = 12
"""A cell takes 16 pieces of evidence on one attempt; this spans its 15 minutes of hold."""
_STILL_OPEN: Final = "ended"
"""The verdict that gives the slot back and leaves the outcome unknown."""


class Verdict(StrEnum):
    """What a provider says about a call."""

    COMPLETED = "completed"
    FAILED = "failed"
    """It was executed, and failed for good."""
    NOT_EXECUTED = "not_executed"
    """It was never executed and never will be: only this makes unsafe work run again."""
    INCONCLUSIVE = "inconclusive"


class Confidence(StrEnum):
    """How sure a fact about a provider is."""

    PROVIDER_REPORTED = "provider_reported"
    LOCALLY_MEASURED = "locally_measured"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """One attempt whose outcome is not known."""

    operation: str
    """Id, in hex."""
    provider_key: str
    """The idempotency key that every attempt of the operation sent."""
    tenant: str
    domain: str
    incarnation: int
    attempt: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a look-up found.

    Raises:
        ValueError: the reference is longer than a cell keeps, or a figure is negative.
    """

    verdict: Verdict
    evidence: str
    """Names what was found, so that finding it twice is one; the provider's call id, say."""
    confidence: Confidence = Confidence.PROVIDER_REPORTED
    prompt_tokens: int | None = None
    """None means unknown: what was reserved is charged."""
    output_tokens: int | None = None
    result_ref: str | None = None
    """Where the result is."""
    detail: str | None = None
    """Short, never content."""

    def __post_init__(self) -> None:
        """Refuse here what the cell would."""
        if self.result_ref and len(self.result_ref.encode()) > REFERENCE_BYTES_MAX:
            raise ValueError(f"Expected a reference of at most {REFERENCE_BYTES_MAX} bytes")
        if min(self.prompt_tokens or 0, self.output_tokens or 0) < 0:
            raise ValueError("Expected token counts of 0 or more")


@dataclass(slots=True)
class _Case:
    unknown: Unknown
    look_ups: int = 0


class Reconciliation:
    """Unknown outcomes of some domains; not safe for threads."""

    def __init__(self, domains: frozenset[str], now_s: Callable[[], float]) -> None:
        """Nothing is known yet; `now_s` is a monotonic clock."""
        self._domains, self._now_s = domains, now_s
        self._cases: dict[AttemptKey, _Case] = {}
        self._due: list[tuple[float, AttemptKey]] = []

    def __len__(self) -> int:
        return len(self._cases)

    def heard(self, event: Any) -> None:
        """Take an event of topic `decisions`."""
        match event:
            case events.OutcomeMarkedUnknown() if event.domain in self._domains:
                key = (event.operation, event.epoch)
                self._cases[key] = _Case(_unknown(event))
                self._look_again(key, FIRST_AFTER_S)
            case events.OutcomeReconciled() if event.verdict != _STILL_OPEN:
                self._cases.pop((event.operation, event.epoch), None)
            case events.OperatorActionNeeded():
                self._cases.pop((event.operation, event.epoch), None)
            case _:
                pass

    def due(self, most: int) -> list[Unknown]:
        """What to look up now, at most so many; each must be answered by `looked_up`."""
        found: list[Unknown] = []
        while self._due and len(found) < most and self._due[0][0] <= self._now_s():
            _, key = heapq.heappop(self._due)
            if key in self._cases:
                found.append(self._cases[key].unknown)
        return found

    def looked_up(self, unknown: Unknown, found: Found | None) -> inputs.OutcomeEvidence | None:
        """What to tell the cell; None means that there is nothing to tell."""
        key = (ids.OperationId(bytes.fromhex(unknown.operation)), unknown.epoch)
        case = self._cases.get(key)
        if case is None:
            return None
        case.look_ups += 1
        decided = found is not None and found.verdict is not Verdict.INCONCLUSIVE
        if decided or case.look_ups >= LOOK_UPS_MAX:
            del self._cases[key]
        else:
            self._look_again(key, min(FIRST_AFTER_S * 2**case.look_ups, AGAIN_AFTER_S_MAX))
        return None if found is None else _evidence(unknown, found)

    def _look_again(self, key: AttemptKey, after_s: float) -> None:
        heapq.heappush(self._due, (self._now_s() + after_s, key))


def _unknown(event: events.OutcomeMarkedUnknown) -> Unknown:
    return Unknown(
        operation=event.operation.hex(),
        provider_key=ids.provider_key(event.operation, event.incarnation),
        tenant=event.tenant,
        domain=event.domain,
        incarnation=event.incarnation,
        attempt=event.attempt,
        epoch=event.epoch,
    )


def _evidence(unknown: Unknown, found: Found) -> inputs.OutcomeEvidence:
    return inputs.OutcomeEvidence(
        tenant=ids.TenantId(unknown.tenant),
        operation=ids.OperationId(bytes.fromhex(unknown.operation)),
        incarnation=unknown.incarnation,
        epoch=unknown.epoch,
        evidence=found.evidence,
        verdict=found.verdict,
        confidence=found.confidence,
        prompt_tokens=None if found.prompt_tokens is None else units.Tokens(found.prompt_tokens),
        output_tokens=None if found.output_tokens is None else units.Tokens(found.output_tokens),
        result_ref=found.result_ref,
        detail=found.detail,
    )
