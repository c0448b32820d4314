"""Every word travels unchanged, apache avro agrees, and no breaking change gets out."""

import copy
import hashlib
import io
import json
from typing import Any

import avro.io
import avro.schema
import pytest
import rfc8785

from schemas import codec, compat, digest, generate, ids, registry
from schemas.errors import Undecodable, UnknownSchema
from schemas.inputs import OperationSubmitted
from schemas.topics import INPUT_TOPICS, OUTPUT_TOPICS, TOPICS, Topic, routes
from tests.support import core as c

FOLDERS = ("inputs", "events", "journal")
SCHEMAS = {name: s for folder in FOLDERS for name, s in registry.current(folder).items()}


def sample(schema: Any, known: dict[str, Any], *, full: bool) -> Any:
    """A datum of the schema: `full` fills what may be null, otherwise it stays null."""
    if isinstance(schema, list):
        return sample(schema[1], known, full=full) if full else None
    if isinstance(schema, str):
        if schema in known:
            return sample(known[schema], known, full=full)
        return {
            "string": "ünïcode",
            "long": -(2**40),
            "int": 7,
            "boolean": True,
            "bytes": b"\x00\xff",
        }[schema]
    if schema["type"] == "fixed":
        known[f"{schema['namespace']}.{schema['name']}"] = schema
        return bytes(range(schema["size"]))
    if schema["type"] == "array":
        return [sample(schema["items"], known, full=full)] * 2
    if schema["type"] == "record":
        known[f"{schema['namespace']}.{schema['name']}"] = schema
        return {f["name"]: sample(f["type"], known, full=full) for f in schema["fields"]}
    raise AssertionError(schema)


def reference(schema: Any, datum: Any) -> bytes:
    out = io.BytesIO()
    avro.io.DatumWriter(avro.schema.parse(json.dumps(schema))).write(
        datum, avro.io.BinaryEncoder(out)
    )
    return out.getvalue()


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_apache_avro_and_our_codec_write_the_same_bytes(name, full):
    schema = SCHEMAS[name]
    datum = sample(schema, {}, full=full)
    head = registry.header(schema)
    written = head + reference(schema, datum)
    word = codec.decode(written)
    assert type(word).__name__ == name
    assert codec.encode(word) == written
    assert codec.decode(codec.encode(word)) == word


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_fingerprints_are_those_of_apache_avro(name):
    parsed = avro.schema.parse(json.dumps(SCHEMAS[name]))
    assert registry.header(SCHEMAS[name])[2:] == parsed.fingerprint("CRC-64-AVRO")


def test_an_unknown_schema_is_named():
    with pytest.raises(UnknownSchema, match="fingerprint"):
        codec.decode(b"\xc3\x01" + b"\x00" * 8 + b"body")
    with pytest.raises(UnknownSchema):
        codec.decode(b"")
    with pytest.raises(UnknownSchema, match="Expected OperationSubmitted"):
        codec.decode_as(OperationSubmitted, codec.encode(c.heartbeat()))


def test_every_truncation_and_every_surplus_is_undecodable():
    whole = codec.encode(c.submitted("t", "k"))
    for length in range(codec.HEADER_BYTES, len(whole)):
        with pytest.raises(Undecodable):
            codec.decode(whole[:length])
    with pytest.raises(Undecodable, match="left over"):
        codec.decode(whole + b"\x00")


def test_bytes_on_the_journal_are_an_entry_noise_or_a_word_of_tomorrow():
    for noise in (b"", b"no word", registry.MARKER, registry.MARKER + b"short"):
        assert codec.decode_entry(noise) is None
    assert codec.decode_entry(codec.encode(c.heartbeat())) is None
    with pytest.raises(UnknownSchema):
        codec.decode_entry(registry.MARKER + b"tomorrow")


def test_what_is_generated_and_published_has_not_drifted():
    for module, text in generate.texts().items():
        assert (registry.HOME / f"{module}.py").read_text() == text
    assert compat.check() == []
    assert compat.unpublished() == []


