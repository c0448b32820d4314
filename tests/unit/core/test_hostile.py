"""Inputs that no honest client sends: each has its answer, changes nothing, and stops no owner."""

import pytest

from schemas import events as e
from schemas.codes import Code
from tests.support import cells as s
from tests.support import core as c

KEYED = c.submitted("a", "1", effect="keyed")
ABOUT = [
    c.claim,
    c.start,
    lambda grant, **over: c.sent(grant, 5, **over),
    c.result,
    lambda grant, **over: c.result(grant, "unknown", **over),
    lambda grant, **over: c.checkpoint(grant, 1, **over),
    lambda grant, **over: c.usage(grant, 500, **over),
    lambda grant, **over: c.evidence(grant, "completed", **over),
    lambda grant, **over: c.reconcile(grant, "completed", **over),
]
STATES = [s.granted, s.started, s.unknown]


def rest(cell):
    """What the cell knows, but for what every entry writes."""
    return {key: row for key, row in cell.rows.values.items() if key[0]}


@pytest.mark.parametrize("number", [-(2**31), -1, 0, 2**31 - 1])
@pytest.mark.parametrize("field", ["epoch", "incarnation", "attempt"])
@pytest.mark.parametrize("state", STATES)
def test_numbers_that_no_grant_has_change_nothing(state, field, number):
    cell = s.cell(c.dimension("slots", 9), c.dimension("tokens", 900))
    grant = state(cell, KEYED)
    before = rest(cell)
    for about in ABOUT:
        asked = about(grant)
        if hasattr(asked, field):
            cell.run(about(grant, **{field: number}))
            assert rest(cell) == before, asked


@pytest.mark.parametrize("epoch", [-1, 0, 1])
def test_usage_of_what_never_had_an_attempt_is_refused(epoch):
    cell = s.cell(c.dimension("slots", 0), c.dimension("tokens", 900))
    waits, refused = c.submitted("a", "1"), c.submitted("a", "2", output_tokens_max=None)
    other = s.granted(s.cell(), waits)
    cell.run(waits, refused)
    before = rest(cell)
    for asked in (waits, refused):
        row = cell.state.operation(c.id_of(asked))
        named = {"operation": c.id_of(asked), "incarnation": row.incarnation, "epoch": epoch}
        (answer,) = cell.run(c.usage(other, 500, **named))
        assert (type(answer), answer.code) == (e.UsageRefused, Code.EPOCH_SUPERSEDED)
    assert rest(cell) == before


def test_what_a_person_says_of_a_refused_operation_is_refused():
    cell = s.cell()
    asked = c.submitted("a", "1", output_tokens_max=None)
    cell.run(asked)
    grant = s.granted(cell, c.submitted("a", "2"))
    events = cell.run(
        c.retry(grant, operation=c.id_of(asked)),
        *(
            c.reconcile(grant, verdict, operation=c.id_of(asked), epoch=epoch)
            for verdict in ("completed", "failed", "not_executed", "abandoned")
            for epoch in (None, 0, 1)
        ),
    )
    assert {one.code for one in events} == {Code.NOT_DEAD, Code.NOT_UNKNOWN}
