"""A result from word to answer: recorded, a repeat, or evidence."""

from collections.abc import Mapping
from typing import Any

from fastapi import Response

from schemas import events as e
from schemas import member_bodies as m
from schemas import reservation_bodies as r
from schemas.inputs import ResultReported
from schemas.topics import Topic
from schemas.units import Millis, Tokens

from .door import Door
from .problems import instant, not_found
from .speaking import Decided, refusal, say


def reported(names: Mapping[str, Any], body: m.ResultOf | r.Settle) -> ResultReported:
    """The word that tells how the named attempt ended."""
    return ResultReported(
        **names,
        outcome=body.outcome,
        prompt_tokens=_tokens(body.prompt_tokens),
        output_tokens=_tokens(body.output_tokens),
        send_delay_ms=_millis(body.send_delay_ms),
        result_ref=body.result_ref,
        error=body.error,
        retry_after_ms=_millis(body.retry_after_ms),
    )


def _tokens(count: int | None) -> Tokens | None:
    return None if count is None else Tokens(count)


def _millis(span: int | None) -> Millis | None:
    return None if span is None else Millis(span)


async def settle(door: Door, word: ResultReported, wait_ms: int | None) -> m.Settled | Response:
    """Send the result and tell how it was settled, or that this is not known in time.

    Raises:
        Refused: it came too late to count and is kept as evidence, or contradicts what is recorded.
    """
    decided = await say(door, Topic.RESULTS, word, wait_ms)
    if decided.told is None:
        return decided.pending
    stale = decided.find(e.ResultRefusedStale)
    if stale is not None:
        raise refusal(stale.code, operation=word.operation.hex())
    row = door.views.ask().operation(word.operation)
    if row is None:
        raise not_found()
    return _settled(word, decided, state=row.phase)


def _settled(word: ResultReported, decided: Decided, *, state: str) -> m.Settled:
    recorded, settled = decided.find(e.ResultRecorded), decided.find(e.ReservationSettled)
    again = decided.find(e.RetryScheduled)
    return m.Settled(
        operation=word.operation.hex(),
        epoch=word.epoch,
        state=state,
        replayed=not decided.told,
        late=recorded is not None and recorded.late,
        usage_code=None if recorded is None else recorded.usage_code,
        settlement=None
        if settled is None
        else m.Settlement(
            tokens_reserved=settled.tokens_reserved,
            tokens_actual=settled.tokens_actual,
            overdraft_tokens=settled.overdraft_tokens,
            cost_ns=settled.cost_ns,
        ),
        retry_at=None if again is None else instant(again.not_before_ms),
    )
