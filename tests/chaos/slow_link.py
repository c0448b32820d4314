"""A link on which deliveries come late, in their order, and words go twice: a bad network."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from evenhand._transport import Link
from schemas import events as e

TWICE = 0.2
NEAR = 0.9, 1.02
"""Of the longest wait: near the bound at which nothing may be sent any more, and beyond it."""
STANDING = 0.4
"""Of that: what a member knows of the owner's time is as old as its last heartbeat."""


class SlowLink:
    """Keeps permissions to start back, up to `late_ms`, and with them whatever follows."""

    def __init__(self, inner: Link, chance: Random, late_ms: int) -> None:
        self._inner, self._chance, self._late_s = inner, chance, late_ms / 1_000
        self._kept: deque[tuple[float, Any]] = deque()

    def send(self, word: Any, durable: Callable[[], None] | None = None) -> None:
        self._inner.send(word, durable)
        if self._chance.random() < TWICE:
            self._inner.send(word)

    def receive(self, wait_s: float) -> Sequence[Any]:
        if self._kept:
            wait_s = min(wait_s, max(0.0, self._kept[0][0] - time.monotonic()))
        for event in self._inner.receive(wait_s):
            due = time.monotonic() + self._wait_s(event)
            if self._kept:
                due = max(due, self._kept[-1][0])
            self._kept.append((due, event))
        heard = []
        while self._kept and self._kept[0][0] <= time.monotonic():
            heard.append(self._kept.popleft()[1])
        return heard

    def close(self, wait_s: float) -> None:
        self._inner.close(wait_s)

    def _wait_s(self, event: Any) -> float:
        stands = isinstance(event, e.GrantIssued) and event.started_ms is not None
        if not (stands or isinstance(event, e.StartAccepted)):
            return 0.0
        parts = 0.0, 0.0, 0.0, self._chance.random(), self._chance.uniform(*NEAR)
        return self._chance.choice(parts) * self._late_s * (STANDING if stands else 1)
