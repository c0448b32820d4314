"""One twin of the SDK at one cell, with the short forms that its suite uses."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from evenhand import Attempt, Result
from evenhand.errors import NotFound
from schemas.bodies import Operation, State
from tests.support.kafka import until
from tests.support.twins import Twin

STANDING = "standing"
"""A pool with standing starts."""
INTENT: dict[str, Any] = {
    "pool": "default",
    "domain": "default",
    "prompt_tokens": 90,
    "output_tokens_max": 30,
    "start_within_ms": 60_000,
}


@dataclass
class Desk:
    """One twin at one cell; what it submits is cancelled when the test is over."""

    twin: Twin
    kafka: Any
    submitted: list[str] = field(default_factory=list)

    def admit(self, key: str | None = None, **fields: Any) -> Operation:
        key = key or uuid4().hex
        told = self.twin.call("submit", idempotency_key=key, **{**INTENT, **fields})
        self.submitted.append(told.operation)
        found: Operation = self.twin.call("wait_admitted", told)
        return found

    def get(self, operation: str) -> Operation:
        found: Operation = self.twin.call("get", operation)
        return found

    def worker(self, handle: Callable[[Attempt], Result | None], **options: Any) -> Any:
        return self.twin.worker(handle, **{"pool": "default", "via": self.kafka, **options})

    def until_state(self, operation: str, *states: State) -> Operation:
        def found() -> Operation | None:
            try:
                now = self.get(operation)
            except NotFound:  # heard of by its grant, before the views know it
                return None
            return now if now.state in states else None

        return until(found, f"{operation} to be one of {states}")

    def clear(self) -> None:
        for operation in self.submitted:
            self.twin.call("cancel", operation)
        self.twin.close()
