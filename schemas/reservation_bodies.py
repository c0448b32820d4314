"""Permission for one call, for callers with a queue of their own: what HTTP takes and gives."""

from typing import Literal

from pydantic import Field

from .body import REFERENCE_CHARS_MAX, Count, Instant, Name, Reply, Request
from .member_bodies import Long, Outcome, Text
from .phase import Phase

START_WITHIN_MS = 60_000
"""Somebody waits for a permission; after a minute few still do."""


class Reserve(Request):
    """`POST /v1/reservations`; the key of the intent comes from its header."""

    domain: Name
    lane: Name = "interactive"
    tier: Name | None = None
    connection: Name | None = None
    effect: Literal["read_only", "keyed", "unsafe"] = "unsafe"
    prompt_tokens: Count
    output_tokens_max: Count
    """The call's own output ceiling; prompt and ceiling are reserved together."""
    payload_bytes: Count = 0
    payload_ref: str | None = Field(default=None, max_length=REFERENCE_CHARS_MAX)
    start_within_ms: Count = START_WITHIN_MS
    runtime_ms: Count | None = None


class Reserved(Reply):
    """The call may go out now, within `send_within_ms` of *sending* this request."""

    operation: str
    """Names the reservation."""
    state: Phase
    """`started`; of a repeat what became of it."""
    send_within_ms: int
    """By the caller's own clock, from the moment in which it sent the first request."""
    lease_expires_at: Instant | None = None
    """Without a renewal the outcome is unknown from then on; null for a repeat."""
    renew_every_ms: int
    """For calls that may last longer than the lease: renew from the beginning, so often."""
    requests: int
    tokens: int
    """What is held."""


class Renewed(Reply):
    """The lease is renewed."""

    operation: str
    expires_at: Instant


class Settle(Request):
    """`POST /v1/reservations/{operation}:settle`."""

    outcome: Outcome = "success"
    prompt_tokens: Long | None = None
    output_tokens: Long | None = None
    send_delay_ms: Count | None = None
    """How soon after sending the reservation's request the call was sent; rounded up."""
    result_ref: Text | None = None
    error: Text | None = None
    retry_after_ms: Count | None = None
