"""`evenhand unknowns`: outcomes that nobody knows, what they hold, and what became of one."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from evenhand._http import Request
from evenhand._words import operator_bodies
from evenhand.cli.asking import api, ask, pages
from evenhand.cli.output import Exit, OutputOption, as_table, leave, show, show_one
from evenhand.cli.spans import as_text, span_ms

COLUMNS = (
    "operation",
    "age",
    "tenant",
    "domain",
    "effect",
    "attempt",
    "member",
    "slots",
    "cause",
    "hold_until",
    "evidence",
)
STEPS = ("at", "source", "verdict", "confidence", "evidence", "author", "reason")

app = typer.Typer(no_args_is_help=True, help="Calls that started, and nobody knows how they ended.")

Operation = Annotated[str, typer.Argument(help="The operation's id, in hex.")]


class Verdict(StrEnum):
    """What became of it."""

    COMPLETED = "completed"
    FAILED = "failed"
    NOT_EXECUTED = "not_executed"
    ABANDONED = "abandoned"


@app.command("list")
def list_unknowns(
    *,
    tenant: Annotated[str | None, typer.Option(help="Only of this tenant.")] = None,
    domain: Annotated[str | None, typer.Option(help="Only of this budget domain.")] = None,
    older_than: Annotated[
        str, typer.Option(metavar="SPAN", help="Unknown for at least so long.")
    ] = "0s",
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 50,
    output: OutputOption = None,
) -> None:
    """List unknown outcomes, oldest first: who held them, what they hold, until when.

    Example:
    evenhand unknowns list --domain default
    """
    least_ms = span_ms(older_than)
    found = pages(
        "/v1/unknowns", operator_bodies.Unknowns, limit=limit, tenant=tenant, domain=domain
    )
    rows = [item.model_dump(mode="json") for item in found if item.age_ms >= least_ms]
    show([_row(row) for row in rows] if as_table(output) else rows, COLUMNS, output)


@app.command("show")
def show_unknown(operation: Operation, *, output: OutputOption = None) -> None:
    """Show the unknown attempts of an operation with all evidence. Exit code 5 if it has none.

    Example:
    evenhand unknowns show 019e5fb075f53be489cd821d1f37b505
    """
    found = ask("/v1/unknowns", operator_bodies.Unknowns, operation=operation).items
    if not found:
        leave(Exit.NOT_FOUND, "Expected an unknown outcome, but the operation has none")
    rows = [item.model_dump(mode="json") for item in found]
    if not as_table(output):
        show(rows, COLUMNS, output)
        return
    for row in rows:
        show_one({**_row(row), "error": row["unknown"]["error"], "state": row["state"]}, output)
        if row["unknown"]["evidence"]:
            show(row["unknown"]["evidence"], STEPS, output)


@app.command("reconcile")
def reconcile(
    operation: Operation,
    *,
    verdict: Annotated[Verdict, typer.Option("--as", help="What became of it.")],
    reason: Annotated[str, typer.Option(help="How you know; kept with the decision.")],
    epoch: Annotated[
        int | None, typer.Option(min=1, help="Which attempt; the newest if not given.")
    ] = None,
    prompt_tokens: Annotated[
        int | None, typer.Option(min=0, help="What it used; else it is charged as reserved.")
    ] = None,
    output_tokens: Annotated[int | None, typer.Option(min=0, help="As --prompt-tokens.")] = None,
    result_ref: Annotated[str | None, typer.Option(help="Where its result is.")] = None,
    output: OutputOption = None,
) -> None:
    """Say what became of an unknown outcome; needs a key of role operator.

    completed and failed end the operation and settle its reservation. not_executed gives the
    reservation back, and the operation waits again. abandoned closes the operation without
    knowing; its slot stays held until the bound.

    Example:
    evenhand unknowns reconcile 019e5fb075f53be489cd821d1f37b505 --as completed
    --reason "the provider's console shows it"
    """
    said: dict[str, Any] = {
        "as": verdict.value,
        "reason": reason,
        "epoch": epoch,
        "prompt_tokens": prompt_tokens,
        "output_tokens": output_tokens,
        "result_ref": result_ref,
    }
    body = operator_bodies.Reconcile(**{k: v for k, v in said.items() if v is not None})
    path = f"/v1/unknowns/{operation}:reconcile"
    with api() as transport:
        answer = transport.ask(Request(method="POST", path=path, body=body), operator_bodies.Asked)
    show_one(answer.model_dump(mode="json"), output)


def _row(item: dict[str, Any]) -> dict[str, Any]:
    """As a person reads it: flat, with what is overdue marked."""
    doubt = item["unknown"]
    return {
        **{name: item[name] for name in ("operation", "tenant", "domain", "effect", "attempt")},
        "age": as_text(item["age_ms"]),
        "member": item["member"],
        "slots": item["slots"],
        "cause": doubt["cause"],
        "hold_until": f"{doubt['hold_until']}{' OVERDUE' if item['overdue'] else ''}",
        "evidence": len(doubt["evidence"]),
    }
