"""A member's word from request to decision: who may say it, sent, waited for, and told from events.

Over HTTP a member belongs to the key that joined it: the key's id is in its name, so that any
process of the API can tell without asking anybody (R187). Somebody else's member is not found.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from fastapi.responses import JSONResponse

from projections.deliveries import Told
from projections.queries import Queries
from projections.views.operation import Operation as Row
from schemas import member_bodies as m
from schemas.bodies import INPUT, Role
from schemas.codes import CODES, Code
from schemas.events import InputQuarantined
from schemas.ids import MemberEpoch, MemberId, OperationId, TenantId, key_of_member
from schemas.inputs import Input
from schemas.topics import Topic

from .auth import Principal
from .door import Door
from .ports import NotWritten, Sent
from .problems import Refused, not_found
from .turns import is_own

E = TypeVar("E")

PENDING: dict[int | str, dict[str, Any]] = {202: {"model": m.Pending}}
"""What a route documents besides its answer."""


class Decided(NamedTuple):
    """What the owner decided on a word; `told` is None if that is not known in time."""

    sent: Sent
    told: Sequence[Told] | None

    def find(self, *kinds: type[E]) -> E | None:
        """The event of one of these kinds, if there is one."""
        return next((t.event for t in self.told or () if isinstance(t.event, kinds)), None)

    @property
    def pending(self) -> JSONResponse:
        """The answer before the decision is known."""
        body = m.Pending(input=str(self.sent)).model_dump(mode="json")
        return JSONResponse(body, 202, {INPUT: str(self.sent)})


def own(asker: Principal, member: str) -> MemberId:
    """The member, if the caller's key speaks for it.

    Raises:
        Refused: not found; the same for one that does not exist.
    """
    if key_of_member(member) != asker.key_id:
        raise not_found()
    return MemberId(member)


def granted(asker: Principal, asked: Queries, operation: str) -> Row:
    """The operation that a member of the caller may have been granted.

    Raises:
        Refused: not found; the same for another tenant's, or another pool's.
    """
    row = asked.operation(bytes.fromhex(operation))
    if row is not None and is_own(asker, row):
        return row
    if row is None or not asker.works_for(row.pool):
        raise not_found()
    if asker.role is Role.TENANT and not asker.sees(row.tenant):
        raise not_found()
    return row


def names(asker: Principal, asked: Queries, operation: str, body: m.Speaks) -> dict[str, Any]:
    """What names the attempt in a word about it; the tenant is the operation's own.

    Raises:
        Refused: not found.
    """
    return {
        "member": own(asker, body.member),
        "tenant": TenantId(granted(asker, asked, operation).tenant),
        "operation": OperationId(bytes.fromhex(operation)),
        "incarnation": body.incarnation,
        "attempt": body.attempt,
        "epoch": body.epoch,
        "member_epoch": MemberEpoch(body.member_epoch),
    }


async def say(door: Door, topic: Topic, word: Input, wait_ms: int | None) -> Decided:
    """Send a word and wait for what the owner decides on it.

    Args:
        door: where to send and to look.
        topic: where such words go.
        word: what is said.
        wait_ms: for the decision; None means as long as is usual, 0 returns when it is durable.

    Raises:
        Refused: nobody knows whether it is written, or the cell could not read it.
    """
    try:
        sent = await door.sender.send(topic, word)
    except NotWritten as error:
        raise Refused(Code.NOT_WRITTEN, f"Expected a durable word, but {error}") from error
    wait_ms = door.waits.decided_ms if wait_ms is None else wait_ms
    if not wait_ms or not await door.views.reach(sent.wanted, wait_ms):
        return Decided(sent, None)
    decided = Decided(sent, door.views.answers(sent.wanted))
    unreadable = decided.find(InputQuarantined)
    if unreadable is not None:
        raise refusal(unreadable.code, unreadable.detail)
    return decided


def refusal(code: str, detail: str | None = None, **fields: Any) -> Refused:
    """The refusal that an event tells."""
    known = Code(code)
    return Refused(known, detail or CODES[known].title, **fields)
