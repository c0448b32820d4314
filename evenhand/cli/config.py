"""`evenhand config`: change what decisions read, and show what programs were told."""

import os
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic_settings import BaseSettings

from api.settings import ApiSettings
from evenhand._transport import Kafka
from evenhand._words import events
from evenhand.cli import configuration
from evenhand.cli.output import Exit, OutputOption, leave, say, show
from evenhand.cli.proposing import propose
from evenhand.cli.settings import checked
from streams.shell.ports import Timing
from streams.shell.settings import FILE_VARIABLE, Settings

app = typer.Typer(
    no_args_is_help=True, help="Configuration (decisions read it) and settings (programs do)."
)


@app.command("apply")
def apply(
    file: Annotated[Path, typer.Argument(help="TOML or JSON.", exists=True, dir_okay=False)],
    *,
    author: Annotated[str, typer.Option(help="Who asks.", envvar="USER")] = "operator",
    reason: Annotated[str, typer.Option(help="Why; kept with the change.")] = "config apply",
    wait_s: Annotated[float, typer.Option(min=0, help="How long to wait for decisions.")] = 15.0,
    output: OutputOption = None,
) -> None:
    """Propose everything that a file names, and report the owner's answer to each part.

    The whole file is checked before anything is sent. Cell, domains, pools and tenants are decided
    in this order. Exit code 3 if anything was refused.

    Example:
    evenhand config apply evenhand/dev/config.toml --reason "first set-up"
    """
    kafka = Kafka()
    try:
        said = configuration.read(file)
        stages = configuration.stages(said, cell=kafka.cell, author=author, reason=reason)
    except ValueError as error:
        leave(Exit.USAGE, f"Nothing was sent: {error}")
    if said == configuration.ConfigFile(author=said.author, reason=said.reason):
        leave(Exit.USAGE, "Nothing was sent: the file names no cell, domain, pool or tenant")
    answers = list(propose(kafka, stages, wait_s=wait_s))
    show([_row(answer) for answer in answers], ("scope", "name", "answer", "version"), output)
    refused = [one for one in answers if isinstance(one, events.ConfigRefused)]
    for one in refused:
        say(f"{one.scope} {one.name}: {one.detail} ({one.code})")
    if refused:
        raise typer.Exit(Exit.REFUSED)


@app.command("show")
def show_settings(*, output: OutputOption = None) -> None:
    """Show every setting of every program, and where its value comes from.

    Example:
    evenhand config show
    """
    rows = {}
    for settings in (checked(Settings), checked(ApiSettings)):
        for setting, value, is_default in _settings(settings):
            rows[setting] = {
                "setting": setting,
                "value": _text(value),
                "origin": _origin(setting, is_default=is_default),
            }
    show(rows.values(), ("setting", "value", "origin"), output)


def _row(answer: events.ConfigActivated | events.ConfigRefused) -> dict[str, Any]:
    said = f"refused: {answer.code}" if isinstance(answer, events.ConfigRefused) else "activated"
    version = answer.version or None  # 0: nothing is active under this name
    return {"scope": answer.scope, "name": answer.name, "answer": said, "version": version}


def _settings(settings: BaseSettings) -> Iterator[tuple[str, Any, bool]]:
    """Each variable with its value, and whether that is the default; spans of the engine apart."""
    for name in type(settings).model_fields:
        variable, value = f"EVENHAND_{name.upper()}", getattr(settings, name)
        if not isinstance(value, Timing):
            yield variable, value, name not in settings.model_fields_set
            continue
        for span in fields(value):
            told = getattr(value, span.name)
            yield f"{variable}__{span.name.upper()}", told, told == span.default


def _origin(variable: str, *, is_default: bool) -> str:
    if variable in map(str.upper, os.environ):
        return "environment"
    return "default" if is_default else f"file {os.environ.get(FILE_VARIABLE)}"


def _text(value: Any) -> str | int | float | None:
    return value if value is None or isinstance(value, (int, float)) else str(value)