BREAKING = [
    ("a field without a default", lambda s: s["fields"].append({"name": "new", "type": "long"})),
    ("a renamed field", lambda s: s["fields"][0].update(name="other")),
    ("a removed field", lambda s: s["fields"].pop(0)),
    ("another type", lambda s: s["fields"][0].update(type="double")),
]


@pytest.mark.parametrize(("what", "change"), BREAKING)
def test_a_breaking_change_is_refused(what, change):
    old = SCHEMAS["CancellationRequested"]
    new = copy.deepcopy(old)
    change(new)
    assert compat.incompatibility(new, old) or compat.incompatibility(old, new), what


def test_a_nullable_field_with_a_default_may_be_added():
    old = SCHEMAS["CancellationRequested"]
    new = copy.deepcopy(old)
    new["fields"].append({"name": "new", "type": ["null", "string"], "default": None})
    assert compat.incompatibility(new, old) is None
    assert compat.incompatibility(old, new) is None


VECTORS = [
    (("p", "t", "u", "k"), "a6fd434d9c575c66edb512983b1ff66c"),
    (("pool", "tenant-a", "user-1", "key-1"), "63f0b677ce2e817d7163d1c980f36142"),
    (("self", "ünïcode", "", "🔑"), "d7a760ff77312326d518597ac3f1d7b3"),
    (("pt", "", "u", "k"), "d7fd91ec136709fc7a448c871e0b84bb"),
]


@pytest.mark.parametrize(("scope", "expected"), VECTORS)
def test_operation_ids_follow_the_shared_vectors(scope, expected):
    pool, tenant, user, key = scope
    got = ids.operation_id(pool=pool, tenant=tenant, user=user, idempotency_key=key)
    assert got.hex() == expected


@pytest.mark.parametrize("more", [{}, {"turns_max": 3, "tools": ("b", "a"), "parent": bytes(16)}])
def test_the_payload_digest_is_over_canonical_json_and_ignores_deadline_and_nulls(more):
    asked = c.submitted("t", "k", payload_ref='"quote"\\\n\t\x01 é 🔑', payload_bytes=7, **more)
    fields = {name: getattr(asked, name) for name in digest.SEMANTIC_FIELDS}
    present = {k: v for k, v in fields.items() if v is not None and v != ()}
    hexed = {k: v.hex() if isinstance(v, bytes) else v for k, v in present.items()}
    canonical = rfc8785.dumps({k: list(v) if k == "tools" else v for k, v in hexed.items()})
    assert digest.payload_digest(asked) == hashlib.sha256(canonical).digest()
    same = {"payload_ref": asked.payload_ref, "payload_bytes": 7, **more}
    other = c.submitted("other", "k2", **same)
    later = c.submitted("t", "k", **same, start_within_ms=1)
    assert digest.payload_digest(asked) == digest.payload_digest(other)
    assert digest.payload_digest(asked) == digest.payload_digest(later)
    assert digest.payload_digest(asked) != digest.payload_digest(c.submitted("t", "k"))


def test_every_input_has_one_topic_and_every_event_a_route():
    inputs = [kind for topic in INPUT_TOPICS for kind in TOPICS[topic].holds]
    assert sorted(kind.__name__ for kind in inputs) == sorted(registry.source("inputs"))
    events = {kind.__name__ for topic in OUTPUT_TOPICS for kind in TOPICS[topic].holds}
    assert events == set(registry.source("events"))


def test_an_event_about_a_member_is_delivered_to_it_and_one_without_is_not():
    schema = SCHEMAS["OperationRejected"]
    for full, topics in ((True, [Topic.DECISIONS, Topic.DELIVERIES]), (False, [Topic.DECISIONS])):
        datum = sample(schema, {}, full=full)
        event = codec.decode(registry.header(schema) + reference(schema, datum))
        assert [topic for topic, _ in routes(event)] == topics
