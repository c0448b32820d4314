"""The demo's worker: each grant is one call to the provider, by the SDK and httpx."""

import asyncio
import signal
import sys

import httpx

from evenhand import AsyncWorker, Attempt, NotSent, Outcome, Result
from evenhand.dev.demo_cell import PLACES, POOL

CALL_TIMEOUT_S = 60.0
"""The longest answer of the traces takes 4 s, sped up."""
_OK = 200


async def call(provider: httpx.AsyncClient, attempt: Attempt) -> Result:
    """Make the call, tell when it went out, and what it used.

    Raises:
        NotSent: there was no connection, or there was one too late; nothing went out.
    """

    async def traced(event: str, _facts: object) -> None:
        if event == "http11.send_request_headers.started":
            attempt.sending()  # connecting may have taken its time
        elif event == "http11.send_request_body.complete":
            attempt.sent()

    body = {
        "tenant": attempt.tenant,
        "operation": attempt.operation,
        "idempotency_key": attempt.provider_key,
        "payload_ref": attempt.payload_ref,
        "output_tokens_max": attempt.output_tokens_max,
    }
    try:
        reply = await provider.post("/calls", json=body, extensions={"trace": traced})
    except httpx.ConnectError as error:
        raise NotSent("No connection to the provider", operation=attempt.operation) from error
    if reply.status_code != _OK:
        return Result(outcome=Outcome.TERMINAL, error=f"status {reply.status_code}")
    attempt.usage(**reply.json()["usage"])
    return Result(result_ref=f"demo://{attempt.operation}")


async def main(provider_url: str, member: str) -> None:
    """Work until SIGTERM."""
    limits = httpx.Limits(max_connections=PLACES, max_keepalive_connections=PLACES)
    async with httpx.AsyncClient(
        base_url=provider_url, timeout=CALL_TIMEOUT_S, limits=limits
    ) as provider:
        worker = AsyncWorker(
            lambda attempt: call(provider, attempt), pool=POOL, places=PLACES, member=member
        )
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
        await worker.run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
