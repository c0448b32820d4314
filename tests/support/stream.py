"""A cell that a stream of small calls keeps full, for tests of what happens to a large one."""

from collections.abc import Iterable

import pytest

from schemas import events as e
from schemas.lanes import INTERACTIVE, LANES
from tests.support import cells as s
from tests.support import core as c

LIMIT = 1_000
WINDOW_MS = 10_000
UNPACED = {"pace_percent": 100}


def tokens(**over):
    return c.dimension("tokens", LIMIT, **{"window_ms": WINDOW_MS, **UNPACED, **over})


class Stream:
    """A cell that a stream of small calls keeps full; each call starts at once and ends with it."""

    def __init__(self, *dimensions, small: int = 50, lane: str = INTERACTIVE, **domain) -> None:
        tenants = domain.pop("tenants", [c.tenant(name, lanes=LANES) for name in "abcd"])
        fields = {"send_within_ms": 100, "claim_by_ms": 1_000, **domain}
        self.cell = s.cell(*(dimensions or (tokens(),)), tenants=tenants, **fields)
        self.small, self.lane, self.sent = small, lane, 0
        self.grants: list[tuple[int, e.GrantIssued]] = []
        self.events: list[e.Event] = []

    def submit(self, tenant: str, size: int, **over) -> bytes:
        self.sent += 1
        asked = c.submitted(tenant, str(self.sent), prompt_tokens=size, output_tokens_max=0, **over)
        self.run(asked)
        return c.id_of(asked)

    def run(self, *asked, after_ms: int = 0) -> list[e.Event]:
        events = self.cell.settle_down(*asked, after_ms=after_ms)
        found = s.grants(events)
        self.grants += [(self.cell.now_ms, grant) for grant in found]
        self.events += events
        for grant in found:
            more = self.cell.settle_down(c.start(grant))
            more += self.cell.settle_down(c.result(grant, prompt_tokens=None))
            assert not s.grants(more)
            self.events += more
        return events

    def flow(self, span_ms: int, *tenants: str, step_ms: int = 100) -> None:
        """Small calls of these tenants always wait."""
        for _ in range(span_ms // step_ms):
            for tenant in tenants:
                while self.cell.state.waiting(tenant).count < 4:
                    self.submit(tenant, self.small, lane=self.lane)
            self.run(after_ms=step_ms)

    def warm(self) -> "Stream":
        """A full window, of which a little leaves at a time."""
        for _ in range(LIMIT // self.small):
            self.submit("a", self.small, lane=self.lane)
            self.run(after_ms=WINDOW_MS * self.small // LIMIT)
        return self

    def until_somebody_saves(self) -> None:
        for _ in range(3 * WINDOW_MS // 100):
            if self.saver is not None:
                return
            self.flow(100, "a", "b")
        pytest.fail("nobody saves")

    def granted_ms(self, operation: bytes) -> int | None:
        found = [at for at, grant in self.grants if grant.operation == operation]
        return found[0] if found else None

    @property
    def saver(self) -> bytes | None:
        saving = self.cell.state.config.domains["d"].row.saving
        return None if saving is None else saving.head.operation

    def started(self) -> Iterable[e.SavingStarted]:
        return c.only(e.SavingStarted, self.events)
