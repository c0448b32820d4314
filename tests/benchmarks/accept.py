"""From POST /v1/operations to its durable id, at a fixed rate, whatever the answers take (R7)."""

import asyncio
import time
from collections.abc import Iterator

import httpx

from evenhand.dev.processes import Process
from tests.benchmarks import raw
from tests.benchmarks.cell import DOMAIN, POOL, TENANTS, configure
from tests.benchmarks.result import Result, percentiles
from tests.benchmarks.stage import Stage

RATE = 300
"""Submissions a second."""
WARM_UP_S = 2
READY_S = 30.0
_TAKEN = 202


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
    taken_ms = asyncio.run(_knock(door.url, door.key, seconds, door.process))
    floors = {
        which: stage.known[f"append-{which}"]
        for which in ("p50", "p99")
        if f"append-{which}" in stage.known
    }
    yield from percentiles("accept", "ms", taken_ms, **floors)


async def _knock(url: str, key: str, seconds: int, door: Process) -> list[float]:
    limits = httpx.Limits(max_connections=RATE, max_keepalive_connections=RATE)
    headers = {"Authorization": f"Bearer {key}", "Evenhand-Wait-Admitted": "0"}
    async with httpx.AsyncClient(
        base_url=url, headers=headers, limits=limits, timeout=raw.WAIT_S
    ) as client:
        await _until_ready(client, door)
        begun = time.perf_counter()
        posts = []
        for number in range((WARM_UP_S + seconds) * RATE):
            due = begun + number / RATE
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            posts.append(asyncio.create_task(_post(client, number, due)))
        taken_ms = await asyncio.gather(*posts)
    return taken_ms[WARM_UP_S * RATE :]


async def _until_ready(client: httpx.AsyncClient, door: Process) -> None:
    ends_at = time.monotonic() + READY_S
    while True:
        try:
            if (await client.get("/readyz")).is_success:
                return
        except httpx.ConnectError:
            pass
        assert time.monotonic() < ends_at, f"Expected the door to open: {door.tail()}"
        await asyncio.sleep(0.05)


async def _post(client: httpx.AsyncClient, number: int, due: float) -> float:
    body = {
        "pool": POOL,
        "domain": DOMAIN,
        "prompt_tokens": 1_000,
        "output_tokens_max": 500,
        "start_within_ms": 86_400_000,
    }
    reply = await client.post(
        "/v1/operations", json=body, headers={"Idempotency-Key": f'"accept-{number}"'}
    )
    assert reply.status_code == _TAKEN, f"Expected 202, got {reply.status_code}: {reply.text}"
    return (time.perf_counter() - due) * 1_000
