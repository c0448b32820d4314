"""The examples that the help of the command shows, read from the commands themselves."""

import shlex
from collections.abc import Iterator

import typer
from typer.main import get_command

from evenhand.cli.app import NOUNS, app


def examples() -> Iterator[tuple[str, list[str]]]:
    """Each command's name and its example as a shell would split it."""
    root = get_command(app)
    context = typer.Context(root)
    for noun in NOUNS:
        command = root.get_command(context, noun)  # type: ignore[attr-defined]
        verbs = getattr(command, "commands", None)
        for verb, found in verbs.items() if verbs else [("", command)]:
            _, _, example = (found.help or "").partition("Example:")
            yield f"{noun} {verb}".strip(), shlex.split(example)
