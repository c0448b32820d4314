"""The payload digest: one function over named semantic fields, the same for every way in."""

import hashlib
from operator import attrgetter

import msgspec

from .ids import PayloadDigest
from .inputs import OperationSubmitted

SEMANTIC_FIELDS = (
    "pool",
    "domain",
    "lane",
    "tier",
    "connection",
    "effect",
    "prompt_tokens",
    "output_tokens_max",
    "payload_bytes",
    "payload_ref",
    "content_sha256",
    "turns_max",
    "tools",
    "parent",
)
"""What an intent is. Never deadline, trace or transport; the id already holds identity."""

_IN_ORDER = tuple(sorted(SEMANTIC_FIELDS))
_values = attrgetter(*_IN_ORDER)


def payload_digest(submitted: OperationSubmitted) -> PayloadDigest:
    """SHA-256 over the named fields as canonical JSON (RFC 8785).

    What is null or empty is left out so that a field added later does not change the digest of an
    old intent. For sorted ASCII names, strings and integers the encoder writes exactly RFC 8785; a
    test compares it with a reference.
    """
    fields = zip(_IN_ORDER, _values(submitted), strict=True)
    present = {name: value for name, value in fields if value is not None and value != ()}
    if submitted.parent is not None:
        present["parent"] = submitted.parent.hex()
    return PayloadDigest(hashlib.sha256(msgspec.json.encode(present)).digest())
