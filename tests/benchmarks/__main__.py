"""`python -m tests.benchmarks [--quick] [NAME …]`: simulated rows, then one broker; one table."""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from evenhand.dev.broker import Broker
from tests.benchmarks import (
    accept,
    answer,
    bulk,
    decisions,
    floors,
    fold,
    gap,
    golden,
    lag_scenes,
    leases,
    lifecycles,
    limiters,
    memory,
    noisy,
    overshoot,
    takeover,
    tenants,
    tokens,
    trace,
)
from tests.benchmarks.result import REPOSITORY, Result, show, write
from tests.benchmarks.stage import SEED, Stage

SIMULATED = {
    "seed-211": golden.run,
    "core": decisions.run,
    "scale-tenants": tenants.run,
    "token-budget": tokens.run,
    "overshoot": overshoot.run,
    "lag": lag_scenes.run,
    "noisy-neighbour": noisy.run,
    "bulk-run": bulk.run,
    "real-trace": trace.run,
    "limiters": limiters.run,
}
"""They need no broker: the core in this process, and a clock that they move themselves."""
BENCHMARKS = {
    "floors": floors.run,
    "start-answer": answer.run,
    "lifecycles-bare": lifecycles.bare,
    "fold": fold.run,
    "lifecycles": lifecycles.sdk,
    "slot-gap": gap.run,
    "accept": accept.run,
    "heartbeat": leases.heartbeat,
    "leases-due": leases.due_at_once,
    "owner-memory": memory.run,
    "kill-to-grant": takeover.run,
}
"""In this order: a later one may use the figures of an earlier one, or its journal."""


def main() -> None:
    """Run them in order; figures of one run share their floors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="in a minute and a half, less exact")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"some of {', '.join([*SIMULATED, *BENCHMARKS])}"
    )
    options = parser.parse_args()
    unknown = set(options.names) - {*SIMULATED, *BENCHMARKS}
    if unknown:
        parser.error(f"Expected names of benchmarks, but got {', '.join(sorted(unknown))}")
    results: list[Result] = []
    for name, simulate in _wanted(SIMULATED, options.names):
        with _timed(name):
            results.extend(simulate(quick=options.quick))
    on_broker = [*_wanted(BENCHMARKS, options.names)]
    if on_broker:
        results.extend(_on_broker(on_broker, quick=options.quick))
    write(results, REPOSITORY / "out" / "bench" / "results.jsonl", SEED)
    show(results)


Run = Callable[..., Iterator[Result]]


def _wanted(runs: Mapping[str, Run], names: Iterable[str]) -> Iterator[tuple[str, Run]]:
    yield from ((name, run) for name, run in runs.items() if not names or name in names)


def _on_broker(runs: Iterable[tuple[str, Run]], *, quick: bool) -> list[Result]:
    results: list[Result] = []
    if not quick:
        runs = [("warm-up", lifecycles.warm_up), *runs]
    broker = Broker(long_lived=not quick, tell=print)
    with broker, tempfile.TemporaryDirectory(prefix="bench-") as work:
        for name, run in runs:
            stage = Stage(
                broker.bootstrap,
                broker.pid if broker.ours else None,
                Path(work),
                prefix=f"bench-{name}",
                quick=quick,
            )
            stage.known = {one.name: one.value for one in results if one.value is not None}
            with _timed(name):
                try:
                    results.extend(run(stage))
                finally:
                    stage.stop()
    return results


@contextmanager
def _timed(name: str) -> Iterator[None]:
    begun = time.monotonic()
    yield
    sys.stderr.write(f"{name}: {time.monotonic() - begun:.0f} s\n")


if __name__ == "__main__":
    main()
