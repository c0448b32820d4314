"""Words to bytes and back: Avro in single-object encoding, schemas named by fingerprint."""

from collections.abc import Callable
from io import BytesIO
from typing import Any, TypeVar

import fastavro
import msgspec

from . import entry, events, inputs, registry, wire
from .errors import Undecodable, UnknownSchema
from .primitives import Malformed

W = TypeVar("W")

HEADER_BYTES = 10
_MODULES = {"inputs": inputs, "events": events, "journal": entry}

_WRITERS: dict[type, tuple[Callable[[Any, bytes], bytes], bytes]] = {}
"""By class: its function of `wire`, and how its bytes begin."""
_READERS: dict[bytes, Callable[[bytes, int], tuple[Any, int]]] = {}
"""By how bytes begin: the function that reads what follows."""


def _older(published: registry.Published, now: Any, cls: type) -> Callable[..., tuple[Any, int]]:
    """Reads a version that is not the current one, which fastavro resolves."""
    writer = fastavro.parse_schema(dict(published.schema))
    reader = fastavro.parse_schema(now)

    def read(data: bytes, at: int) -> tuple[Any, int]:
        stream = BytesIO(data)
        stream.seek(at)
        datum = fastavro.schemaless_reader(stream, writer, reader)
        return msgspec.convert(datum, cls, builtin_types=(bytes,)), stream.tell()

    return read


def _load() -> None:
    current = {}
    for folder, module in _MODULES.items():
        for name, schema in registry.current(folder).items():
            cls, head = getattr(module, name), registry.header(schema)
            current[name] = schema, cls
            _WRITERS[cls] = getattr(wire, f"write_{name}"), head
            _READERS[head] = getattr(wire, f"read_{name}")
    for published in registry.published():
        if published.header not in _READERS:
            _READERS[published.header] = _older(published, *current[published.name])


_load()


def encode(word: Any) -> bytes:
    """The word in single-object encoding, under the current schema of its class.

    Raises:
        ValueError: a field does not fit its schema; a mistake of ours, never of an input.
    """
    write, head = _WRITERS[type(word)]
    try:
        return write(word, head)
    except (TypeError, AttributeError, KeyError) as error:
        raise ValueError(f"Expected {type(word).__name__} to fit its schema: {error!r}") from error


def decode(data: bytes) -> Any:
    """The word in `data`, read by the published schema that its fingerprint names.

    An older version is resolved to the current class; bytes left over are an error.

    Raises:
        UnknownSchema: no published schema has the fingerprint, or the marker is missing.
        Undecodable: the bytes do not follow that schema.
    """
    read = _READERS.get(data[:HEADER_BYTES])
    if read is None:
        raise UnknownSchema(f"Expected a published fingerprint, but found {data[:10].hex()!r}")
    try:
        word, end = read(data, HEADER_BYTES)
    except (IndexError, UnicodeDecodeError, Malformed) as error:
        raise Undecodable(f"Expected a word, but reading failed: {error!r}") from error
    if end != len(data):
        difference = "bytes are left over" if end < len(data) else "the bytes end before it"
        raise Undecodable(f"Expected the end of {type(word).__name__}, but {difference}")
    return word


def decode_as(cls: type[W], data: bytes) -> W:
    """As `decode`, for a topic that holds one kind of word.

    Raises:
        UnknownSchema: also when the word is of another kind.
        Undecodable: as in `decode`.
    """
    word = decode(data)
    if not isinstance(word, cls):
        raise UnknownSchema(f"Expected {cls.__name__}, but found {type(word).__name__}")
    return word


def decode_entry(data: bytes) -> entry.Entry | None:
    """The entry in a record of the journal, or None for a stranger's bytes, which are noise.

    Raises:
        UnknownSchema: a word of ours that no schema here names. A newer program wrote it: stop,
            since taking it for noise would fork the cell (R142).
    """
    try:
        word = decode(data)
    except UnknownSchema:
        if data.startswith(registry.MARKER) and len(data) >= HEADER_BYTES:
            raise
        return None
    except Undecodable:
        return None
    return word if isinstance(word, entry.Entry) else None
