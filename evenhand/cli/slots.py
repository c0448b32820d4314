"""`evenhand slots`: who holds the slots of the providers, and for how long."""

from typing import Annotated, Any

import typer

from evenhand._words import operator_bodies
from evenhand.cli.asking import pages
from evenhand.cli.output import OutputOption, as_table, show
from evenhand.cli.spans import as_text, span_ms

COLUMNS = (
    "operation",
    "held",
    "state",
    "tenant",
    "domain",
    "member",
    "attempt",
    "slots",
    "tokens",
    "until",
)

app = typer.Typer(no_args_is_help=True, help="Calls that the providers' limits count now.")


@app.command("list")
def list_slots(
    *,
    older_than: Annotated[
        str, typer.Option(metavar="SPAN", help="Held for at least so long.")
    ] = "0s",
    tenant: Annotated[str | None, typer.Option(help="Only of this tenant.")] = None,
    domain: Annotated[str | None, typer.Option(help="Only of this budget domain.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 50,
    output: OutputOption = None,
) -> None:
    """List the attempts that hold slots, longest first, those of unknown outcome among them.

    Example:
    evenhand slots list --older-than 10m
    """
    found = pages(
        "/v1/slots",
        operator_bodies.Slots,
        limit=limit,
        older_than_ms=span_ms(older_than),
        tenant=tenant,
        domain=domain,
    )
    rows: list[dict[str, Any]] = [item.model_dump(mode="json") for item in found]
    if as_table(output):
        rows = [{**row, "held": as_text(row["held_ms"])} for row in rows]
    show(rows, COLUMNS, output)
