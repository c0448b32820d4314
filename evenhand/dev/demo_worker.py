"""The demo's worker: each attempt is one call to the provider, by the SDK and httpx."""

import asyncio
import signal
import sys

import httpx

from evenhand import AsyncAttempt, AsyncWorker, Outcome, Result, retry_after_s
from evenhand.dev.demo_cell import PLACES, POOL

CALL_TIMEOUT_S = 60.0
"""The longest answer of the traces takes 4 s, sped up."""
_OK, _TOO_MANY, _TROUBLE = 200, 429, 500


async def call(provider: httpx.AsyncClient, attempt: AsyncAttempt) -> Result:
    """Make the call, tell when it went out, and what it used or why it was refused.

    Raises:
        NotSent: there was a connection, but too late; nothing went out.
        httpx.ConnectError: there was none. After any other error the outcome is unknown.
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
    reply = await provider.post("/calls", json=body, extensions={"trace": traced})
    if reply.status_code == _TOO_MANY:
        attempt.throttled(after_s=retry_after_s(reply.headers))
    if reply.status_code != _OK:
        outcome = Outcome.RETRYABLE if reply.status_code >= _TROUBLE else Outcome.TERMINAL
        return Result(outcome=outcome, error=f"status {reply.status_code}")
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
