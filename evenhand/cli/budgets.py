"""`evenhand budgets`: what is held, in use and free, and what a domain keeps free for whom."""

from collections.abc import Iterable
from typing import Annotated, Any
from urllib.parse import quote

import typer

from evenhand._words import capacity_bodies
from evenhand.cli.asking import ask
from evenhand.cli.output import OutputOption, as_table, show, show_one

COLUMNS = (
    "domain",
    "tenant",
    "dimension",
    "unit",
    "currency",
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
    show(_dimensions(ask("/v1/budgets", capacity_bodies.Budgets).items), COLUMNS, output)


@app.command("show")
def show_budget(
    domain: Annotated[str, typer.Argument(help="The budget domain.")],
    *,
    output: OutputOption = None,
) -> None:
    """Show one domain: whether it pauses, who saves, what became of the reserve, its dimensions.

    Example:
    evenhand budgets show default
    """
    levels = ask(f"/v1/budgets/{quote(domain, safe='')}", capacity_bodies.Budgets).items
    if not as_table(output):
        show([level.model_dump(mode="json") for level in levels], (), output)
        return
    about = levels[0].model_dump(mode="json", exclude={"tenant", "bulk_reserve", "dimensions"})
    if (reserve := levels[0].bulk_reserve) is not None:
        about |= {f"bulk_reserve_{name}": value for name, value in reserve.model_dump().items()}
    show_one(about, output)
    show(_dimensions(levels), COLUMNS, output)


def _dimensions(levels: Iterable[capacity_bodies.Budget]) -> list[dict[str, Any]]:
    return [
        {"domain": level.domain, "tenant": level.tenant, **dimension.model_dump(mode="json")}
        for level in levels
        for dimension in level.dimensions
    ]
