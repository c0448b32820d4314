"""`evenhand tenants`: who waits, who runs, who used how much."""

import typer

from evenhand._words import capacity_bodies
from evenhand.cli.asking import ask
from evenhand.cli.output import OutputOption, show

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

app = typer.Typer(no_args_is_help=True, help="Those whose work shares the budgets.")


@app.command("list")
def list_tenants(*, output: OutputOption = None) -> None:
    """List the tenants that the key may see.

    Example:
    evenhand tenants list
    """
    found = ask("/v1/tenants", capacity_bodies.Tenants)
    show([item.model_dump(mode="json") for item in found.items], COLUMNS, output)
