"""A long past for a young cell: accepted entries in which nothing was decided, a million a minute.

They are written by a term of their own that nobody follows, under a core version that no reader
compares its hash with; every reader folds them like any others.
"""

import time

from confluent_kafka import Producer
from msgspec.structs import replace

from schemas.codec import decode, encode
from schemas.entry import Entry
from schemas.ids import OwnerId
from schemas.units import Millis
from tests.benchmarks import raw
from tests.support.kafka import read_all

FOREIGN_VERSION = 0
FLUSH_EVERY = 20_000


def lengthen(bootstrap: str, journal: str, entries: int) -> None:
    """Append so many entries after the cell's first one."""
    (first,) = read_all(bootstrap, journal)
    genesis: Entry = decode(first.value or b"")
    begun_ms, begun_s = first.append_ms, time.monotonic()
    out = raw.producer(bootstrap, **{"linger.ms": 5})
    entry = replace(
        genesis, owner=OwnerId(b"a past owner-16b"), core_version=FOREIGN_VERSION, events=()
    )
    for offset in range(1, entries + 1):
        entry = replace(
            entry,
            previous=offset - 1,
            height=offset,
            epoch=genesis.epoch + 1,
            takeover=offset == 1,
            published=offset - 1,
            time_ms=Millis(begun_ms + int((time.monotonic() - begun_s) * 1_000)),
        )
        out.produce(journal, encode(entry), partition=0)
        if offset % FLUSH_EVERY == 0:
            _flush(out)
    _flush(out)


def _flush(out: Producer) -> None:
    assert out.flush(raw.WAIT_S) == 0, "Expected the broker to take the entries"
