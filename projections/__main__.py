"""`python -m projections`: bring the views up to the journal's end, then print their digests."""

import sys

from .follower import Follower, digests
from .kafka import KafkaEntries
from .ports import FollowerHalted
from .rocks import RocksViews
from .settings import FollowerSettings

READ_WAIT_MS = 1_000


def main() -> int:
    """Fold until the end that was seen at start; equal digests mean equal views (R131)."""
    settings = FollowerSettings()
    try:
        return _fold(settings)
    except FollowerHalted as error:
        sys.stderr.write(f"halted: {type(error).__name__}: {error}\n")
        return 1


def _fold(settings: FollowerSettings) -> int:
    entries = KafkaEntries(bootstrap=settings.bootstrap, topic=settings.journal)
    store = RocksViews(settings.views_path)
    try:
        follower = Follower(
            cell=settings.cell, entries=entries, store=store, done=lambda _reflected: None
        )
        end = entries.end()
        if end is None:
            sys.stderr.write(f"no answer from {settings.bootstrap} about {settings.journal}\n")
            return 1
        while follower.reflected.next_offset < end:
            follower.step(READ_WAIT_MS)
        sys.stdout.write(f"position {follower.reflected.position}\n")
        for name, digest in digests(store).items():
            sys.stdout.write(f"{name} {digest}\n")
    finally:
        entries.close()
        store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
