"""The words: the copy that an installed wheel carries, or `schemas` in the repository.

A service may have a package `schemas` of its own, so no other module of the SDK names it. Modules
are loaded when first asked for: `codec` needs the extra `kafka`, the others need no extra.
"""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from schemas import (
        bodies,
        capacity_bodies,
        codec,
        codes,
        digest,
        envelope,
        errors,
        events,
        ids,
        inputs,
        journal,
        member_bodies,
        operator_bodies,
        plain,
        problems,
        topics,
        units,
    )
else:
    _HOME = "evenhand._schemas" if find_spec("evenhand._schemas") else "schemas"

    def __getattr__(name: str) -> ModuleType:
        if name not in __all__:
            raise AttributeError(f"Expected a module of the words, but found {name!r}")
        return import_module(f"{_HOME}.{name}")


__all__ = [
    "bodies",
    "capacity_bodies",
    "codec",
    "codes",
    "digest",
    "envelope",
    "errors",
    "events",
    "ids",
    "inputs",
    "journal",
    "member_bodies",
    "operator_bodies",
    "plain",
    "problems",
    "topics",
    "units",
]
