"""One submission from body to answer: known already, or sent, waited for and looked up."""

from typing import Any, NamedTuple

from projections.queries import Queries
from projections.views.operation import Operation
from schemas import bodies as b
from schemas.codes import CODES, Code
from schemas.digest import payload_digest
from schemas.ids import DomainId, MemberId, OperationId, PoolId, operation_id
from schemas.inputs import OperationSubmitted
from schemas.journal import Position
from schemas.phase import Phase
from schemas.problems import BudgetProblem
from schemas.topics import Topic
from schemas.units import Millis, Tokens

from .auth import Principal
from .door import Door
from .idempotency import Answer, answer_of
from .ports import NotWritten, Sent
from .problems import Refused, retry_fields


class Outcome(NamedTuple):
    """What the client is told, and the position it reflects."""

    body: b.Submitted
    replayed: bool
    position: Position


def _word(asker: Principal, key: str, body: b.Submit) -> OperationSubmitted:
    assert asker.tenant is not None, "Expected a tenant's key to name its tenant"
    assert asker.user is not None, "Expected a tenant's key to name its user"
    return OperationSubmitted(
        tenant=asker.tenant,
        user=asker.user,
        idempotency_key=key,
        pool=PoolId(body.pool),
        domain=DomainId(body.domain),
        lane=body.lane,
        tier=body.tier,
        connection=body.connection,
        effect=body.effect,
        prompt_tokens=Tokens(body.prompt_tokens),
        output_tokens_max=None
        if body.output_tokens_max is None
        else Tokens(body.output_tokens_max),
        payload_bytes=body.payload_bytes,
        payload_ref=body.payload_ref,
        content_sha256=body.content_sha256,
        start_within_ms=None if body.start_within_ms is None else Millis(body.start_within_ms),
        deadline_ms=None if body.deadline_ms is None else Millis(body.deadline_ms),
        member=None if body.member is None else MemberId(body.member),
        runtime_ms=None if body.runtime_ms is None else Millis(body.runtime_ms),
        turns_max=body.turns_max,
        tools=body.tools,
        parent=None if body.parent is None else OperationId(bytes.fromhex(body.parent)),
    )


async def submit(
    door: Door, asked: Queries, *, asker: Principal, key: str, body: b.Submit, wait_ms: int
) -> Outcome:
    """Send the submission unless its key is known, and tell what became of it within `wait_ms`.

    Raises:
        Refused: with the owner's code, or `idempotency-in-progress` while the first request with
            this key is being handled here, or `not-written` if nobody knows whether it is there.
    """
    word = _word(asker, key, body)
    operation = operation_id(
        pool=word.pool, tenant=word.tenant, user=word.user, idempotency_key=key
    )
    known = _tell(asked, operation, word, sent=None)
    if known is not None:
        return known
    if operation in door.deciding:
        raise Refused(
            Code.IDEMPOTENCY_IN_PROGRESS,
            "Expected one request at a time with this key, but the first is still being decided",
            operation=operation.hex(),
        )
    door.deciding.add(operation)
    try:
        sent = await door.sender.send(Topic.SUBMISSIONS, word)
        await door.views.reach(sent.wanted, wait_ms)
    except NotWritten as error:
        raise Refused(
            Code.NOT_WRITTEN,
            f"Expected a durable submission, but {error}",
            operation=operation.hex(),
        ) from error
    finally:
        door.deciding.discard(operation)
    later = door.views.ask()
    received = b.Submitted(operation=operation.hex(), state="received", input=str(sent))
    told = _tell(later, operation, word, sent=sent) if later.taken(sent.wanted) else None
    return told or Outcome(received, replayed=False, position=later.position)


def _tell(
    asked: Queries, operation: OperationId, word: OperationSubmitted, *, sent: Sent | None
) -> Outcome | None:
    """What the views know; None if they know nothing yet.

    Raises:
        Refused: the operation, or this submission of it, was refused.
    """
    row = asked.operation(operation)
    answer = answer_of(row, payload_digest(word), sent)
    if answer is Answer.UNKNOWN or row is None:
        return None
    if answer is Answer.MISMATCH:
        raise Refused(
            Code.IDEMPOTENCY_MISMATCH,
            "Expected the payload that this key was first used with, but it differs",
            operation=operation.hex(),
        )
    replayed = answer in (Answer.REPLAYED, Answer.REFUSED_BEFORE)
    if answer in (Answer.REFUSED, Answer.REFUSED_BEFORE):
        raise _refusal(asked, operation, row, word, replayed=replayed)
    body = b.Submitted(
        operation=operation.hex(),
        state=b.State(row.phase) if replayed else "admitted",
        place=asked.place(row),
        input=None if sent is None else str(sent),
    )
    return Outcome(body, replayed=replayed, position=asked.position)


def _refusal(
    asked: Queries,
    operation: OperationId,
    row: Operation,
    word: OperationSubmitted,
    *,
    replayed: bool,
) -> Refused:
    assert row.phase is Phase.REJECTED, f"Expected a refused operation, but it is {row.phase}"
    code = Code(row.code or Code.INVALID_FIELD)
    fields: dict[str, Any] = {"keep_key": not row.binds_key}
    headers = {b.POSITION: str(asked.position)}
    if CODES[code].temporary:
        again, after = retry_fields(row.retry_at_ms, asked.time_ms)
        fields, headers = fields | again, headers | after
    if replayed:
        headers[b.REPLAYED] = "true"
    if row.level is not None or row.dimension is not None:
        fields["budget"] = BudgetProblem(
            domain=word.domain, level=row.level, dimension=row.dimension
        )
    return Refused(
        code,
        row.detail or CODES[code].title,
        headers=headers,
        operation=operation.hex(),
        tenant=row.tenant,
        **fields,
    )
