"""What Kafka alone costs on this machine now: no figure of ours can be below these."""

import time
from collections.abc import Callable, Iterator

from confluent_kafka import Consumer, Producer

from tests.benchmarks import raw
from tests.benchmarks.result import Result, percentiles
from tests.benchmarks.stage import Stage

RECORD = bytes(300)
"""An event with its header has about this size."""
WARM_UP = 200


def run(stage: Stage) -> Iterator[Result]:
    """`append`, `hop` and `two-hops`, one record in flight."""
    rounds = 500 if stage.quick else 3_000
    there, back = f"{stage.prefix}.there", f"{stage.prefix}.back"
    raw.create(stage.bootstrap, there, back)
    out = raw.producer(stage.bootstrap)
    yield from _timed("append", rounds, lambda: _append(out, there))
    heard = raw.consumer(stage.bootstrap, there)
    yield from _timed("hop", rounds, lambda: _hop(out, there, heard))
    heard.close()
    heard = raw.consumer(stage.bootstrap, back)
    echo = stage.start("echo", "-m", "tests.benchmarks.echo", stage.bootstrap, there, back)
    _next(heard)
    yield from _timed("two-hops", rounds, lambda: _hop(out, there, heard))
    echo.terminate()
    heard.close()


def _timed(name: str, rounds: int, once: Callable[[], None]) -> list[Result]:
    sample = []
    for _ in range(WARM_UP + rounds):
        begun = time.perf_counter()
        once()
        sample.append((time.perf_counter() - begun) * 1_000)
    return percentiles(name, "ms", sample[WARM_UP:])


def _append(out: Producer, topic: str) -> None:
    out.produce(topic, RECORD)
    assert out.flush(raw.WAIT_S) == 0, "Expected every record to be acknowledged"


def _hop(out: Producer, topic: str, heard: Consumer) -> None:
    out.produce(topic, RECORD)
    out.poll(0)
    _next(heard)


def _next(heard: Consumer) -> None:
    message = heard.poll(raw.WAIT_S)
    assert message is not None, "Expected a record, but none came"
    assert not message.error(), f"Expected a record, but {message.error()}"
