"""The beginning of a cell on a broker that may have just started."""

from functools import partial

from evenhand.dev.processes import Processes
from streams.shell.journal import AppendFailed
from streams.shell.kafka.admin import ClusterSilent
from streams.shell.settings import Settings
from streams.shell.wiring import apply_topics


def begin(settings: Settings, processes: Processes, within_s: float) -> None:
    """Create the cell's topics and its first entry, as soon as the broker has elected leaders.

    Raises:
        ProcessError: it had none in time, or a program has ended.
    """
    processes.wait_until(partial(_has_begun, settings), "the topics to be there", within_s)


def _has_begun(settings: Settings) -> bool:
    try:
        apply_topics(settings)
    except (AppendFailed, ClusterSilent):
        return False
    return True
