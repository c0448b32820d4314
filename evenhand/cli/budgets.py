"""`evenhand budgets`: what is held, in use and free, per domain, level and dimension."""

from typing import Any

import typer

from evenhand._words import capacity_bodies
from evenhand.cli.asking import ask
from evenhand.cli.output import OutputOption, show

COLUMNS = (
    "domain",
    "tenant",
    "dimension",
    "unit",
    "kind",
    "window_ms",
    "limit",
    "held",
    "in_use",
    "free",
)

app = typer.Typer(no_args_is_help=True, help="Limited capacity of the providers.")


@app.command("list")
def list_budgets(*, output: OutputOption = None) -> None:
    """List every dimension of every budget that the key may see.

    Example:
    evenhand budgets list --output json
    """
    found = ask("/v1/budgets", capacity_bodies.Budgets)
    rows: list[dict[str, Any]] = [
        {"domain": level.domain, "tenant": level.tenant, **dimension.model_dump(mode="json")}
        for level in found.items
        for dimension in level.dimensions
    ]
    show(rows, COLUMNS, output)
