"""Plays the traces: every recorded request is submitted at its own time.

Two tenants are services that speak Kafka anyway; the third comes over the API, as tenants do that
are not trusted with topics.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence

from evenhand import AsyncClient, Kafka
from evenhand.dev.demo_cell import DOMAIN, POOL, START_WITHIN_MS, USER
from evenhand.dev.play import OUTPUT_TOKENS_MAX, TENANTS, Arrival

BYTES_PER_TOKEN = 4
"""Good enough for a declared payload size, which nobody checks."""


IN_FLIGHT_MAX = 16
"""Submissions of a tenant under way at once; more only make its client search longer."""


class Player:
    """Submits arrivals on time; what is late because of the machine is sent at once."""

    def __init__(self, kafka: Kafka, url: str, keys: Mapping[str, str]) -> None:
        """Connects to the topics.

        Args:
            kafka: the cell's topics.
            url: of the API.
            keys: API keys of the tenants that come over it.
        """
        self._clients = {
            tenant: AsyncClient(url=url, api_key=keys[tenant])
            if tenant in keys
            else AsyncClient(via=kafka, tenant=tenant, user=USER, url=url)
            for tenant in TENANTS
        }
        self._turns = {tenant: asyncio.Semaphore(IN_FLIGHT_MAX) for tenant in TENANTS}
        self.sent = 0
        """Submissions that are durable."""

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
                wait_admitted_ms=0,  # durable is enough; the next one is due
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
