"""What members say about attempts: claim, start, sent, checkpoint, result, usage.

Each is written first and then answered with what the owner decided on it, or with 202 if that is
not known in time. A start that is sent again is refused, since its call may be under way.
"""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Response

from api.door import ADoor, AMember, Asked
from api.prefer import WaitMs
from api.problems import instant, not_found
from api.settling import reported, settle
from api.speaking import PENDING, Decided, granted, names, refusal, say
from schemas import events as e
from schemas import inputs as i
from schemas import member_bodies as m
from schemas.topics import Topic
from schemas.units import Millis, Tokens

router = APIRouter(tags=["attempts"])

Id = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$", description="Operation id.")]


@router.post("/grants/{operation}:claim", response_model=m.Claimed, responses=PENDING)
async def claim_grant(
    asker: AMember, asked: Asked, door: ADoor, operation: Id, body: m.Claim, wait_ms: WaitMs
) -> m.Claimed | Response:
    """Take the lease of a grant before its start; in an open pool the first one gets it."""
    word = i.ClaimRequested(**names(asker, asked, operation, body))
    decided = await say(door, Topic.STARTS, word, wait_ms)
    if decided.told is None:
        return decided.pending
    refused = decided.find(e.ClaimRefused)
    if refused is not None:
        raise refusal(refused.code, operation=operation)
    return m.Claimed(operation=operation, epoch=body.epoch, expires_at=_lease_end(decided))


@router.post("/starts", response_model=m.Started, responses=PENDING)
async def start_attempt(
    asker: AMember, asked: Asked, door: ADoor, body: m.Start, wait_ms: WaitMs
) -> m.Started | Response:
    """Ask for permission to call the provider now; without it the call must not go out."""
    word = i.StartRequested(**names(asker, asked, body.operation, body))
    decided = await say(door, Topic.STARTS, word, wait_ms)
    accepted = decided.find(e.StartAccepted)
    if accepted is not None:
        return m.Started(
            operation=body.operation,
            epoch=accepted.epoch,
            send_within_ms=accepted.send_within_ms,
            lease_expires_at=_lease_end(decided),
            latest_arrival_at=instant(accepted.latest_arrival_ms),
        )
    refused = decided.find(e.StartRefused)
    if refused is not None:
        raise refusal(refused.code, operation=body.operation)
    return decided.pending


def _lease_end(decided: Decided) -> datetime | None:
    claimed = decided.find(e.LeaseClaimed)
    if claimed is None or claimed.expires_ms is None:
        return None
    return instant(claimed.expires_ms)


@router.post("/sends", response_model=m.Noted, responses=PENDING)
async def report_send(
    asker: AMember, asked: Asked, door: ADoor, body: m.Send, wait_ms: WaitMs
) -> m.Noted | Response:
    """Tell how soon the call was sent: its charges may leave their windows earlier."""
    word = i.SendReported(
        **names(asker, asked, body.operation, body), send_delay_ms=Millis(body.send_delay_ms)
    )
    decided = await say(door, Topic.STARTS, word, wait_ms)
    if decided.told is None:
        return decided.pending
    return m.Noted(operation=body.operation, changed=bool(decided.told))


@router.post(
    "/operations/{operation}/checkpoints", response_model=m.Checkpointed, responses=PENDING
)
async def report_checkpoint(
    asker: AMember, asked: Asked, door: ADoor, operation: Id, body: m.Checkpoint, wait_ms: WaitMs
) -> m.Checkpointed | Response:
    """Record how far a started attempt is; the same again changes nothing."""
    word = i.CheckpointReported(
        **names(asker, asked, operation, body),
        number=body.number,
        state_ref=body.state_ref,
        context_bytes=body.context_bytes,
        artifacts=body.artifacts,
    )
    decided = await say(door, Topic.STARTS, word, wait_ms)
    if decided.told is None:
        return decided.pending
    refused = decided.find(e.CheckpointRefused)
    if refused is not None:
        raise refusal(refused.code, operation=operation)
    return m.Checkpointed(operation=operation, number=body.number)


@router.post("/results", response_model=m.Settled, responses=PENDING)
async def report_result(
    asker: AMember, asked: Asked, door: ADoor, body: m.ResultOf, wait_ms: WaitMs
) -> m.Settled | Response:
    """Tell how an attempt ended; what comes too late to count is kept as evidence (412)."""
    word = reported(names(asker, asked, body.operation, body), body)
    return await settle(door, word, wait_ms)


@router.post("/usage", response_model=m.Noted, responses=PENDING)
async def report_usage(
    asker: AMember, asked: Asked, door: ADoor, body: m.Usage, wait_ms: WaitMs
) -> m.Noted | Response:
    """Tell what a call used after its result, or of an unknown one; the same again changes nothing.

    Only the member of the newest attempt may: what was charged for is told by its operation.
    """
    if granted(asker, asked, body.operation).holder != body.member:
        raise not_found()
    word = i.UsageReported(
        **names(asker, asked, body.operation, body),
        unit=body.unit,
        prompt_tokens=Tokens(body.prompt_tokens),
        output_tokens=Tokens(body.output_tokens),
        evidence=body.evidence,
    )
    decided = await say(door, Topic.RESULTS, word, wait_ms)
    if decided.told is None:
        return decided.pending
    refused = decided.find(e.UsageRefused)
    if refused is not None:
        raise refusal(refused.code, operation=body.operation)
    return m.Noted(operation=body.operation, changed=bool(decided.told))
