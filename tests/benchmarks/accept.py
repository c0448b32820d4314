"""From POST /v1/operations to its durable id, at a fixed rate, whatever the answers take (R7)."""

import itertools
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from json import dumps
from urllib.parse import urlsplit

from tests.benchmarks import raw
from tests.benchmarks.cell import DOMAIN, POOL, TENANTS, configure
from tests.benchmarks.result import Result, percentiles
from tests.benchmarks.stage import Door, Stage

RATE = 300
"""Submissions a second."""
WARM_UP_S = 2
READY_S = 30.0
CONNECTIONS = 64
"""Each with a thread of its own: more than wait at once while the rate is kept."""
_OK, _TAKEN = 200, 202
_BODY = dumps(
    {
        "pool": POOL,
        "domain": DOMAIN,
        "prompt_tokens": 1_000,
        "output_tokens_max": 500,
        "start_within_ms": 86_400_000,
    }
)


def run(stage: Stage) -> Iterator[Result]:
    """`accept`: nothing works the operations off, so the queues fill; the floor is one append.

    A client that falls behind the rate is timed from the instant at which it was due.
    """
    seconds = 3 if stage.quick else 20
    stage.found_cell()
    owner = stage.scheduler("owner")
    stage.wait_for_role(owner, "owner")
    configure(stage.bootstrap, stage.prefix)
    door = stage.api(tenant=TENANTS[0])
    taken_ms = _knock(door, seconds)
    floors = {
        which: stage.known[f"append-{which}"]
        for which in ("p50", "p99")
        if f"append-{which}" in stage.known
    }
    yield from percentiles("accept", "ms", taken_ms, **floors)


def _knock(door: Door, seconds: int) -> list[float]:
    """Milliseconds from the instant at which each post was due; the first seconds do not count.

    The plain client of the standard library: any other costs more than what it measures.
    """
    _until_ready(door)
    numbers = itertools.count()
    begun = time.perf_counter()
    most = (WARM_UP_S + seconds) * RATE

    def post() -> list[tuple[int, float]]:
        taken_ms = []
        connection = _connect(door)
        while (number := next(numbers)) < most:
            due = begun + number / RATE
            time.sleep(max(0.0, due - time.perf_counter()))
            _post(connection, door.key, number)
            taken_ms.append((number, (time.perf_counter() - due) * 1_000))
        connection.close()
        return taken_ms

    with ThreadPoolExecutor(CONNECTIONS) as threads:
        posting = [threads.submit(post) for _ in range(CONNECTIONS)]
        taken = [one for thread in posting for one in thread.result()]
    return [took for number, took in taken if number >= WARM_UP_S * RATE]


def _until_ready(door: Door) -> None:
    ends_at = time.monotonic() + READY_S
    while not _is_ready(door):
        assert time.monotonic() < ends_at, f"Expected the door to open: {door.process.tail()}"
        time.sleep(0.05)


def _is_ready(door: Door) -> bool:
    connection = _connect(door)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == _OK
    except ConnectionError:
        return False
    finally:
        connection.close()


def _connect(door: Door) -> HTTPConnection:
    return HTTPConnection(urlsplit(door.url).netloc, timeout=raw.WAIT_S)


def _post(connection: HTTPConnection, key: str, number: int) -> None:
    headers = {
        "Authorization": f"Bearer {key}",
        "Content-Type": "application/json",
        "Evenhand-Wait-Admitted": "0",
        "Idempotency-Key": f'"accept-{number}"',
    }
    connection.request("POST", "/v1/operations", _BODY, headers)
    reply = connection.getresponse()
    told = reply.read()
    assert reply.status == _TAKEN, f"Expected 202, got {reply.status}: {told!r}"
