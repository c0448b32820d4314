"""`evenhand operations`: submit work, look at it, wait for it, cancel it, try it again."""

import time
from typing import Annotated, Any, Literal

import typer

from evenhand._http import Request
from evenhand._intent import ENDED, submission
from evenhand._words import bodies, operator_bodies
from evenhand.cli.asking import api, ask, pages
from evenhand.cli.output import Exit, OutputOption, leave, say, show, show_one
from evenhand.cli.spans import span_ms

COLUMNS = (
    "operation",
    "state",
    "place",
    "tenant",
    "pool",
    "domain",
    "lane",
    "attempt",
    "admitted_at",
)
Lane = Literal["interactive", "decision", "bulk"]
STEPS = ("at", "type", "attempt", "member", "detail", "position")

app = typer.Typer(no_args_is_help=True, help="Units of requested work.")


@app.command("submit")
def submit_operation(  # noqa: PLR0913 - a command's options are its interface
    *,
    pool: Annotated[str, typer.Option(help="Pool whose members may run it.")],
    domain: Annotated[str, typer.Option(help="Budget domain it draws on.")],
    prompt_tokens: Annotated[int, typer.Option(min=0, help="Estimated prompt tokens.")],
    output_tokens_max: Annotated[int, typer.Option(min=1, help="Output ceiling of the call.")],
    idempotency_key: Annotated[str, typer.Option(help="Names the intent; repeats keep it.")],
    lane: Annotated[Lane, typer.Option(help="Service class.")] = "interactive",
    start_within_ms: Annotated[int, typer.Option(min=1, help="Deadline of the start.")] = 60_000,
    effect: Annotated[
        Literal["read_only", "keyed", "unsafe"], typer.Option(help="What a second call would do.")
    ] = "unsafe",
    payload_ref: Annotated[str | None, typer.Option(help="Where the payload is.")] = None,
    runtime_ms: Annotated[
        int | None, typer.Option(min=1, help="A started attempt is asked to end after that.")
    ] = None,
    turns_max: Annotated[
        int | None, typer.Option(min=1, help="Makes it a run of at most so many provider turns.")
    ] = None,
    tool: Annotated[
        list[str] | None, typer.Option(help="A tool that the run may use; may be repeated.")
    ] = None,
    wait_admitted_ms: Annotated[
        int | None, typer.Option(min=0, help="How long to wait for the admission decision.")
    ] = None,
    output: OutputOption = None,
) -> None:
    """Submit one operation; it is durable when this returns.

    Example:
    evenhand operations submit --pool default --domain default --prompt-tokens 900
    --output-tokens-max 300 --idempotency-key invoice-17
    """
    fields: Any = {
        "pool": pool,
        "domain": domain,
        "lane": lane,
        "prompt_tokens": prompt_tokens,
        "output_tokens_max": output_tokens_max,
        "start_within_ms": start_within_ms,
        "effect": effect,
    }
    optional = {
        "payload_ref": payload_ref,
        "runtime_ms": runtime_ms,
        "turns_max": turns_max,
        "tools": tuple(tool) if tool else None,
    }
    fields.update({name: value for name, value in optional.items() if value is not None})
    asked = submission(fields, idempotency_key=idempotency_key, wait_admitted_ms=wait_admitted_ms)
    with api() as transport:
        show_one(transport.submit(asked).model_dump(mode="json"), output)


@app.command("get")
def get_operation(
    operation: Annotated[str, typer.Argument(help="Its id, in hex.")],
    *,
    at_least: Annotated[
        str | None, typer.Option(help="A position or an input that the answer must reflect.")
    ] = None,
    output: OutputOption = None,
) -> None:
    """Show one operation as it is now.

    Example:
    evenhand operations get c8f71309f7411b9d9fb9dd7c14eb69dd
    """
    with api() as transport:
        found = transport.get(operation, at_least=at_least, wait_s=transport.retry_s)
    show_one(found.model_dump(mode="json"), output)


