"""May this version follow that one? Apache Avro is the judge; every published version is kept."""

import json
from collections.abc import Iterator
from typing import Any

from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from avro.schema import parse

from . import registry

PUBLISHED_FOLDERS = ("inputs", "events", "journal")


def incompatibility(reader: Any, writer: Any) -> str | None:
    """Why `reader` cannot read what `writer` wrote, or None."""
    checker = ReaderWriterCompatibilityChecker()  # type: ignore[no-untyped-call]
    result = checker.get_compatibility(parse(json.dumps(reader)), parse(json.dumps(writer)))
    if result.compatibility is SchemaCompatibilityType.compatible:
        return None
    return "; ".join(sorted(result.messages))


def _current() -> Iterator[tuple[str, Any]]:
    for folder in PUBLISHED_FOLDERS:
        yield from registry.current(folder).items()


def check() -> list[str]:
    """Each current schema against each published version of it, in both directions.

    Old readers must read new records and new readers old ones, since a fleet is never upgraded
    at once and topics are kept.

    Returns: one sentence a breach; empty when all may follow.
    """
    now = dict(_current())
    problems = []
    for old in registry.published():
        if old.name not in now:
            problems.append(f"{old.name} was published and may not be removed")
            continue
        for reader, writer, what in (
            (now[old.name], old.schema, "cannot read its version"),
            (old.schema, now[old.name], "cannot be read by its version"),
        ):
            reason = incompatibility(reader, writer)
            if reason:
                problems.append(f"{old.name} {what} {old.version}: {reason}")
    return problems


def unpublished() -> list[str]:
    """Names of records whose current schema is not their latest version in `history/`."""
    latest = {old.name: old.schema for old in registry.published()}
    return [name for name, schema in _current() if latest.get(name) != schema]


def publish() -> list[str]:
    """Write a new version into `history/` for each unpublished record that may follow its past.

    Returns: the breaches that stopped it, as in `check`.
    """
    problems = check()
    if problems:
        return problems
    now = dict(_current())
    for name in unpublished():
        folder = registry.HISTORY / name
        folder.mkdir(parents=True, exist_ok=True)
        version = len(list(folder.glob("*.avsc"))) + 1
        path = folder / f"{version}.avsc"
        path.write_text(json.dumps(now[name], indent=2, ensure_ascii=False) + "\n")
    return []
