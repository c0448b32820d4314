"""What was used beside the charge of a closed reservation: ledgers follow it, and nothing is freed.

It comes with a usage report, or with a late result or evidence after time has proved the end of the
call. What was used beyond the charge counts from now on; what was not used comes back to nobody,
since its capacity may have been given away since (R55). A result that is refused as stale corrects
nothing: its member may report what it used.
"""

import hashlib
from collections.abc import Sequence

from schemas.events import Event, UsageCorrected
from schemas.inputs import DimensionConfig
from schemas.units import Micros, Millis, Requests, Slots, Tokens

from . import lanes
from .costs import Cost, Used, call_cost, cost_ns
from .exits import exit_ms
from .limits import EVIDENCE_DIGEST_BYTES, EVIDENCE_MAX
from .operations import Named, OperationRow
from .state import State


def correction(
    name: Named, row: OperationRow, used: Used | None, *, evidence: str = ""
) -> Sequence[Event]:
    """The event that says what the attempt charged last really used; nothing if that is known.

    Args:
        name: that attempt.
        row: its operation.
        used: None if nobody told.
        evidence: the report that tells it; empty for a result, or evidence beside it.
    """
    charged = row.charged_input, row.charged_output
    if used is None or (used.input_tokens, used.output_tokens) == charged:
        return []
    return [
        UsageCorrected(
            **name,
            domain=row.domain,
            evidence=evidence,
            tokens_before=row.charged_tokens,
            tokens_actual=used.tokens,
            input_tokens_before=row.charged_input,
            input_tokens_actual=used.input_tokens,
            money_before_micros=row.more.charged_money,
            money_actual_micros=used.money,
        )
    ]


def digest(evidence: str) -> bytes:
    """Tells a piece of evidence that comes again."""
    return hashlib.sha256(evidence.encode()).digest()[:EVIDENCE_DIGEST_BYTES]


# -- folds --------------------------------------------------------------------------------------


def heeded(row: OperationRow, evidence: str) -> None:
    """A usage report was heeded, so that it says nothing when it comes again."""
    earlier = [one for one in row.more.usage if one != digest(evidence)]
    row.extend().usage = [*earlier, digest(evidence)][-EVIDENCE_MAX:]


def corrected(state: State, event: UsageCorrected) -> None:
    """Ledger and counter follow the figure; windows only take what was used beyond their charge."""
    row = state.operation(event.operation)
    assert row is not None
    prices = row.more.prices
    before = _usage(event.input_tokens_before, event.tokens_before, event.money_before_micros)
    actual = _usage(event.input_tokens_actual, event.tokens_actual, event.money_actual_micros)
    reserved = call_cost(row.prompt_tokens, row.output_tokens_max, prices)
    row.charge(actual.input_tokens, actual.output_tokens, actual.money, prices)
    if event.evidence:
        heeded(row, event.evidence)
    state.put(event.operation, row)
    domain = state.config.domains[event.domain]
    for window in domain.levels(event.tenant):
        extra = _beyond(window.config, before, actual, reserved)
        if extra > 0:
            exit_at = exit_ms(
                window.config,
                latest_ms=state.now_ms,
                send_within_ms=domain.config.send_within_ms,
            )
            window.charge(extra, state.window_now_ms)
            window.set_exit(extra, Millis(exit_at - state.cell.stepped_ms))
    lane, counter = state.counted(row)
    costs = [cost_ns(domain.dimensions(), one, hold_ms=Millis(0)) for one in (before, actual)]
    delta_ns = costs[1] - costs[0]
    # No grant's lift is known any more: as from before the last one.
    lane.correct(counter, delta_ns, weight=counter.row.weight, lift=-1)
    lanes.settle(domain, lane, delta_ns, None)


def _usage(input_tokens: Tokens, tokens: Tokens, money: Micros) -> Cost:
    """What was used alone, without request and slot."""
    output_tokens = Tokens(tokens - input_tokens)
    return Cost(Requests(0), tokens, Slots(0), 0, input_tokens, output_tokens, money)


def _beyond(dimension: DimensionConfig, before: Cost, actual: Cost, reserved: Cost) -> int:
    charged = before.amount(dimension)
    if dimension.amount == "reserved" and before.tokens > 0:  # 0: it may have been released
        charged = max(charged, reserved.amount(dimension))
    return actual.amount(dimension) - charged
