"""Words to bytes and back: Avro in single-object encoding, schemas named by fingerprint."""

from collections.abc import Callable
from io import BytesIO
from operator import attrgetter
from typing import Any, TypeVar, cast

import fastavro

from . import entry, events, inputs, registry
from .errors import Undecodable, UnknownSchema

W = TypeVar("W")

HEADER_BYTES = 10
_MODULES = {"inputs": inputs, "events": events, "journal": entry}

Convert = Callable[[Any], Any]


class _Shape:
    """How a class and the dict that fastavro wants become each other."""

    def __init__(self, cls: type, fields: Any) -> None:
        self.cls = cls
        self.names = tuple(field["name"] for field in fields)
        self.values = attrgetter(*self.names)
        self.down: dict[str, Convert] = {}
        self.up: dict[str, Convert] = {}
        for field in fields:
            pair = _conversions(field["type"])
            if pair:
                self.down[field["name"]], self.up[field["name"]] = pair

    def as_dict(self, word: Any) -> dict[str, Any]:
        datum = dict(zip(self.names, self.values(word), strict=True))
        for name, convert in self.down.items():
            datum[name] = convert(datum[name])
        return datum

    def as_word(self, datum: dict[str, Any]) -> Any:
        for name, convert in self.up.items():
            datum[name] = convert(datum[name])
        return self.cls(**datum)


_SHAPES: dict[str, _Shape] = {}


def _shape(name: str, fields: Any = None) -> _Shape:
    if name not in _SHAPES:
        module = next(module for module in _MODULES.values() if hasattr(module, name))
        _SHAPES[name] = _Shape(getattr(module, name), fields)
    return _SHAPES[name]


def _conversions(avro: Any) -> tuple[Convert, Convert] | None:
    """Down to dicts and up to words, for a field that holds words or an array; else None."""
    if isinstance(avro, list):
        inner = _conversions(next(branch for branch in avro if branch != "null"))
        if inner is None:
            return None
        down, up = inner
        return (
            lambda value: None if value is None else down(value),
            lambda value: None if value is None else up(value),
        )
    if isinstance(avro, str):
        name = avro.rpartition(".")[2]
        return (_shape(name).as_dict, _shape(name).as_word) if name in _SHAPES else None
    if avro["type"] == "record":
        shape = _shape(avro["name"], avro["fields"])
        return shape.as_dict, shape.as_word
    if avro["type"] == "array":
        inner = _conversions(avro["items"])
        if inner is None:
            return list, tuple
        down, up = inner
        return lambda value: [down(v) for v in value], lambda value: tuple(up(v) for v in value)
    return None


_WRITERS: dict[type, tuple[bytes, Any, _Shape]] = {}
_READERS: dict[bytes, tuple[Any, Any, _Shape]] = {}


def _load() -> None:
    current = {}
    for folder in _MODULES:
        for name, schema in registry.current(folder).items():
            parsed = fastavro.parse_schema(schema)
            shape = _shape(name, schema["fields"])
            current[name] = (parsed, shape)
            _WRITERS[shape.cls] = (registry.header(schema), parsed, shape)
    for version in registry.published():
        parsed, shape = current[version.name]
        writer = fastavro.parse_schema(dict(version.schema))
        _READERS[version.header] = (writer, None if writer == parsed else parsed, shape)


_load()


def encode(word: Any) -> bytes:
    """The word in single-object encoding, under the current schema of its class.

    Raises:
        ValueError: a field does not fit its schema; a mistake of ours, never of an input.
    """
    head, schema, shape = _WRITERS[type(word)]
    out = BytesIO()
    out.write(head)
    fastavro.schemaless_writer(out, schema, shape.as_dict(word))
    return out.getvalue()


def decode(data: bytes) -> Any:
    """The word in `data`, read by the published schema that its fingerprint names.

    An older version is resolved to the current class; bytes left over are an error.

    Raises:
        UnknownSchema: no published schema has the fingerprint, or the marker is missing.
        Undecodable: the bytes do not follow that schema.
    """
    found = _READERS.get(data[:HEADER_BYTES])
    if found is None:
        raise UnknownSchema(f"Expected a published fingerprint, but found {data[:10].hex()!r}")
    writer, reader, shape = found
    stream = BytesIO(data)
    stream.seek(HEADER_BYTES)
    try:
        datum = fastavro.schemaless_reader(stream, writer, reader)
    except Exception as error:  # fastavro raises whatever its C code met
        raise Undecodable(
            f"Expected {shape.cls.__name__}, but reading failed: {error!r}"
        ) from error
    if stream.tell() != len(data):
        raise Undecodable(f"Expected the end of {shape.cls.__name__}, but bytes are left over")
    return shape.as_word(cast("dict[str, Any]", datum))


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
