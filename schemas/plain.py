"""Events as JSON over HTTP and back: fields as their schema names them, ids in hex."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from . import events


def plain(event: Any) -> dict[str, Any]:
    """The fields of an event as JSON has them.

    >>> plain(events.CancellationForgotten(tenant="t", operation=bytes(2)))
    {'tenant': 't', 'operation': '0000'}
    """
    fields: dict[str, Any] = _hex(msgspec.to_builtins(event, builtin_types=(bytes,)))
    return fields


def _hex(value: Any) -> Any:
    match value:
        case bytes():
            return value.hex()
        case dict():
            return {name: _hex(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_hex(inner) for inner in value]
        case _:
            return value


def event_of(name: str, fields: Mapping[str, Any]) -> Any:
    """The event with this name and these fields; those that a newer server added are left out.

    Returns: None for an event that only a newer server knows.

    Raises:
        ValueError: a field is missing or has another type.
    """
    kind: type | None = getattr(events, name, None)
    if kind is None or kind not in events.Event.__args__:
        return None
    ids, known = _fields(kind)
    told = {
        one: bytes.fromhex(value) if one in ids and value is not None else value
        for one, value in fields.items()
        if one in known
    }
    return msgspec.convert(told, kind, builtin_types=(bytes,))


@cache
def _fields(kind: type) -> tuple[frozenset[str], frozenset[str]]:
    """Which fields are bytes, and which there are."""
    info = msgspec.inspect.type_info(kind)
    assert isinstance(info, msgspec.inspect.StructType)
    ids = frozenset(one.name for one in info.fields if _is_bytes(one.type))
    return ids, frozenset(one.name for one in info.fields)


def _is_bytes(kind: msgspec.inspect.Type) -> bool:
    if isinstance(kind, msgspec.inspect.UnionType):
        return any(_is_bytes(one) for one in kind.types)
    return isinstance(kind, msgspec.inspect.BytesType)
