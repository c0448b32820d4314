"""What a call really used, told by its member beside or after its result: totals, never parts.

Of an unknown attempt it is evidence; after the reservation was closed it is a correction.
"""

from collections.abc import Sequence

from schemas.codes import Code
from schemas.events import Event, UsageRefused
from schemas.inputs import UsageReported

from . import reconciliation, unknowns
from .corrections import correction, digest
from .costs import priced
from .fencing import named, speaks_for
from .holds import HoldKey
from .limits import USED_MAX
from .operations import OperationRow, speaker
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
        return _of_closed(state, asked, row)
    if not speaks_for(asked, attempt):
        return [UsageRefused(**named(asked), code=Code.NOT_ITS_MEMBER)]
    if attempt.uncertain is None:  # its result will bring what it used
        return [UsageRefused(**named(asked), code=Code.NOT_UNKNOWN)]
    return reconciliation.usage(state, asked, attempt)


def _of_closed(state: State, asked: UsageReported, row: OperationRow) -> Sequence[Event]:
    """A correction, if the attempt is the one that was charged last, and its member speaks."""
    if not 0 < asked.epoch == row.result_epoch:  # 0: it never had an attempt that ended
        return [UsageRefused(**named(asked), code=Code.EPOCH_SUPERSEDED)]
    if row.result_by not in (b"", speaker(asked.attempt, asked.member, asked.member_epoch)):
        return [UsageRefused(**named(asked), code=Code.NOT_ITS_MEMBER)]
    if digest(asked.evidence) in row.more.usage:
        return []
    used = priced(row.more.prices, asked.prompt_tokens, asked.output_tokens)
    corrected = correction(named(asked), row, used, evidence=asked.evidence)
    levels = state.config.domains[row.domain].levels(row.tenant)
    if corrected and any(window.used > USED_MAX for window in levels):
        return [UsageRefused(**named(asked), code=Code.USAGE_OUT_OF_RANGE)]
    return corrected


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
