"""The demo's reconciler: asks the provider by idempotency key what became of a call."""

import signal
import sys
from functools import partial

import httpx

from evenhand import Found, Reconciler, Unknown, Verdict
from evenhand.dev.demo_cell import DOMAIN

LOOK_UP_TIMEOUT_S = 5.0
_NOT_FOUND = 404


def look_up(provider: httpx.Client, unknown: Unknown) -> Found:
    """What the provider knows of the call.

    A key that it never saw was never executed: the first look-up comes after the last instant in
    which the call may have been sent.
    """
    reply = provider.get(f"/calls/{unknown.provider_key}")
    if reply.status_code == _NOT_FOUND:
        return Found(verdict=Verdict.NOT_EXECUTED, evidence=f"no-{unknown.provider_key}")
    call = reply.raise_for_status().json()
    if call["state"] == "running":
        return Found(verdict=Verdict.INCONCLUSIVE, evidence=f"running-{unknown.provider_key}")
    return Found(
        verdict=Verdict.COMPLETED,
        evidence=f"call-{unknown.provider_key}",
        result_ref=f"demo://{unknown.operation}",
        **call["usage"],
    )


def main(provider_url: str, *domains: str) -> None:
    """Work until SIGTERM."""
    with httpx.Client(base_url=provider_url, timeout=LOOK_UP_TIMEOUT_S) as provider:
        reconciler = Reconciler(partial(look_up, provider), domains=domains or (DOMAIN,))
        signal.signal(signal.SIGTERM, lambda *_: reconciler.stop())
        reconciler.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
