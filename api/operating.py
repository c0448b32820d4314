"""Manual acts: sent with author and reason, and answered with what the owner says of them."""

from fastapi import Response

from schemas import operator_bodies as o
from schemas.bodies import INPUT, POSITION
from schemas.events import ManualActionRefused
from schemas.inputs import ReconcileRequested, RetryRequested
from schemas.phase import Phase
from schemas.topics import Topic

from .door import Door
from .speaking import refusal, say


async def ask(
    door: Door,
    word: ReconcileRequested | RetryRequested,
    wait_ms: int | None,
    response: Response,
) -> o.Asked:
    """Send the wish; the operation's state is the one after it, if it was decided in time.

    Raises:
        Refused: the owner's code; or nobody knows whether it is written.
    """
    decided = await say(door, Topic.CONTROL, word, wait_ms)
    refused = decided.find(ManualActionRefused)
    if refused is not None:
        raise refusal(refused.code, refused.detail, operation=word.operation.hex())
    later = door.views.ask()
    row = later.operation(word.operation)
    response.headers[INPUT] = str(decided.sent)
    response.headers[POSITION] = str(later.position)
    return o.Asked(
        operation=word.operation.hex(),
        state=Phase.UNKNOWN if row is None else row.phase,
        input=str(decided.sent),
    )
