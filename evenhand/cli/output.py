"""How a command answers: data on stdout as table or JSON, messages on stderr, and its exit code."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum, StrEnum
from typing import Annotated, Any, Final, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from evenhand._words import codes
from evenhand.errors import EvenhandError, Unreachable

PIPED_WIDTH: Final = 200
"""Columns of a table that no terminal limits."""
Row = Mapping[str, Any]


class Exit(IntEnum):
    """What the shell is told."""

    DONE = 0
    ERROR = 1
    USAGE = 2
    REFUSED = 3
    """For good: the same again would be refused again."""
    TRY_LATER = 4
    NOT_FOUND = 5
    NOT_ALLOWED = 6
    DIFFERENCE = 7
    """A check found a difference."""
    INTERRUPTED = 130


class Output(StrEnum):
    """Forms of data."""

    TABLE = "table"
    JSON = "json"


OutputOption = Annotated[
    Output | None,
    typer.Option("--output", help="Form of the data; a table on a terminal, else JSON."),
]

_EXITS = {
    codes.Code.NOT_FOUND: Exit.NOT_FOUND,
    codes.Code.UNAUTHENTICATED: Exit.NOT_ALLOWED,
    codes.Code.FORBIDDEN: Exit.NOT_ALLOWED,
}


def show(rows: Iterable[Row], columns: Sequence[str], output: Output | None) -> None:
    """Print a list: the named columns as a table, or everything as one JSON array."""
    if not as_table(output):
        typer.echo(json.dumps([dict(row) for row in rows], indent=2))
        return
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column.replace("_", " "), overflow="fold", no_wrap=column == columns[0])
    for row in rows:
        table.add_row(*(_cell(row.get(column)) for column in columns))
    _console().print(table)


def show_one(row: Row, output: Output | None) -> None:
    """Print one thing: a line for each field that is known, or a JSON object."""
    if not as_table(output):
        typer.echo(json.dumps(dict(row), indent=2))
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, value in row.items():
        if value is not None:
            table.add_row(name.replace("_", " "), _cell(value))
    _console().print(table)


def as_table(output: Output | None) -> bool:
    """Whether a person reads it."""
    return sys.stdout.isatty() if output is None else output is Output.TABLE


def say(message: str) -> None:
    """A message for a person."""
    typer.echo(message, err=True)


def leave(code: Exit, message: str) -> NoReturn:
    """End the command with a message for a person."""
    say(message)
    raise typer.Exit(code)


def told(error: EvenhandError) -> Exit:
    """Say what went wrong, and when to come again. Returns: the exit code."""
    name = "" if error.code is None else f" ({error.code})"
    say(f"{error}{name}")
    if error.budget is not None and error.budget.dimension is not None:
        say(f"In the way: {error.budget.level} {error.budget.dimension} of {error.budget.domain}.")
    if error.code in _EXITS:
        return _EXITS[error.code]
    if isinstance(error, Unreachable):
        return Exit.TRY_LATER
    if error.code is not None and codes.CODES[error.code].temporary:
        when = "later" if error.retry_at is None else f"at {error.retry_at.isoformat()}"
        say(f"Try again {when}.")
        return Exit.TRY_LATER
    return Exit.ERROR if error.code is None else Exit.REFUSED


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)


def _cell(value: Any) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case dict():
            return ", ".join(f"{name} {_cell(one)}" for name, one in value.items()) or "-"
        case list():
            return ", ".join(map(_cell, value)) or "-"
        case _:
            return str(value)
