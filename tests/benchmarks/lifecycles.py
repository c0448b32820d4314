"""Submit, grant, start, result, settle: how many a second, and what one costs everywhere."""

import time
from collections.abc import Callable, Iterator

from schemas.topics import Topic
from tests.benchmarks.cell import Arrived, Inputs, configure, submission
from tests.benchmarks.crew import Crew
from tests.benchmarks.result import Result
from tests.benchmarks.stage import Stage

LINGER_MS = 20
"""What is sent within this time travels together, as throughput wants it."""
AHEAD = 2_000
"""Submissions that wait at any time: enough that no place is ever idle."""
MEMBERS, PLACES = 2, 256


def bare(stage: Stage) -> Iterator[Result]:
    """`lifecycles-bare`, `core-us-lifecycle`, and the same with a standby and the API beside."""
    stage.found_cell()
    programs = {"owner": stage.scheduler("owner")}
    configure(stage.bootstrap, stage.prefix)
    crew = Crew(stage.bootstrap, stage.prefix, members=MEMBERS, places=PLACES, linger_ms=LINGER_MS)
    warm_up, count = (10_000, 8_000) if stage.quick else (20_000, 60_000)
    run = _Run(stage, crew.work)
    run.play(warm_up, "warm-up")
    with stage.cpu(**programs) as cpu:
        seconds = run.play(count, "timed")
    yield Result(name="lifecycles-bare", value=count / seconds, unit="1/s")
    costs = cpu.per(count)
    yield Result(name="core-us-lifecycle", value=sum(costs.values()), unit="us", core_us=costs)
    programs |= {"standby": stage.scheduler("standby"), "api": stage.api().process}
    stage.wait_for_role(programs["standby"], "standby", meanwhile=crew.work)
    run.play(count // 10, "settling")
    with stage.cpu(**programs) as cpu:
        run.play(count // 2, "with all")
    costs = cpu.per(count // 2)
    yield Result(name="core-us-lifecycle-all", value=sum(costs.values()), unit="us", core_us=costs)
    crew.close()


def sdk(stage: Stage) -> Iterator[Result]:
    """`lifecycles`: two worker processes of the SDK; submissions by a plain producer."""
    stage.found_cell()
    programs = {"owner": stage.scheduler("owner")}
    configure(stage.bootstrap, stage.prefix)
    for number in range(MEMBERS):
        name = f"worker-{number}"
        programs[name] = stage.start(name, "-m", "tests.benchmarks.worker", str(PLACES))
    warm_up, count = (2_000, 4_000) if stage.quick else (10_000, 40_000)
    run = _Run(stage, lambda: None)
    run.play(warm_up, "warm-up")
    with stage.cpu(**programs) as cpu:
        seconds = run.play(count, "timed")
    yield Result(name="lifecycles", value=count / seconds, unit="1/s", core_us=cpu.per(count))


class _Run:
    """Keeps work waiting and counts settlements."""

    def __init__(self, stage: Stage, work: Callable[[], None]) -> None:
        self._inputs = Inputs(stage.bootstrap, stage.prefix, linger_ms=LINGER_MS)
        self._settled = Arrived(stage.bootstrap, stage.prefix, Topic.SETTLEMENTS)
        self._work = work

    def play(self, count: int, tag: str) -> float:
        """Run `count` lifecycles to their last settlement; seconds."""
        begun, first, sent = time.monotonic(), self._settled.count, 0
        while (done := self._settled.count - first) < count:
            for number in range(sent, min(count, done + AHEAD)):
                self._inputs.send(submission(number, tag))
                sent = number + 1
            self._inputs.producer.poll(0)
            self._work()
            self._settled.look()
        return time.monotonic() - begun
