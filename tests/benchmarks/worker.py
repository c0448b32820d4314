"""The SDK's own worker with nothing to do: what a lifecycle costs for those who use it."""

import asyncio
import signal
import sys

from evenhand import AsyncWorker, Attempt, Kafka, Result
from tests.benchmarks.cell import POOL

LINGER_MS = 5
"""Starts and results of hundreds of places travel together; the SDK itself lets none wait."""


async def handle(attempt: Attempt) -> Result:
    """The answer is there at once."""
    attempt.sent()
    attempt.usage(prompt_tokens=1_000, output_tokens=200)
    return Result()


async def main(places: int) -> None:
    """Until SIGTERM."""
    kafka = Kafka(config={"linger.ms": LINGER_MS})
    worker = AsyncWorker(handle, pool=POOL, places=places, via=kafka)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
    await worker.run()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
