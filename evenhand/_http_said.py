"""A member's words as requests: what goes to which path, and in whose turn.

Words of one track go out one after the other, so that what is said of one attempt stays in order.
A heartbeat has a track of its own, since a renewal must not stand behind a result.
"""

from typing import Any, Final, assert_never

from evenhand._attempt import names
from evenhand._http import Request, cancel, submit
from evenhand._transport import Submission
from evenhand._words import bodies, codes, events, ids, inputs
from evenhand._words import member_bodies as m
from evenhand.errors import EvenhandError

NOW: Final = {"Prefer": "wait=0"}
"""The answer may come as soon as the word is durable: what is decided is delivered anyway."""
TRACKS: Final = 4
"""Attempts whose words go out at the same time; each word waits until it is durable."""
HEART: Final = "heart"


def track_of(word: inputs.Input) -> str:
    """On which track the word goes out: behind the others of the same track."""
    match word:
        case inputs.HeartbeatReported():
            return HEART
        case inputs.JoinRequested() | inputs.LeaveAnnounced():
            return "member"
        case inputs.OperationSubmitted() | inputs.CancellationRequested():
            return "operations"
        case inputs.ResultReported() | inputs.UsageReported():
            return f"results-{word.operation[0] % TRACKS}"
        case (
            inputs.ClaimRequested()
            | inputs.StartRequested()
            | inputs.SendReported()
            | inputs.CheckpointReported()
        ):
            return f"starts-{word.operation[0] % TRACKS}"
        case _:
            raise AssertionError(f"Expected a member's word, but got {type(word).__name__}")


def request_of(word: inputs.Input, *, member: str, at_least: str) -> Request:
    """How the word is said over HTTP.

    Args:
        word: one that a member says.
        member: its full name.
        at_least: what the answering process must have read: a position, or an input.
    """
    match word:
        case inputs.JoinRequested():
            _, _, own_name = member.removeprefix("key_").partition("_")
            joins = m.Join(
                pool=word.pool,
                places=word.places,
                member=own_name,
                member_epoch=word.member_epoch,
                tenant=word.tenant,
            )
            return Request(method="POST", path="/v1/members", body=joins, headers=NOW)
        case inputs.HeartbeatReported():
            leases = [m.Lease(operation=o.operation.hex(), epoch=o.epoch) for o in word.leases]
            beats = m.Heartbeat(member_epoch=word.member_epoch, leases=leases, sent_ms=word.sent_ms)
            path = f"/v1/members/{member}:heartbeat"
            return Request(method="POST", path=path, body=beats, headers=NOW)
        case inputs.LeaveAnnounced():
            return Request(
                method="DELETE",
                path=f"/v1/members/{member}",
                headers=NOW,
                params={"member_epoch": word.member_epoch},
            )
        case inputs.OperationSubmitted():
            return submit(_submission(word, member))
        case inputs.CancellationRequested():
            asked = cancel(word.operation.hex(), word.reason)
            asked.headers[bodies.AT_LEAST] = at_least
            return asked
        case (
            inputs.ClaimRequested()
            | inputs.StartRequested()
            | inputs.SendReported()
            | inputs.CheckpointReported()
            | inputs.ResultReported()
            | inputs.UsageReported()
        ):
            headers = {**NOW, bodies.AT_LEAST: at_least}
            path, body = _about_attempt(word)
            return Request(method="POST", path=path, body=body, headers=headers)
        case _:
            raise AssertionError(f"Expected a member's word, but got {type(word).__name__}")


def _submission(word: inputs.OperationSubmitted, member: str) -> Submission:
    left_out = {"tenant", "user", "idempotency_key", "member"}
    fields: dict[str, Any] = {
        name: getattr(word, name)
        for name in bodies.Submit.model_fields
        if name not in left_out and getattr(word, name) is not None
    }
    if word.parent is not None:
        fields["parent"] = word.parent.hex()
    return Submission(
        body=bodies.Submit(**fields, member=member),
        idempotency_key=word.idempotency_key,
        wait_admitted_ms=0,
    )


def _about_attempt(
    word: inputs.ClaimRequested
    | inputs.StartRequested
    | inputs.SendReported
    | inputs.CheckpointReported
    | inputs.ResultReported
    | inputs.UsageReported,
) -> tuple[str, m.Speaks]:
    operation = word.operation.hex()
    speaks: dict[str, Any] = {
        name: getattr(word, name)
        for name in ("incarnation", "attempt", "epoch", "member", "member_epoch")
    }
    match word:
        case inputs.ClaimRequested():
            return f"/v1/grants/{operation}:claim", m.Claim(**speaks)
        case inputs.StartRequested():
            return "/v1/starts", m.Start(**speaks, operation=operation)
        case inputs.SendReported():
            delay_ms = word.send_delay_ms
            return "/v1/sends", m.Send(**speaks, operation=operation, send_delay_ms=delay_ms)
        case inputs.CheckpointReported():
            path = f"/v1/operations/{operation}/checkpoints"
            return path, m.Checkpoint(
                **speaks,
                number=word.number,
                state_ref=word.state_ref,
                context_bytes=word.context_bytes,
                artifacts=word.artifacts,
            )
        case inputs.ResultReported():
            return "/v1/results", _result(word, speaks)
        case inputs.UsageReported():
            return "/v1/usage", m.Usage(
                **speaks,
                operation=operation,
                unit=word.unit,
                prompt_tokens=word.prompt_tokens,
                output_tokens=word.output_tokens,
                evidence=word.evidence,
            )
        case _:
            assert_never(word)


def _result(word: inputs.ResultReported, speaks: dict[str, Any]) -> m.ResultOf:
    outcome: Any = word.outcome
    return m.ResultOf(
        **speaks,
        operation=word.operation.hex(),
        outcome=outcome,
        prompt_tokens=word.prompt_tokens,
        output_tokens=word.output_tokens,
        send_delay_ms=word.send_delay_ms,
        result_ref=_short(word.result_ref),
        error=_short(word.error),
        retry_after_ms=word.retry_after_ms,
    )


def _short(text: str | None) -> str | None:
    """A cell leaves out what is too long, and settles the rest."""
    return None if text is None or len(text) > m.TEXT_CHARS_MAX else text


def refusal_of(word: inputs.Input, error: EvenhandError) -> Any:
    """What the owner would have told of a word that the API did not pass on; None for nothing.

    A submission may have been passed on all the same; whoever waits for it hears the first refusal.
    """
    code = error.code or codes.Code.INTERNAL
    match word:
        case inputs.JoinRequested():
            return events.JoinRefused(member=word.member, member_epoch=word.member_epoch, code=code)
        case inputs.StartRequested():
            return events.StartRefused(**names(word), code=code)
        case inputs.CheckpointReported():
            return events.CheckpointRefused(**names(word), number=word.number, code=code)
        case inputs.OperationSubmitted():
            return _rejected(word, code, error)
        case _:
            return None


def _rejected(word: inputs.OperationSubmitted, code: codes.Code, error: EvenhandError) -> Any:
    operation = ids.operation_id(
        pool=word.pool,
        tenant=word.tenant,
        user=word.user,
        idempotency_key=word.idempotency_key,
    )
    if code is codes.Code.IDEMPOTENCY_MISMATCH:
        return events.SubmissionConflicted(
            tenant=word.tenant, operation=operation, member=word.member
        )
    return events.OperationRejected(
        tenant=word.tenant,
        operation=operation,
        code=code,
        detail=str(error),
        binds_key=not error.keep_key,
        member=word.member,
    )
