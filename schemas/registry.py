"""Every schema ever published, found by its fingerprint."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import fastavro

HOME = Path(__file__).parent
SOURCE = HOME / "avsc"
HISTORY = HOME / "history"
FOLDERS = ("common", "inputs", "events", "journal")
MARKER = b"\xc3\x01"
"""How single-object encoding begins; the fingerprint's eight bytes follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One version of one record: the self-contained schema and what names it in bytes."""

    name: str
    version: int
    schema: Mapping[str, Any]
    header: bytes


def _read(path: Path) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(path.read_text())
    return schema


def source(folder: str) -> dict[str, dict[str, Any]]:
    """The schemas of one folder of `avsc/` by record name, as they were written by hand."""
    return {path.stem: _read(path) for path in sorted((SOURCE / folder).glob("*.avsc"))}


@cache
def named_types() -> dict[str, dict[str, Any]]:
    """Every record and fixed of `avsc/` by its full name."""
    return {
        f"{schema['namespace']}.{schema['name']}": schema
        for folder in FOLDERS
        for schema in source(folder).values()
    }


def self_contained(schema: Any, seen: set[str] | None = None) -> Any:
    """The schema with each named type written out where it is first used, as Avro wants it."""
    seen = set() if seen is None else seen
    if isinstance(schema, list):
        return [self_contained(branch, seen) for branch in schema]
    if isinstance(schema, str):
        if schema not in named_types() or schema in seen:
            return schema
        return self_contained(named_types()[schema], seen)
    if schema["type"] == "array":
        return {**schema, "items": self_contained(schema["items"], seen)}
    if schema["type"] in ("record", "fixed"):
        seen.add(f"{schema['namespace']}.{schema['name']}")
    if schema["type"] == "record":
        fields = [{**f, "type": self_contained(f["type"], seen)} for f in schema["fields"]]
        return {**schema, "fields": fields}
    return schema


def header(schema: Mapping[str, Any]) -> bytes:
    """Marker and CRC-64-AVRO fingerprint, little-endian, as single-object encoding has them."""
    canonical = fastavro.schema.to_parsing_canonical_form(dict(schema))
    return MARKER + bytes.fromhex(fastavro.schema.fingerprint(canonical, "CRC-64-AVRO"))


def current(folder: str) -> dict[str, Any]:
    """The self-contained schemas of one folder by record name."""
    return {name: self_contained(schema) for name, schema in source(folder).items()}


def published() -> Iterator[Published]:
    """Every version in `history/`, oldest first for each record."""
    for folder in sorted(HISTORY.iterdir()):
        for path in sorted(folder.glob("*.avsc"), key=lambda path: int(path.stem)):
            schema = _read(path)
            yield Published(
                name=folder.name, version=int(path.stem), schema=schema, header=header(schema)
            )
