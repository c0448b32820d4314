"""The `evenhand` command: a noun's module is loaded when the noun is asked for, so it starts light.

The table names them all. A noun whose libraries are not installed says which extra it needs.
"""

import sys
from importlib import import_module
from typing import Any, Final

import stamina
import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from evenhand.cli.output import Exit, say, told
from evenhand.errors import EvenhandError

NOUNS: Final = {
    "dev": "programs:dev",
    "demo": "programs:demo",
    "scheduler": "programs:scheduler",
    "api": "programs:api",
    "topics": "topics:app",
    "config": "config:app",
    "operations": "operations:app",
    "unknowns": "unknowns:app",
    "dead-letters": "dead_letters:app",
    "slots": "slots:app",
    "tenants": "tenants:app",
    "budgets": "budgets:app",
    "keys": "keys:app",
    "journal": "journal:app",
    "audit": "audit:audit",
}
"""Noun or verb, and where it is: a Typer application or the function of a single command."""


class Nouns(TyperGroup):
    """Typer's own way to find a command is to have all of them; this one loads it."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - Typer's signature
        """In the order in which a newcomer meets them."""
        return list(NOUNS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - Typer's signature
        """The command of a noun; None for an unknown one."""
        if cmd_name not in NOUNS:
            return None
        module, name = NOUNS[cmd_name].split(":")
        try:
            found = getattr(import_module(f"evenhand.cli.{module}"), name)
        except ModuleNotFoundError as missing:
            anything = {"allow_extra_args": True, "ignore_unknown_options": True}
            command = _single(_needs_extra(missing), **anything)
        else:
            command = get_group(found) if isinstance(found, typer.Typer) else _single(found)
        command.name = cmd_name
        return command


def _single(function: Any, **settings: Any) -> Any:
    app = typer.Typer(add_completion=False)
    app.command(context_settings=settings)(function)
    return get_command(app)


def _needs_extra(missing: ModuleNotFoundError) -> Any:
    def unavailable() -> None:
        say(f"Expected the extra `server` (pip install 'evenhand[server]'), but {missing}")
        raise typer.Exit(Exit.ERROR)

    unavailable.__doc__ = "Needs the extra `server`."
    return unavailable


app = typer.Typer(
    cls=Nouns,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Evenhand: fair dispatch under fixed provider budgets, on Kafka.",
)


@app.callback()
def main() -> None:
    """Evenhand: fair dispatch under fixed provider budgets, on Kafka.

    Settings come from EVENHAND_* in the environment; `evenhand config show` lists them.
    """


def run() -> None:
    """Run one command and end the process with its exit code."""
    # It would tell of every retry on stdout, which belongs to the data.
    stamina.instrumentation.set_on_retry_hooks(())
    try:
        app()
    except EvenhandError as error:
        sys.exit(told(error))
