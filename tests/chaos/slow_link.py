"""A link on which permissions to start come late and words go twice, as on a bad network."""

import time
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from random import Random
from typing import Any

from evenhand._transport import Link
from schemas import events as e

TWICE = 0.2
NEAR = 0.9, 1.02
"""Of the longest wait: near the bound at which nothing may be sent any more, and beyond it."""


class SlowLink:
    """Keeps some deliveries back, up to `late_ms`, as a slow broker or reader does."""

    def __init__(self, inner: Link, chance: Random, late_ms: int) -> None:
        self._inner, self._chance, self._late_s = inner, chance, late_ms / 1_000
        self._kept: list[tuple[float, int, Any]] = []
        self._number = 0

    def send(self, word: Any, durable: Callable[[], None] | None = None) -> None:
        self._inner.send(word, durable)
        if self._chance.random() < TWICE:
            self._inner.send(word)

    def receive(self, wait_s: float) -> Sequence[Any]:
        heard = []
        if self._kept:
            wait_s = min(wait_s, max(0.0, self._kept[0][0] - time.monotonic()))
        for event in self._inner.receive(wait_s):
            if isinstance(event, e.StartAccepted) or getattr(event, "started_ms", None) is not None:
                self._number += 1
                heappush(self._kept, (time.monotonic() + self._wait_s(), self._number, event))
            else:
                heard.append(event)
        while self._kept and self._kept[0][0] <= time.monotonic():
            heard.append(heappop(self._kept)[2])
        return heard

    def close(self, wait_s: float) -> None:
        self._inner.close(wait_s)

    def _wait_s(self) -> float:
        part = self._chance.choice((0.0, 0.0, self._chance.random(), self._chance.uniform(*NEAR)))
        return part * self._late_s
