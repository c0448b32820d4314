"""The figures of a finished play, from its topics and from the provider's own record."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from evenhand.dev.judge import Limits
from evenhand.dev.story import Span, Story
from schemas.ids import OperationId

_NANOS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One line of the provider's record, as far as it is used here."""

    arrived_ns: int
    """On the provider's own clock."""
    operation: str
    tokens: int
    service_ms: int
    refused: bool = False

    @classmethod
    def read(cls, line: Mapping[str, Any]) -> "Call":
        """The call of a line of the record."""
        return cls(
            arrived_ns=line["arrived_ns"],
            operation=line["operation"],
            tokens=line["tokens"],
            service_ms=line["service_ms"],
            refused=bool(line["over"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantFigures:
    """One tenant; `fifo_` figures are those of the same inputs under one common queue."""

    weight: int
    share: float
    entitled: float
    wait_ms_p50: int
    wait_ms_p95: int
    fifo_wait_ms_p50: int
    fifo_wait_ms_p95: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Overshoot:
    """By the provider's record: calls that arrived above a limit, and the most tokens above it."""

    calls: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """`out/demo/summary.json`: exactly these names."""

    submissions: int
    admitted: int
    rejected: int
    expired: int
    settled: int
    lost: int
    """Admitted and not ended."""
    doubled: int
    """Calls beyond the first that the provider executed for an operation, or that no accepted start
    allowed, and settlements beyond the first of an attempt."""
    overshoot: Overshoot
    first_grant_after_kill_ms: int | None
    """From the last entry of the killed owner; None if no owner was replaced."""
    budget_used: float
    backlogged_ms: int
    tenants: dict[str, TenantFigures]
    audit: list[str]

    @property
    def is_clean(self) -> bool:
        """Whether nothing was lost, doubled or above a limit, and the audit found nothing."""
        over = self.overshoot.calls or self.overshoot.tokens
        return not (self.lost or self.doubled or self.audit or over)

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def summarize(
    story: Story,
    *,
    submissions: int,
    verdict: Mapping[str, Any],
    calls: Sequence[Call],
    limits: Limits,
    fifo_waits_ms: Mapping[str, Sequence[int]],
    audit: Sequence[str],
) -> Summary:
    """All figures of a play that has ended.

    Args:
        story: folded from the journal.
        submissions: records on the submissions topic.
        verdict: the provider's, as it wrote it.
        calls: the provider's record.
        limits: what the budget domain was configured with.
        fifo_waits_ms: waits of the same submissions under one common queue, by tenant.
        audit: sentences about what must not be.
    """
    unasked = [
        f"the provider was called for {call.operation} without an accepted start"
        for call in calls
        if _id(call) not in story.started_ms
    ]
    counts = story.counts
    return Summary(
        submissions=submissions,
        admitted=counts["OperationAdmitted"],
        rejected=counts["OperationRejected"],
        expired=counts["OperationExpired"],
        settled=counts["ReservationSettled"],
        lost=len(story.open),
        doubled=_calls_too_many(story, calls) + story.settled_twice,
        overshoot=Overshoot(
            calls=int(verdict["overshoot_calls"]), tokens=int(verdict["overshoot_tokens"])
        ),
        first_grant_after_kill_ms=max(
            (span.last_ms - span.first_ms for span in story.takeovers), default=None
        ),
        budget_used=round(max(used(story, calls, limits).values()), 4),
        backlogged_ms=story.backlogged_ms,
        tenants=_tenants(story, fifo_waits_ms),
        audit=[*audit, *unasked],
    )


def used(story: Story, calls: Sequence[Call], limits: Limits) -> dict[str, float]:
    """How full each dimension was on average while every tenant was backlogged.

    The windows are the provider's: each call fills requests and tokens from its arrival for one
    window, and a slot for its service. Never above 1 without overshoot. The two clocks are laid
    over each other where a call followed its accepted start most quickly.
    """
    behind_ms = [
        call.arrived_ns / _NANOS - story.started_ms[_id(call)]
        for call in calls
        if _id(call) in story.started_ms
    ]
    if not behind_ms or not story.backlogged_ms:
        return dict.fromkeys(("requests", "tokens", "slots"), 0.0)
    shift_ms = min(behind_ms)
    requests = tokens = slots = 0.0
    for call in calls:
        at_ms = call.arrived_ns / _NANOS - shift_ms
        in_window_ms = _overlap(story.backlogged, at_ms, at_ms + limits.window_ms)
        requests += in_window_ms
        tokens += call.tokens * in_window_ms
        slots += _overlap(story.backlogged, at_ms, at_ms + call.service_ms)
    return {
        "requests": requests / (limits.requests * story.backlogged_ms),
        "tokens": tokens / (limits.tokens * story.backlogged_ms),
        "slots": slots / (limits.slots * story.backlogged_ms),
    }


def _calls_too_many(story: Story, calls: Sequence[Call]) -> int:
    made = Counter(_id(call) for call in calls)
    executed = Counter(_id(call) for call in calls if not call.refused)
    return sum(
        max(executed[operation] - 1, number - max(1, story.starts[operation]), 0)
        for operation, number in made.items()
    )


def _id(call: Call) -> OperationId:
    return OperationId(bytes.fromhex(call.operation))


def _overlap(spans: Sequence[Span], first_ms: float, last_ms: float) -> float:
    return sum(
        max(0.0, min(last_ms, span.last_ms) - max(first_ms, span.first_ms)) for span in spans
    )


def _tenants(story: Story, fifo: Mapping[str, Sequence[int]]) -> dict[str, TenantFigures]:
    weights = sum(tenant.weight for tenant in story.tenants.values())
    cost = sum(tenant.backlogged_cost_ns for tenant in story.tenants.values())
    return {
        name: TenantFigures(
            weight=tenant.weight,
            share=round(tenant.backlogged_cost_ns / cost, 4) if cost else 0.0,
            entitled=round(tenant.weight / weights, 4),
            wait_ms_p50=_percentile(tenant.waits_ms, 50),
            wait_ms_p95=_percentile(tenant.waits_ms, 95),
            fifo_wait_ms_p50=_percentile(fifo.get(name, ()), 50),
            fifo_wait_ms_p95=_percentile(fifo.get(name, ()), 95),
        )
        for name, tenant in story.tenants.items()
    }


def _percentile(waits_ms: Sequence[int], percent: int) -> int:
    if len(waits_ms) < 2:  # noqa: PLR2004 - a quantile needs two points
        return next(iter(waits_ms), 0)
    return round(statistics.quantiles(waits_ms, n=100, method="inclusive")[percent - 1])
