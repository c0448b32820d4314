"""The generated codec writes what an Avro library writes, and no bytes at all surprise it."""

from contextlib import suppress
from io import BytesIO
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from schemas import codec, registry
from schemas.entry import Pulse
from schemas.errors import Undecodable, WordError
from schemas.ids import OwnerId
from schemas.inputs import ConfigProposed, DimensionConfig, DomainConfig
from schemas.primitives import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN
from schemas.units import Millis
from tests.support import core as c

FOLDERS = ("inputs", "events", "journal")
SCHEMAS = {name: s for folder in FOLDERS for name, s in registry.current(folder).items()}
PARSED = {name: fastavro.parse_schema(schema) for name, schema in SCHEMAS.items()}
PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(max_size=200),
    "long": st.integers(LONG_MIN, LONG_MAX) | st.integers(-70, 70),
    "int": st.integers(INT_MIN, INT_MAX) | st.integers(-70, 70),
    "boolean": st.booleans(),
    "bytes": st.binary(max_size=200),
}


def datum(schema: Any, known: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Anything that fits the schema."""
    if isinstance(schema, list):
        return st.none() | datum(schema[1], known)
    if isinstance(schema, str):
        return PRIMITIVES[schema] if schema in PRIMITIVES else datum(known[schema], known)
    if schema["type"] == "array":
        return st.lists(datum(schema["items"], known), max_size=3)
    known[f"{schema['namespace']}.{schema['name']}"] = schema
    if schema["type"] == "fixed":
        return st.binary(min_size=schema["size"], max_size=schema["size"])
    return st.fixed_dictionaries({f["name"]: datum(f["type"], known) for f in schema["fields"]})


ANY = st.sampled_from(sorted(SCHEMAS)).flatmap(
    lambda name: datum(SCHEMAS[name], {}).map(lambda value: (name, value))
)


def reference(name: str, value: Any) -> bytes:
    out = BytesIO()
    fastavro.schemaless_writer(out, PARSED[name], value)
    return registry.header(SCHEMAS[name]) + out.getvalue()


@given(ANY)
def test_every_word_is_written_and_read_as_fastavro_does(chosen: tuple[str, Any]) -> None:
    written = reference(*chosen)
    word = codec.decode(written)
    assert type(word).__name__ == chosen[0]
    assert codec.encode(word) == written


@given(ANY, st.data())
def test_damaged_bytes_are_a_word_or_undecodable(chosen: tuple[str, Any], data: Any) -> None:
    damaged = bytearray(reference(*chosen))
    for _ in range(data.draw(st.integers(1, 4))):
        if len(damaged) > codec.HEADER_BYTES:
            place = data.draw(st.integers(codec.HEADER_BYTES, len(damaged) - 1))
            damaged[place] = data.draw(st.integers(0, 255))
    with suppress(WordError):
        codec.encode(codec.decode(bytes(damaged)))


DIMENSION = DimensionConfig(name="tokens", unit="tokens", kind="sliding", limit=9, window_ms=1)
CONFIG = ConfigProposed(
    scope="domain", name="d", author="a", reason="r", domain=DomainConfig(dimensions=(DIMENSION,))
)


def test_a_block_that_announces_its_bytes_is_read() -> None:
    """A negative count is followed by the size of the block (Avro 1.12, "Arrays")."""
    whole = codec.encode(CONFIG)
    item = codec.wire.write_DimensionConfig(DIMENSION)
    plain = b"\x02" + item + b"\x00"
    assert plain in whole
    sized = b"\x01" + bytes([2 * len(item)]) + item + b"\x00"
    assert codec.decode(whole.replace(plain, sized)) == CONFIG


HEAD = registry.header(SCHEMAS["OperationSubmitted"])


@pytest.mark.parametrize(
    "body",
    [
        b"\x01",
        b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\x04\xff\xff",
        b"\x02t\x04",
        b"",
    ],
    ids=["negative length", "endless text", "71 bits", "no text", "text cut short", "nothing"],
)
def test_an_absurd_body_is_undecodable(body: bytes) -> None:
    with pytest.raises(Undecodable):
        codec.decode(HEAD + body)


def test_an_array_longer_than_its_bytes_is_refused_before_it_is_read() -> None:
    whole = codec.encode(CONFIG)
    item = b"\x02" + codec.wire.write_DimensionConfig(DIMENSION) + b"\x00"
    huge = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    with pytest.raises(Undecodable, match="items"):
        codec.decode(whole.replace(item, huge))


ASKED = c.submitted("t", "k")
PULSE = Pulse(epoch=1, height=1, owner=OwnerId(bytes(16)), time_ms=Millis(1))


@pytest.mark.parametrize(
    "wrong",
    [
        replace(ASKED, prompt_tokens=2**63),
        replace(ASKED, prompt_tokens="many"),
        replace(ASKED, tenant=None),
        replace(ASKED, tenant=7),
        replace(PULSE, owner=b"short"),
        replace(PULSE, owner=None),
    ],
)
def test_a_value_that_does_not_fit_is_never_written(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"bits|bytes|fit"):
        codec.encode(wrong)


def test_an_older_version_becomes_the_class_of_today(monkeypatch: pytest.MonkeyPatch) -> None:
    """Schemas grow by nullable fields with a default; what lacks one is read by fastavro."""
    now = SCHEMAS["ConfigProposed"]
    older = {**now, "fields": [f for f in now["fields"] if f["name"] != "pool"]}
    published = registry.Published(
        name="ConfigProposed", version=0, schema=older, header=registry.header(older)
    )
    read = codec._older(published, now, ConfigProposed)
    monkeypatch.setitem(codec._READERS, published.header, read)
    out = BytesIO()
    plain = codec.msgspec.to_builtins(CONFIG, builtin_types=(bytes,))
    fastavro.schemaless_writer(out, fastavro.parse_schema(older), plain)
    assert codec.decode(published.header + out.getvalue()) == CONFIG
