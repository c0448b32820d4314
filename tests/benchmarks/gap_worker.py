"""The SDK's own worker with calls that take a given time; it notes when each began and ended."""

import asyncio
import json
import signal
import sys
import time
from pathlib import Path

from evenhand import AsyncWorker, Attempt, Kafka, Result
from tests.benchmarks.cell import POOL

SPANS: list[tuple[str, int, int]] = []


async def handle(attempt: Attempt) -> Result:
    """As long as the reference says, in milliseconds."""
    begun_ns, tag = time.monotonic_ns(), attempt.payload_ref or "0"
    attempt.sent()
    await asyncio.sleep(int(tag) / 1_000)
    attempt.usage(prompt_tokens=1_000, output_tokens=200)
    SPANS.append((tag, begun_ns, time.monotonic_ns()))
    return Result()


async def main(places: int) -> None:
    """Until SIGTERM."""
    worker = AsyncWorker(handle, pool=POOL, places=places, via=Kafka())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
    await worker.run()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
    Path(sys.argv[2]).write_text(json.dumps(SPANS))
