"""The leaky buckets of aiolimiter, one for requests and one for tokens."""

import asyncio
from typing import Any

from aiolimiter import AsyncLimiter
from driver import Admit, drive

PERIOD_S = 60


def make(trace: dict[str, Any]) -> Admit:
    """Both are looked at, then both are taken; time is what the loop says."""
    loop = asyncio.new_event_loop()
    requests = AsyncLimiter(trace["requests_max"], PERIOD_S)
    tokens = AsyncLimiter(trace["tokens_max"], PERIOD_S)

    async def take(amount: int) -> bool:
        if not requests.has_capacity(1) or not tokens.has_capacity(amount):
            return False
        await requests.acquire(1)
        await tokens.acquire(amount)
        return True

    def admit(now_ms: int, amount: int) -> bool:
        loop.time = lambda: now_ms / 1_000
        return loop.run_until_complete(take(amount))

    return admit


if __name__ == "__main__":
    drive(make)
