"""Plays the traces: every recorded request is submitted over the API at its own time."""

import asyncio
import time
from collections.abc import Mapping, Sequence

from evenhand import AsyncClient
from evenhand.dev.demo_cell import DOMAIN, POOL, START_WITHIN_MS
from evenhand.dev.play import OUTPUT_TOKENS_MAX, Arrival

BYTES_PER_TOKEN = 4
"""Good enough for a declared payload size, which nobody checks."""


IN_FLIGHT_MAX = 16
"""Submissions of a tenant under way at once; more only make its client search longer."""


class Player:
    """Submits arrivals on time; what is late because of the machine is sent at once."""

    def __init__(self, url: str, keys: Mapping[str, str]) -> None:
        """`keys` are API keys by tenant."""
        self._clients = {tenant: AsyncClient(url=url, api_key=key) for tenant, key in keys.items()}
        self._turns = {tenant: asyncio.Semaphore(IN_FLIGHT_MAX) for tenant in keys}
        self.sent = 0
        """Submissions that the API has taken durably."""

    async def play(self, arrivals: Sequence[Arrival]) -> None:
        """Until the last one is durable.

        Raises:
            EvenhandError, Unreachable: one could not be submitted within its retries.
        """
        begun = time.monotonic()
        async with asyncio.TaskGroup() as sending:
            for arrival in arrivals:
                early_s = arrival.at_ms / 1000 - (time.monotonic() - begun)
                await asyncio.sleep(max(0.0, early_s))
                sending.create_task(self._submit(arrival))

    async def close(self) -> None:
        """Let go of all connections."""
        for client in self._clients.values():
            await client.close()

    async def _submit(self, arrival: Arrival) -> None:
        async with self._turns[arrival.tenant]:
            await self._clients[arrival.tenant].submit(
                idempotency_key=arrival.payload_ref,
                pool=POOL,
                domain=DOMAIN,
                effect="read_only",
                prompt_tokens=arrival.prompt.prompt_tokens,
                output_tokens_max=OUTPUT_TOKENS_MAX[arrival.tenant],
                payload_bytes=arrival.prompt.prompt_tokens * BYTES_PER_TOKEN,
                payload_ref=arrival.payload_ref,
                start_within_ms=START_WITHIN_MS,
            )
        self.sent += 1
