"""From SIGKILL of the owner to the next grant at a member, after short and long histories."""

import time
from collections.abc import Iterator

from schemas.topics import Topic, full_name
from tests.benchmarks.cell import CELL, Inputs, configure, submission
from tests.benchmarks.crew import Crew
from tests.benchmarks.history import lengthen
from tests.benchmarks.result import Result
from tests.benchmarks.stage import Stage

WAITING = 500
"""Enough that a place never waits for work."""
BUSY_S = 2.0
"""Of work before the kill."""
TAKEOVER_S = 60.0


def run(stage: Stage) -> Iterator[Result]:
    """`kill-to-grant-<entries>`: the standby is warm, so the length must not matter."""
    for entries in (10_000,) if stage.quick else (10_000, 1_000_000):
        value = _kill_to_grant_ms(stage.beside(str(entries)), entries)
        yield Result(name=f"kill-to-grant-{entries}", value=value, unit="ms")


def _kill_to_grant_ms(stage: Stage, entries: int) -> float:
    stage.found_cell()
    lengthen(stage.bootstrap, full_name(stage.prefix, CELL, Topic.JOURNAL), entries)
    owner = stage.scheduler("owner")
    stage.wait_for_role(owner, "owner")
    configure(stage.bootstrap, stage.prefix)
    standby = stage.scheduler("standby")
    stage.wait_for_role(standby, "standby")
    crew = Crew(stage.bootstrap, stage.prefix, members=2, places=16)
    inputs = Inputs(stage.bootstrap, stage.prefix, linger_ms=2)
    sent = 0
    before_s = time.monotonic() + BUSY_S
    while time.monotonic() < before_s:
        sent = _ahead(inputs, crew, sent)
        crew.work()
    epoch = crew.authority_epoch
    killed_s = time.monotonic()
    owner.kill()
    while crew.authority_epoch == epoch:
        assert time.monotonic() < killed_s + TAKEOVER_S, "Expected a takeover"
        sent = _ahead(inputs, crew, sent)
        crew.work()
    taken_s = crew.epoch_at_s
    crew.close()
    stage.stop()
    return (taken_s - killed_s) * 1_000


def _ahead(inputs: Inputs, crew: Crew, sent: int) -> int:
    for number in range(sent, crew.heard["GrantIssued"] + WAITING):
        inputs.send(submission(number))
        sent = number + 1
    inputs.producer.poll(0)
    return sent