@app.command("events")
def list_events(
    operation: Annotated[str, typer.Argument(help="Its id, in hex.")],
    *,
    output: OutputOption = None,
) -> None:
    """Show what happened to one operation, oldest first.

    Example:
    evenhand operations events c8f71309f7411b9d9fb9dd7c14eb69dd
    """
    found = ask(f"/v1/operations/{operation}/events", operator_bodies.History)
    if found.dropped:
        say(f"{found.dropped} older events are not kept")
    show([item.model_dump(mode="json") for item in found.items], STEPS, output)


@app.command("wait")
def wait_for_operation(
    operation: Annotated[str, typer.Argument(help="Its id, in hex.")],
    *,
    timeout: Annotated[str, typer.Option(metavar="SPAN", help="How long to wait.")] = "60s",
    output: OutputOption = None,
) -> None:
    """Wait until an operation has ended, and show how.

    Exit code 0 for success, 1 for any other end, 3 if it was refused, 4 if it goes on.

    Example:
    evenhand operations wait 9b9d6ba05b0d435c0f3a47eae2c485ce --timeout 30s
    """
    found = _ended(operation, span_ms(timeout) / 1000)
    show_one(found.model_dump(mode="json"), output)
    if found.state not in ENDED:
        leave(Exit.TRY_LATER, f"It has not ended yet: {found.state}")
    if found.state is bodies.State.REJECTED:
        leave(Exit.REFUSED, f"It was refused: {found.code}")
    if found.state is not bodies.State.SUCCEEDED:
        leave(Exit.ERROR, f"It ended otherwise: {found.state}")


def _ended(operation: str, wait_s: float) -> bodies.Operation:
    """The operation once it has ended, or as it is when the time is over."""
    until = time.monotonic() + wait_s
    with api() as transport:
        while True:
            left_s = max(0.0, until - time.monotonic())
            found = transport.get(
                operation, at_least=None, wait_s=transport.retry_s, ended_within_s=left_s
            )
            if found.state in ENDED or left_s < 1:  # the server waits in whole seconds
                return found


@app.command("retry")
def retry_operation(
    operation: Annotated[str, typer.Argument(help="Its id, in hex.")],
    *,
    reason: Annotated[str, typer.Option(help="Why; kept with the decision.")],
    start_within: Annotated[
        str, typer.Option(metavar="SPAN", help="Its new deadline, from now.")
    ] = "60s",
    output: OutputOption = None,
) -> None:
    """Try a dead or closed operation again, under its id; needs a key of role operator.

    Example:
    evenhand operations retry 6528ffc3d87bac2eed9640e140d7f64d --reason "the provider is back"
    """
    body = operator_bodies.Retry(reason=reason, start_within_ms=span_ms(start_within))
    path = f"/v1/operations/{operation}:retry"
    with api() as transport:
        answer = transport.ask(Request(method="POST", path=path, body=body), operator_bodies.Asked)
    show_one(answer.model_dump(mode="json"), output)


@app.command("list")
def list_operations(
    *,
    state: Annotated[bodies.State | None, typer.Option(help="Only in this state.")] = None,
    pool: Annotated[str | None, typer.Option(help="Only of this pool.")] = None,
    lane: Annotated[Lane | None, typer.Option(help="Only in this lane.")] = None,
    tenant: Annotated[str | None, typer.Option(help="Only of this tenant.")] = None,
    parent: Annotated[str | None, typer.Option(help="Only turns of this run.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 50,
    output: OutputOption = None,
) -> None:
    """List operations, newest first.

    Example:
    evenhand operations list --state waiting --limit 20
    """
    found = pages(
        "/v1/operations",
        bodies.Operations,
        limit=limit,
        state=state,
        pool=pool,
        lane=lane,
        tenant=tenant,
        parent=parent,
    )
    show([item.model_dump(mode="json") for item in found], COLUMNS, output)


@app.command("cancel")
def cancel_operation(
    operation: Annotated[str, typer.Argument(help="Its id, in hex.")],
    *,
    reason: Annotated[str, typer.Option(help="Kept with the cancellation.")] = "",
    output: OutputOption = None,
) -> None:
    """Ask for the end of an operation; repeats are harmless.

    Example:
    evenhand operations cancel c8f71309f7411b9d9fb9dd7c14eb69dd --reason "no longer needed"
    """
    with api() as transport:
        written = transport.cancel(operation, reason=reason)
    show_one({"operation": operation, "input": written}, output)
