"""Settings of the programs, checked before a command does anything."""

from typing import TypeVar

from pydantic import ValidationError
from pydantic_settings import BaseSettings

from evenhand.cli.output import Exit, leave, say

S = TypeVar("S", bound=BaseSettings)


def checked(kind: type[S]) -> S:
    """The settings; a wrong one ends the command, named as it is set."""
    try:
        return kind()
    except ValidationError as error:
        for one in error.errors():
            name = "__".join(map(str, one["loc"])).upper()
            say(f"Expected EVENHAND_{name} to be right, but: {one['msg']}")
        leave(Exit.USAGE, "Nothing was done.")
    except (OSError, ValueError) as error:
        leave(Exit.USAGE, f"Expected a TOML file at EVENHAND_CONFIG, but: {error}")
