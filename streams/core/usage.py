"""What a call really used, told beside or after its result: totals, never parts.

Of an unknown attempt it is evidence. After the reservation was closed it corrects the ledgers: what
was used beyond the charge counts from now on, what was not used comes back to nobody, since its
capacity may have been given away since (R55).
"""

from collections.abc import Sequence

from schemas.codes import Code
from schemas.events import Event, UsageCorrected, UsageRefused
from schemas.inputs import DimensionConfig, UsageReported
from schemas.units import Micros, Millis, Requests, Slots, Tokens

from . import lanes, reconciliation, unknowns
from .costs import Cost, call_cost, cost_ns, priced
from .exits import exit_ms
from .fencing import named, speaks_for
from .holds import HoldKey
from .limits import USED_MAX
from .operations import OperationRow
from .shape import tokens_in_range, valid_name
from .state import State

UNIT = "tokens"


def report(state: State, asked: UsageReported) -> Sequence[Event]:
    """Evidence, a correction, or refused; a repeat of the same figures changes nothing."""
    code = _refusal(state, asked)
    if code is not None:
        return [UsageRefused(**named(asked), code=code)]
    attempt = unknowns.find(state, HoldKey(asked.operation, asked.incarnation, asked.epoch))
    row = state.operation(asked.operation)
    assert row is not None
    if attempt is None:
        if not 0 < asked.epoch == row.result_epoch:  # 0: it never had an attempt that ended
            return [UsageRefused(**named(asked), code=Code.EPOCH_SUPERSEDED)]
        return _correction(state, asked, row)
    if not speaks_for(asked, attempt):
        return [UsageRefused(**named(asked), code=Code.EPOCH_SUPERSEDED)]
    if attempt.uncertain is None:  # its result will bring what it used
        return [UsageRefused(**named(asked), code=Code.NOT_UNKNOWN)]
    known = reconciliation.usage(state, asked, attempt)
    return known if attempt.is_open else [*known, *_correction(state, asked, row)]


def _correction(state: State, asked: UsageReported, row: OperationRow) -> Sequence[Event]:
    used = priced(row.more.prices, asked.prompt_tokens, asked.output_tokens)
    charged = row.charged_input, row.charged_output
    if (used.input_tokens, used.output_tokens) == charged or unknowns.digest(
        asked.evidence
    ) in row.more.usage:
        return []
    levels = state.config.domains[row.domain].levels(row.tenant)
    if any(window.used > USED_MAX for window in levels):
        return [UsageRefused(**named(asked), code=Code.USAGE_OUT_OF_RANGE)]
    return [
        UsageCorrected(
            **named(asked),
            domain=row.domain,
            evidence=asked.evidence,
            tokens_before=row.charged_tokens,
            tokens_actual=used.tokens,
            input_tokens_before=row.charged_input,
            input_tokens_actual=used.input_tokens,
            money_before_micros=row.more.charged_money,
            money_actual_micros=used.money,
        )
    ]


def _refusal(state: State, asked: UsageReported) -> Code | None:
    if asked.unit != UNIT:
        return Code.USAGE_UNIT_UNKNOWN
    if not tokens_in_range(asked.prompt_tokens, asked.output_tokens):
        return Code.USAGE_OUT_OF_RANGE
    if not valid_name(asked.evidence):
        return Code.INVALID_FIELD
    row = state.operation(asked.operation)
    if row is None or row.tenant != asked.tenant:
        return Code.NOT_FOUND
    return Code.EPOCH_SUPERSEDED if row.incarnation != asked.incarnation else None


# -- folds --------------------------------------------------------------------------------------


def corrected(state: State, event: UsageCorrected) -> None:
    """Ledger and counter follow the figure; windows only take what was used beyond their charge."""
    row = state.operation(event.operation)
    assert row is not None
    prices = row.more.prices
    before = _usage(event.input_tokens_before, event.tokens_before, event.money_before_micros)
    actual = _usage(event.input_tokens_actual, event.tokens_actual, event.money_actual_micros)
    reserved = call_cost(row.prompt_tokens, row.output_tokens_max, prices)
    row.charge(actual.input_tokens, actual.output_tokens, actual.money, prices)
    unknowns.heeded(row, event.evidence)
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
