"""A configuration file (TOML or JSON) and the proposals that it makes, checked before any is sent.

reason = "first set-up"

[domains.gpt]
send_within_ms = 500
[[domains.gpt.dimensions]]
name = "tokens-60s"
unit = "tokens"
kind = "sliding"
limit = 100_000
window_ms = 60_000

[[domains.gpt.dimensions]]
name = "tokens-day"
unit = "tokens"
kind = "fixed"
limit = 50_000_000
reset_zone = "Europe/Berlin"

[pools.default]
[tenants.acme]
weight = 2
"""

import json
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, TypedDict

import msgspec

from evenhand._words import codec, inputs
from evenhand.cli.zones import filled_in

Proposals = list[inputs.ConfigProposed]


_PARTS: dict[str, Any] = {
    "domains": inputs.DomainConfig,
    "pools": inputs.PoolConfig,
    "tenants": inputs.TenantConfig,
}
_WORDS = {
    "int": "a whole number",
    "float": "a fraction",
    "str": "text",
    "bool": "true or false",
    "object": "a table",
    "array": "a list",
}
"""What the file calls what msgspec calls so."""


class _By(TypedDict):
    author: str
    reason: str


class ConfigFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a file may say; every part is optional, and what it does not name stays as it is."""

    author: str | None = None
    reason: str | None = None
    cell: inputs.CellConfig | None = None
    domains: dict[str, inputs.DomainConfig] = {}
    pools: dict[str, inputs.PoolConfig] = {}
    tenants: dict[str, inputs.TenantConfig] = {}


def read(path: Path, year: int | None = None) -> ConfigFile:
    """The file, checked; days of time zones are told from a year on, by default the current one.

    Raises:
        ValueError: it is no TOML or JSON, or a field is wrong; the message says where.
    """
    text = path.read_text()
    said: Any = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    year = year or datetime.now(UTC).year  # noqa: TID251 - what is sent are instants
    filled = filled_in(said, year)
    try:
        return msgspec.convert(filled, ConfigFile)
    except msgspec.ValidationError as error:
        raise ValueError(_in_words(_named(filled, str(error)))) from error


def _named(said: Any, detail: str) -> str:
    """The same with the name of the part that is wrong, which msgspec does not tell."""
    for group, kind in _PARTS.items():
        parts = said.get(group)
        for name, part in parts.items() if isinstance(parts, dict) else ():
            try:
                msgspec.convert(part, kind)
            except msgspec.ValidationError as error:
                found = str(error)
                path = f"`{group}.{name}"
                return found.replace("`$", path) if "`$" in found else f"{found} - at {path}`"
    return detail.replace("`$.", "`")


def _in_words(detail: str) -> str:
    for kind, word in _WORDS.items():
        detail = detail.replace(f"`{kind}`", word)
    return detail.replace(", got ", ", but got ")


def stages(said: ConfigFile, *, cell: str, author: str, reason: str) -> list[Proposals]:
    """The proposals in stages: each stage may refer to what the one before activated.

    Raises:
        ValueError: a number is larger than any word can hold.
    """
    made = list(_stages(said, cell=cell, author=author, reason=reason))
    for proposal in chain(*made):
        try:
            codec.encode(proposal)
        except ValueError as error:
            raise ValueError(f"{proposal.scope} {proposal.name}: {error}") from error
    return made


def _stages(said: ConfigFile, *, cell: str, author: str, reason: str) -> Iterator[Proposals]:
    by = _By(author=said.author or author, reason=said.reason or reason)
    if said.cell is not None:
        yield [inputs.ConfigProposed(scope="cell", name=cell, cell=said.cell, **by)]
    yield [
        inputs.ConfigProposed(scope="domain", name=name, domain=domain, **by)
        for name, domain in said.domains.items()
    ]
    yield [
        inputs.ConfigProposed(scope="pool", name=name, pool=pool, **by)
        for name, pool in said.pools.items()
    ]
    yield [
        inputs.ConfigProposed(scope="tenant", name=name, tenant=tenant, **by)
        for name, tenant in said.tenants.items()
    ]
