"""`evenhand budgets`: what is held, in use and free, for whom, and what bound in each minute."""

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
    "counted",
    "free",
)
BOUND = ("minute", "level", "dimension", "held_by", "samples", "since", "until", "tenants")

Domain = Annotated[str, typer.Argument(help="The budget domain.")]

app = typer.Typer(no_args_is_help=True, help="Limited capacity of the providers.")


@app.command("list")
def list_budgets(*, output: OutputOption = None) -> None:
    """List every dimension of every budget that the key may see.

    Example:
    evenhand budgets list --output json
    """
    rows = _dimensions(ask("/v1/budgets", capacity_bodies.Budgets).items)
    show(map(_read, rows) if as_table(output) else rows, COLUMNS, output)


@app.command("show")
def show_budget(
    domain: Domain,
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
    show(map(_read, _dimensions(levels)), COLUMNS, output)


@app.command("bound")
def show_bound(
    domain: Domain,
    *,
    minutes: Annotated[int, typer.Option(min=1, help="How many, up to now; a day is kept.")] = 60,
    output: OutputOption = None,
) -> None:
    """Show what held a domain's work back in each minute; needs a key of role operator or auditor.

    The owner samples it, at most once in deferral_sample_ms. A minute without a line is one in
    which nobody was held back, or nothing changed since the line before.

    Example:
    evenhand budgets bound default --minutes 15
    """
    path = f"/v1/budgets/{quote(domain, safe='')}/bound"
    found = ask(path, capacity_bodies.BoundMinutes, minutes=minutes).items
    rows: list[dict[str, Any]] = [minute.model_dump(mode="json") for minute in found]
    if as_table(output):
        rows = [line for row in rows for line in _lines(row)]
    show(rows, BOUND, output)


def _lines(minute: dict[str, Any]) -> list[dict[str, Any]]:
    """A minute as a person reads it: a line for each binding."""
    more = {"held_by": "further", "samples": minute["further"]}
    bound = minute["bound"] + ([more] if minute["further"] else [])
    return [{"minute": minute["minute"], **one} for one in bound]


def _read(dimension: dict[str, Any]) -> dict[str, Any]:
    """A dimension as a person reads it: a limit of zero is a pause."""
    return dimension if dimension["limit"] else {**dimension, "limit": "0 (paused)"}


def _dimensions(levels: Iterable[capacity_bodies.Budget]) -> list[dict[str, Any]]:
    return [
        {"domain": level.domain, "tenant": level.tenant, **dimension.model_dump(mode="json")}
        for level in levels
        for dimension in level.dimensions
    ]
