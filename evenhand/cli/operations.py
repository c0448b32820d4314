"""`evenhand operations`: submit work, look at it, cancel it."""

from typing import Annotated, Any

import typer

from evenhand._intent import submission
from evenhand._words import bodies
from evenhand.cli.asking import api, ask
from evenhand.cli.output import OutputOption, show, show_one

COLUMNS = ("operation", "state", "place", "tenant", "pool", "domain", "attempt", "admitted_at")

app = typer.Typer(no_args_is_help=True, help="Units of requested work.")


@app.command("submit")
def submit_operation(  # noqa: PLR0913 - a command's options are its interface
    *,
    pool: Annotated[str, typer.Option(help="Pool whose members may run it.")],
    domain: Annotated[str, typer.Option(help="Budget domain it draws on.")],
    prompt_tokens: Annotated[int, typer.Option(min=0, help="Estimated prompt tokens.")],
    output_tokens_max: Annotated[int, typer.Option(min=1, help="Output ceiling of the call.")],
    idempotency_key: Annotated[str, typer.Option(help="Names the intent; repeats keep it.")],
    start_within_ms: Annotated[int, typer.Option(min=1, help="Deadline of the start.")] = 60_000,
    effect: Annotated[str, typer.Option(help="read_only, keyed or unsafe.")] = "unsafe",
    payload_ref: Annotated[str | None, typer.Option(help="Where the payload is.")] = None,
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
        "prompt_tokens": prompt_tokens,
        "output_tokens_max": output_tokens_max,
        "start_within_ms": start_within_ms,
        "effect": effect,
        **({} if payload_ref is None else {"payload_ref": payload_ref}),
    }
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


@app.command("list")
def list_operations(
    *,
    state: Annotated[bodies.State | None, typer.Option(help="Only in this state.")] = None,
    pool: Annotated[str | None, typer.Option(help="Only of this pool.")] = None,
    tenant: Annotated[str | None, typer.Option(help="Only of this tenant.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 50,
    output: OutputOption = None,
) -> None:
    """List operations, newest first.

    Example:
    evenhand operations list --state waiting --limit 20
    """
    rows: list[dict[str, Any]] = []
    cursor: str | None = None
    while len(rows) < limit:
        page = ask(
            "/v1/operations",
            bodies.Operations,
            state=state,
            pool=pool,
            tenant=tenant,
            limit=min(limit - len(rows), 100),
            cursor=cursor,
        )
        rows += [item.model_dump(mode="json") for item in page.items]
        cursor = page.next
        if cursor is None:
            break
    show(rows, COLUMNS, output)


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
