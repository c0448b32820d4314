"""From a start request to its answer at the member: the gap in which a granted slot is idle."""

import time
from collections.abc import Iterator

from schemas import events as e
from tests.benchmarks import raw
from tests.benchmarks.cell import Inputs, configure, submission
from tests.benchmarks.crew import Crew
from tests.benchmarks.result import Result, percentiles
from tests.benchmarks.stage import Stage

WARM_UP = 100


class _Timed(Crew):
    """A crew that notes when it asked, and when it was answered."""

    def __init__(self, stage: Stage) -> None:
        self.asked_s = 0.0
        self.answers_ms: list[float] = []
        super().__init__(stage.bootstrap, stage.prefix, members=1, places=1)

    def _answer(self, word: object) -> None:
        if isinstance(word, e.StartAccepted):
            self.answers_ms.append((time.perf_counter() - self.asked_s) * 1_000)
        elif isinstance(word, e.GrantIssued):
            self.asked_s = time.perf_counter()
        super()._answer(word)


def run(stage: Stage) -> Iterator[Result]:
    """`start-answer`, one operation at a time; the floor is two hops and one append."""
    rounds = 200 if stage.quick else 2_000
    stage.found_cell()
    stage.scheduler("owner")
    configure(stage.bootstrap, stage.prefix)
    crew, inputs = _Timed(stage), Inputs(stage.bootstrap, stage.prefix)
    for number in range(WARM_UP + rounds):
        inputs.send(submission(number))
        inputs.producer.poll(0)
        while len(crew.answers_ms) <= number:
            crew.work(raw.WAIT_S / 10)
    floors = {
        which: stage.known[f"two-hops-{which}"] + stage.known[f"append-{which}"]
        for which in ("p50", "p99")
        if f"two-hops-{which}" in stage.known
    }
    yield from percentiles("start-answer", "ms", crew.answers_ms[WARM_UP:], **floors)
    crew.close()
