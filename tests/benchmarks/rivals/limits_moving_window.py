"""The moving window of `limits`, for requests and for tokens in hundreds."""

from typing import Any

import time_machine
from driver import Admit, drive
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

HUNDRED = 100
"""It keeps one item for each unit of a cost, so that single tokens are out of its reach."""
BEGIN_S = 1_700_000_000


def make(trace: dict[str, Any]) -> Admit:
    """Both windows are looked at, then both are taken."""
    clock = time_machine.travel(BEGIN_S, tick=False).start()
    limiter = MovingWindowRateLimiter(MemoryStorage())
    requests = RateLimitItemPerMinute(trace["requests_max"])
    tokens = RateLimitItemPerMinute(trace["tokens_max"] // HUNDRED)

    def admit(now_ms: int, amount: int) -> bool:
        cost = -(-amount // HUNDRED)
        clock.move_to(BEGIN_S + now_ms / 1_000)
        if not limiter.test(requests, "r") or not limiter.test(tokens, "t", cost=cost):
            return False
        return limiter.hit(requests, "r") and limiter.hit(tokens, "t", cost=cost)

    return admit


if __name__ == "__main__":
    drive(make)
