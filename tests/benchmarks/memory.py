"""Whether the owner's memory follows the backlog: it must follow tenants and budgets only."""

import time
from collections.abc import Iterator

import psutil

from schemas.inputs import CancellationRequested
from schemas.topics import Topic
from tests.benchmarks.cell import Arrived, Inputs, configure, operation_of, submission
from tests.benchmarks.result import Result
from tests.benchmarks.stage import Stage

SUBMISSIONS = 200_000
LEFT = 1_000
CHUNK = 2_000
"""Submissions that are under way at once."""
SETTLE_S = 2.0


def run(stage: Stage) -> Iterator[Result]:
    """`owner-memory`: resident, with all submissions waiting; the floor is with 1,000 left.

    Both cells take the same submissions; in one of them all but 1,000 are cancelled on the way.
    """
    submissions = SUBMISSIONS // 40 if stage.quick else SUBMISSIONS
    few = _resident_mb(stage.beside("few"), submissions, cancelled=submissions - LEFT)
    many = _resident_mb(stage.beside("many"), submissions, cancelled=0)
    yield Result(name="owner-memory", value=many, unit="MB", floor=few)


def _resident_mb(stage: Stage, submissions: int, *, cancelled: int) -> float:
    stage.found_cell()
    owner = stage.scheduler("owner")
    configure(stage.bootstrap, stage.prefix)
    inputs = Inputs(stage.bootstrap, stage.prefix, linger_ms=5)
    decided = Arrived(stage.bootstrap, stage.prefix, Topic.DECISIONS)
    for first in range(0, submissions, CHUNK):
        asked = [submission(number) for number in range(first, min(first + CHUNK, submissions))]
        for one in asked:
            inputs.send(one)
        decided.wait_for(len(asked))
        gone = asked[: max(0, cancelled - first)]
        for one in gone:
            inputs.send(CancellationRequested(tenant=one.tenant, operation=operation_of(one)))
        decided.wait_for(len(gone))
    time.sleep(SETTLE_S)  # the last batches reach the disk; nothing is waited for but memory
    resident = psutil.Process(owner.pid).memory_info().rss / 1e6
    stage.stop()
    return float(resident)
