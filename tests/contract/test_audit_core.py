"""The audit and the core were written twice: over random histories they never disagree."""

import pytest

from evenhand.audit.auditor import audit
from schemas.events import GrantIssued
from tests.support import core as c
from tests.support.logs import CELL, partition_of
from tests.support.recorded import RecordedCore
from tests.support.walk import Walk


@pytest.mark.parametrize("seed", range(40))
def test_the_audit_finds_nothing_in_what_the_core_decides(seed: int) -> None:
    cell = RecordedCore()
    walk = Walk(seed, cell)
    for _ in range(200):
        walk.entry()
    cell.run()  # says that everything before it is out
    findings = audit(cell.logs, CELL, partition_of=partition_of, strict=True)
    assert findings.findings == ()
    assert findings.entries == len(cell.entries)


def test_a_send_report_after_a_takeover_keeps_the_takeover_term() -> None:
    cell = RecordedCore()
    requests = c.dimension("requests", 1, window_ms=1_000)
    cell.run(c.domain(requests, send_within_ms=200, claim_by_ms=700), c.pool())
    cell.run(c.join(places=2))
    cell.run(c.heartbeat())
    grant = c.only(GrantIssued, cell.run(c.submitted("t", "a")))[0]
    cell.run(c.start(grant))
    cell.take_over()
    cell.run(c.sent(grant, 0))
    cell.run(c.submitted("t", "b"))
    cell.run(c.result(grant))
    cell.settle_down(after_ms=1_000 + 20)
    findings = audit(cell.logs, CELL, partition_of=partition_of)
    assert findings.findings == ()
