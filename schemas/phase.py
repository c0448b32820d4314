"""Where an operation is in its life: one list for core, views, API and SDK."""

from enum import StrEnum


class Phase(StrEnum):
    """The states of requirements C1; the API calls the field `state`."""

    WAITING = "waiting"
    PARKED = "parked"
    GRANTED = "granted"
    LEASED = "leased"
    STARTED = "started"
    UNKNOWN = "unknown"
    """Started, and not known to have ended or how; never read as a failure."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    REJECTED = "rejected"
    DEAD = "dead"
    """Its attempts are used up; a person may want another one."""
    UNKNOWN_CLOSED = "unknown_closed"
    """What became of it was never known; only a person goes on from here."""
