"""A field case: seconds on an injected clock, calls of one length, and when what was granted."""

from typing import Any

from schemas import events as e
from schemas import inputs as i
from tests.support import cells as s
from tests.support import core as c

BASE_MS = 60_000_000
"""A whole minute, so that fixed minutes begin at t = 0."""
LEASE_MS = 10**10
"""Calls outlast no lease, unless a case is about that."""
MINUTE = {"kind": "fixed", "reset_ms": 0, "window_ms": 60_000}


def requests(limit: int, **over: Any) -> i.DimensionConfig:
    return c.dimension("requests", limit, **{**MINUTE, **over})


def tokens(limit: int, **over: Any) -> i.DimensionConfig:
    return c.dimension("tokens", limit, **{**MINUTE, **over})


def slots(limit: int) -> i.DimensionConfig:
    return c.dimension("slots", limit)


class Scene:
    """Workers start what is granted at once, and end it after `call_s` (never, when None)."""

    def __init__(self, *dimensions: i.DimensionConfig, call_s: float | None = None, **over: Any):
        self.base_ms = over.pop("base_ms", BASE_MS)
        core = c.Core(now_ms=self.base_ms)
        self.cell = core
        tenants = over.pop("tenants", [])
        places = over.pop("places", 1_000)
        fields = {"claim_by_ms": 10_000, **over}
        self.domain = lambda *some: c.domain(*some, **fields)
        bounds = s.bounds(deferral_sample_ms=1, **fields.pop("bounds", {}))
        pool = c.pool(lease_ms=fields.pop("lease_ms", LEASE_MS))
        core.run(bounds, self.domain(*dimensions), pool, *tenants)
        core.run(c.join(places=places), c.heartbeat())
        self.call_s, self.ends = call_s, []
        self.grants: list[tuple[float, e.GrantIssued]] = []
        self.names: dict[bytes, str] = {}

    def job(self, name: str, est: int = 0, tenant: str = "a", **over: Any) -> i.OperationSubmitted:
        fields = {"prompt_tokens": est, "output_tokens_max": 0, **over}
        asked = c.submitted(tenant, name, **fields)
        self.names[c.id_of(asked)] = name
        return asked

    @property
    def now_s(self) -> float:
        return (self.cell.now_ms - self.base_ms) / 1_000

    def at(self, second: float, *asked: Any) -> list[e.Event]:
        """Go to that second, through every instant at which something is due, then ask."""
        until_ms = self.base_ms + round(second * 1_000)
        events: list[e.Event] = []
        while True:
            due = [self.cell.state.next_due_ms, *[at_ms for at_ms, _ in self.ends]]
            next_ms = min((one for one in due if one is not None), default=until_ms)
            if next_ms >= until_ms:
                break
            events += self._go(max(next_ms, self.cell.now_ms))
        return events + self._go(until_ms, *asked)

    def _go(self, to_ms: int, *asked: Any) -> list[e.Event]:
        over = [c.result(grant) for at_ms, grant in self.ends if at_ms <= to_ms]
        self.ends = [one for one in self.ends if one[0] > to_ms]
        events = self.cell.run(*over, *asked, after_ms=to_ms - self.cell.now_ms)
        found = s.grants(events)
        while found or self.cell.state.more:
            self.grants += [(self.now_s, grant) for grant in found]
            starts = [] if self.call_s is None else [c.start(grant) for grant in found]
            if self.call_s is not None:
                ends_ms = self.cell.now_ms + round(self.call_s * 1_000)
                self.ends += [(ends_ms, grant) for grant in found]
            further = self.cell.run(*starts)
            found = s.grants(further)
            events += further
        return events

    def times(self) -> dict[str, float]:
        """When each job was granted."""
        return {self.names[grant.operation]: at for at, grant in self.grants}

    def order(self) -> str:
        return "".join(grant.tenant for _, grant in self.grants)
