"""Retries that go round the guard: the same payload under a new key, soon after (requirement R16).

A client that makes a new key for each try defeats the duplicate guard. Nobody can tell that from
two equal intents, so it is only counted: for payloads that have a reference, among the latest of a
tenant, within a span.
"""

import msgspec

from projections.keys import join
from projections.projection import Projection, Seen
from schemas import events as e

SPAN_MS = 600_000
"""Clients that try again do so within minutes."""
RECENT_MAX = 64
"""Payloads of one tenant that are remembered; a row is written with each admission."""
DIGEST_BYTES = 8


class Repeats(msgspec.Struct, array_like=True):
    """One tenant."""

    suspected: int = 0
    recent: dict[bytes, int] = {}
    """Digest of a payload -> when it was admitted last, oldest first."""


def _by_tenant(seen: Seen) -> bytes | None:
    assert isinstance(seen.event, e.OperationAdmitted)
    return join(seen.event.tenant) if seen.event.payload_ref is not None else None


def _apply(row: Repeats, seen: Seen) -> Repeats:
    assert isinstance(seen.event, e.OperationAdmitted)
    digest = seen.event.payload_digest[:DIGEST_BYTES]
    before_ms = row.recent.pop(digest, None)
    row.suspected += before_ms is not None and seen.time_ms < before_ms + SPAN_MS
    row.recent[digest] = seen.time_ms
    if len(row.recent) > RECENT_MAX:
        del row.recent[next(iter(row.recent))]
    return row


REPEATS = Projection(
    name="repeat",
    number=19,
    version=1,
    row=Repeats,
    wants=(e.OperationAdmitted,),
    key=_by_tenant,
    initial=Repeats,
    apply=_apply,
)
