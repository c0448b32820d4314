"""Where an operation is in its life: one list for core, views, API and SDK."""

from enum import StrEnum


class Phase(StrEnum):
    """The states of requirements C1; the API calls the field `state`."""

    WAITING = "waiting"
    PARKED = "parked"
    GRANTED = "granted"
    STARTED = "started"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    REJECTED = "rejected"
