"""The budget that handmade histories draw on: small limits without a pace, reached soon."""

from typing import Any

from msgspec.structs import replace

from tests.support.words import i

REQUESTS = i.DimensionConfig(
    name="requests-1s", unit="requests", kind="sliding", limit=3, window_ms=1_000, pace_percent=100
)
TOKENS = i.DimensionConfig(
    name="tokens-1s", unit="tokens", kind="sliding", limit=90, window_ms=1_000, pace_percent=100
)
SLOTS = i.DimensionConfig(name="slots", unit="slots", kind="concurrency", limit=2)
DOMAIN = i.DomainConfig(
    dimensions=(REQUESTS, TOKENS, SLOTS), claim_by_ms=500, send_within_ms=100, transit_ms=5
)


def domain_of(*dimensions: Any) -> Any:
    """The same domain with other dimensions."""
    return replace(DOMAIN, dimensions=dimensions)
