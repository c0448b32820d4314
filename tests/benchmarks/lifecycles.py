"""Submit, grant, start, result, settle: how many a second, and what one costs everywhere."""

import time
from collections.abc import Callable, Iterator

from schemas.topics import Topic
from tests.benchmarks.carry import carry
from tests.benchmarks.cell import Arrived, Inputs, configure, submission
from tests.benchmarks.crew import AHEAD, LINGER_MS, Crew
from tests.benchmarks.result import Result
from tests.benchmarks.stage import Stage
from tests.benchmarks.tape import journal_end

MEMBERS, PLACES = 2, 256
WARM_UP, WARM_UP_S = 10_000, 180.0
"""Lifecycles between two looks at the compilers, and how long to wait for them at most."""
RESTED = 0.02
"""The part of a core below which they do not disturb."""


def warm_up(stage: Stage) -> Iterator[Result]:
    """`warm-up`: lifecycles until the compilers of a broker that just started are done, mostly.

    Its value is how long that took; beside it the part of a core that they still use.
    """
    stage.found_cell()
    owner = stage.scheduler("owner")
    stage.wait_for_role(owner, "owner")
    configure(stage.bootstrap, stage.prefix)
    crew = Crew(stage.bootstrap, stage.prefix, members=MEMBERS, places=PLACES, linger_ms=LINGER_MS)
    run, begun = _Run(stage, crew.work), time.monotonic()
    share, number = 1.0, 0
    while share > RESTED and time.monotonic() - begun < WARM_UP_S:
        before_s, number = stage.compilers_s(), number + 1
        took_s = run.play(WARM_UP, f"{number}-")
        share = (stage.compilers_s() - before_s) / took_s
    crew.close()
    parts = {"compilers": f"{share:.0%} of a core"}
    yield Result(name="warm-up", value=time.monotonic() - begun, unit="s", parts=parts)


def bare(stage: Stage) -> Iterator[Result]:
    """`lifecycles-bare`, `core-us-lifecycle`, the same with a standby and the API, and `carry`."""
    stage.found_cell()
    programs = {"owner": stage.scheduler("owner")}
    configure(stage.bootstrap, stage.prefix)
    crew = Crew(stage.bootstrap, stage.prefix, members=MEMBERS, places=PLACES, linger_ms=LINGER_MS)
    untimed, count = (10_000, 8_000) if stage.quick else (20_000, 60_000)
    run = _Run(stage, crew.work)
    run.play(untimed, "untimed")
    first = journal_end(stage.bootstrap, stage.prefix)
    with stage.cpu(**programs) as cpu:
        seconds = run.play(count, "timed")
    stretch = range(first, journal_end(stage.bootstrap, stage.prefix))
    programs |= {"standby": stage.scheduler("standby"), "api": stage.api().process}
    stage.wait_for_role(programs["standby"], "standby", meanwhile=crew.work)
    run.play(count // 10, "settling")
    with stage.cpu(**programs) as cpu_all:
        run.play(count // 2, "with all")
    crew.close()
    stage.stop()
    floor, per_s = carry(stage.beside("carry"), stage.prefix, stretch)
    yield Result(name="lifecycles-bare", value=count / seconds, unit="1/s", floor=per_s)
    yield _cost("core-us-lifecycle", cpu.per(count), floor.value)
    yield floor
    yield _cost("core-us-lifecycle-all", cpu_all.per(count // 2))


def _cost(name: str, costs: dict[str, float], floor: float | None = None) -> Result:
    return Result(name=name, value=sum(costs.values()), unit="us", floor=floor, core_us=costs)


def sdk(stage: Stage) -> Iterator[Result]:
    """`lifecycles`: two worker processes of the SDK; submissions by a plain producer."""
    stage.found_cell()
    programs = {"owner": stage.scheduler("owner")}
    configure(stage.bootstrap, stage.prefix)
    for number in range(MEMBERS):
        name = f"worker-{number}"
        programs[name] = stage.start(name, "-m", "tests.benchmarks.worker", str(PLACES))
    untimed, count = (2_000, 4_000) if stage.quick else (10_000, 40_000)
    run = _Run(stage, lambda: None)
    run.play(untimed, "untimed")
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
