"""`python -m tests.benchmarks [--quick] [NAME …]`: one broker, every benchmark, one table."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from evenhand.dev.broker import Broker
from tests.benchmarks import accept, answer, floors, fold, leases, lifecycles, memory, takeover
from tests.benchmarks.result import REPOSITORY, Result, show, write
from tests.benchmarks.stage import SEED, Stage

BENCHMARKS = {
    "floors": floors.run,
    "start-answer": answer.run,
    "lifecycles-bare": lifecycles.bare,
    "fold": fold.run,
    "lifecycles": lifecycles.sdk,
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
    parser.add_argument("--quick", action="store_true", help="within a minute, less exact")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(BENCHMARKS)}")
    options = parser.parse_args()
    results: list[Result] = []
    with Broker(tell=print) as broker, tempfile.TemporaryDirectory(prefix="bench-") as work:
        for name, run in BENCHMARKS.items():
            if options.names and name not in options.names:
                continue
            stage = Stage(
                broker.bootstrap,
                broker.pid if broker.ours else None,
                Path(work),
                prefix=f"bench-{name}",
                quick=options.quick,
            )
            stage.known = {result.name: result.value for result in results}
            begun = time.monotonic()
            try:
                results.extend(run(stage))
            finally:
                stage.stop()
            sys.stderr.write(f"{name}: {time.monotonic() - begun:.0f} s\n")
    write(results, REPOSITORY / "out" / "bench" / "results.jsonl", SEED)
    show(results)


if __name__ == "__main__":
    main()
