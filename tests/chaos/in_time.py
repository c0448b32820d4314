"""Calls in the provider's record beside the starts in the journal: none goes out too late (R171).

An accepted start is on the log before anybody may act on it, so that its call must have arrived
within send-within after the append. The provider tells the host's monotonic clock, the broker on
the same host its wall clock.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from schemas import events as e
from schemas.codec import decode
from schemas.entry import Entry
from schemas.ids import provider_key
from tests.support.kafka import Got

SLACK_MS = 700
"""On a busy host: between the last look at the clock and the call, between arrival and record."""
ROUNDED_MS = 2


def late(
    journal: Iterable[Got], record: Iterable[Mapping[str, Any]], send_within_ms: int
) -> Iterator[str]:
    """Each call that came too late for the last start before it."""
    starts: dict[str, list[int]] = defaultdict(list)
    for got in journal:
        entry = decode(got.value or b"")
        for one in entry.events if isinstance(entry, Entry) else ():
            event = decode(one.body)
            if isinstance(event, e.StartAccepted):
                starts[provider_key(event.operation, event.incarnation)].append(got.append_ms)
    ahead_ns = time.time_ns() - time.monotonic_ns()
    for call in record:
        arrived_ms = (call["arrived_ns"] + ahead_ns) // 1_000_000
        known = starts[call["idempotency_key"]]
        begun_ms = max((at for at in known if at <= arrived_ms + ROUNDED_MS), default=None)
        if begun_ms is not None and arrived_ms > begun_ms + send_within_ms + SLACK_MS:
            span = f"{arrived_ms - begun_ms} ms after its start"
            yield f"Expected {call['idempotency_key']} within {send_within_ms} ms, but came {span}"
