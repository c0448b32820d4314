"""A result from word to answer: recorded, a repeat, or evidence."""

from fastapi import Response

from schemas import events as e
from schemas import member_bodies as m
from schemas.inputs import ResultReported
from schemas.topics import Topic

from .door import Door
from .problems import instant, not_found
from .speaking import Decided, refusal, say


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
