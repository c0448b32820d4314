"""`evenhand tenants`: who waits, who runs, who used how much, and what a queue waits for."""

from typing import Annotated, Any
from urllib.parse import quote

import typer

from evenhand._words import capacity_bodies
from evenhand.cli.asking import ask
from evenhand.cli.output import OutputOption, as_table, show

COLUMNS = (
    "tenant",
    "weight",
    "waiting",
    "granted",
    "started",
    "settled",
    "rejected",
    "expired",
    "tokens_used",
)
QUEUE = ("lane", "pool", "domain", "waiting", "head", "held_by", "level", "dimension", "not_before")

app = typer.Typer(no_args_is_help=True, help="Those whose work shares the budgets.")


@app.command("list")
def list_tenants(*, output: OutputOption = None) -> None:
    """List the tenants that the key may see.

    Example:
    evenhand tenants list
    """
    found = ask("/v1/tenants", capacity_bodies.Tenants)
    show([item.model_dump(mode="json") for item in found.items], COLUMNS, output)


@app.command("queue")
def show_queue(
    tenant: Annotated[str, typer.Argument(help="Whose work waits.")],
    *,
    output: OutputOption = None,
) -> None:
    """Show what a tenant has waiting, and what each head was last told to wait for.

    Example:
    evenhand tenants queue dev
    """
    found = ask(f"/v1/tenants/{quote(tenant, safe='')}/queue", capacity_bodies.Queues)
    rows: list[dict[str, Any]] = [item.model_dump(mode="json") for item in found.items]
    if as_table(output):
        rows = [{**(row["deferred_on"] or {}), **row} for row in rows]
    show(rows, QUEUE, output)
