"""`evenhand dead-letters`: operations that are over unless a person wants another attempt."""

from enum import StrEnum
from typing import Annotated

import typer

from evenhand._words import operator_bodies
from evenhand.cli.asking import pages
from evenhand.cli.output import OutputOption, show

COLUMNS = ("operation", "state", "code", "tenant", "domain", "effect", "attempt", "ended_at")

app = typer.Typer(no_args_is_help=True, help="Operations that await a person.")


class State(StrEnum):
    """Why they do."""

    DEAD = "dead"
    UNKNOWN_CLOSED = "unknown_closed"


@app.command("list")
def list_dead_letters(
    *,
    state: Annotated[State | None, typer.Option(help="Only in this state.")] = None,
    tenant: Annotated[str | None, typer.Option(help="Only of this tenant.")] = None,
    domain: Annotated[str | None, typer.Option(help="Only of this budget domain.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 50,
    output: OutputOption = None,
) -> None:
    """List operations whose attempts are used up, or whose outcome was never known.

    `evenhand operations retry` tries one of them again.

    Example:
    evenhand dead-letters list --domain default
    """
    found = pages(
        "/v1/dead-letters",
        operator_bodies.DeadLetters,
        limit=limit,
        state=None if state is None else state.value,
        tenant=tenant,
        domain=domain,
    )
    show([item.model_dump(mode="json") for item in found], COLUMNS, output)
