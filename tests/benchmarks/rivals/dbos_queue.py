"""A queue of DBOS with so many workers over SQLite, looking for work a hundred times a second.

Writes the beginnings and ends of its calls, as the project's own worker does.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

from dbos import DBOS

POLL_S = 0.01
SPANS: list[tuple[str, int, int]] = []


@DBOS.workflow()
def call(service_ms: int) -> None:
    """As long as it says."""
    begun_ns = time.monotonic_ns()
    time.sleep(service_ms / 1_000)
    SPANS.append((str(service_ms), begun_ns, time.monotonic_ns()))


def main(slots: int, service_ms: int, calls: int) -> None:
    """All calls wait from the start."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/dbos.sqlite"
        DBOS(config={"name": "gap", "system_database_url": url, "run_admin_server": False})
        DBOS.launch()
        DBOS.register_queue("calls", worker_concurrency=slots, polling_interval_sec=POLL_S)
        handles = [DBOS.enqueue_workflow("calls", call, service_ms) for _ in range(calls)]
        for handle in handles:
            handle.get_result()
        DBOS.destroy()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
    Path(sys.argv[4]).write_text(json.dumps(SPANS))
