"""The composition root of the read side: a follower of a real journal over RocksDB."""

from collections.abc import Callable

from .kafka import KafkaEntries
from .live import LiveViews
from .rocks import RocksViews
from .settings import FollowerSettings


def live_views(settings: FollowerSettings, *, halted: Callable[[], None]) -> LiveViews:
    """Views of the cell that the settings name, not yet started.

    Raises:
        JournalReplaced: the views on disk are of another journal.
        JournalMissing: there is no such topic, or no broker.
        ViewsInUse: another process has the views open.
    """
    entries = KafkaEntries(bootstrap=settings.bootstrap, topic=settings.journal)
    store = RocksViews(settings.views_path)
    return LiveViews(cell=settings.cell, entries=entries, store=store, halted=halted)
