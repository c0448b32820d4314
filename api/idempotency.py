"""From an idempotency key to the one answer of its operation: new, repeated, refused, other."""

from enum import Enum
from typing import Any

import http_sf

from projections.views.operation import Operation
from schemas.body import NAME_CHARS_MAX
from schemas.codes import Code
from schemas.phase import Phase

from .ports import Sent
from .problems import Refused


class Answer(Enum):
    """What the views say about a submission."""

    UNKNOWN = "not decided yet, or the key is free"
    ADMITTED = "this submission was admitted"
    REPLAYED = "the key was used for the same payload before"
    REFUSED = "this submission was refused"
    REFUSED_BEFORE = "the key was refused for good before"
    MISMATCH = "the key was used for another payload before"


def read_key(header: str) -> str:
    """The key in an `Idempotency-Key` header: a structured-field string, or bare.

    Raises:
        Refused: it is empty or longer than any key may be.
    """
    if header is None or not header.strip():
        raise Refused(
            Code.IDEMPOTENCY_KEY_MISSING, "Expected an Idempotency-Key, but there is none"
        )
    key = _unquoted(header.strip())
    if not 0 < len(key) <= NAME_CHARS_MAX or not key.isprintable():
        raise Refused(
            Code.INVALID_FIELD,
            f"Expected a key of 1 to {NAME_CHARS_MAX} printable characters, but it is not",
        )
    return key


def _unquoted(text: str) -> str:
    if not text.startswith('"'):
        return text
    try:
        item: Any = http_sf.parse(text.encode(), tltype="item")
    except http_sf.StructuredFieldError as error:
        raise Refused(Code.MALFORMED, f"Expected a structured-field string, but {error}") from error
    return str(item[0])


def answer_of(row: Operation | None, digest: bytes, sent: Sent | None) -> Answer:
    """What became of a submission, from its operation's row.

    Args:
        row: the operation of the key, None if there is none.
        digest: payload digest of the submission.
        sent: where the submission is on the log and taken from; None before it is sent.
    """
    if row is None:
        return Answer.UNKNOWN
    own = sent is not None and row.answered == (sent.partition, sent.offset)
    if row.phase is Phase.REJECTED and not row.binds_key:
        # The key is free (R188). Every such refusal is the newest: ours was refused, then another.
        return Answer.UNKNOWN if sent is None else Answer.REFUSED
    if own:
        return Answer.REFUSED if row.phase is Phase.REJECTED else Answer.ADMITTED
    if row.payload_digest != digest:
        return Answer.MISMATCH
    return Answer.REFUSED_BEFORE if row.phase is Phase.REJECTED else Answer.REPLAYED
