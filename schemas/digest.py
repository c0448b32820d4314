"""The payload digest: one function over named semantic fields, the same for every way in."""

import hashlib
import json

from .ids import PayloadDigest
from .inputs import OperationSubmitted

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)

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
)
"""What an intent is. Never deadline, trace or transport; the id already holds identity."""


def payload_digest(submitted: OperationSubmitted) -> PayloadDigest:
    """SHA-256 over the named fields as canonical JSON (RFC 8785), null fields left out.

    Nulls are left out so that a field added later does not change the digest of an old intent.
    For ASCII names, strings and integers the standard encoder writes exactly RFC 8785; a test
    compares it with a reference.
    """
    fields = {name: getattr(submitted, name) for name in SEMANTIC_FIELDS}
    present = {name: value for name, value in fields.items() if value is not None}
    return PayloadDigest(hashlib.sha256(_CANONICAL.encode(present).encode()).digest())
