"""Work that configuration made unfit: out of the way, and back at its old place."""

from schemas import events as e
from tests.support import cells as s
from tests.support import core as c


def keys(events, asked):
    names = {c.id_of(one): one.idempotency_key for one in asked}
    return [names[grant.operation] for grant in s.grants(events)]


def test_a_lowered_limit_parks_what_can_no_longer_fit_and_it_blocks_nobody():
    cell = s.cell(c.dimension("tokens", 100), places=1)
    first = s.started(cell, c.submitted("a", "1", output_tokens_max=50))
    asked = [
        c.submitted("a", "80", output_tokens_max=70),
        c.submitted("a", "30", output_tokens_max=20),
    ]
    cell.run(*asked)
    cell.run(c.domain(c.dimension("tokens", 50)))
    events = cell.run(c.result(first), after_ms=70_000)
    parked = s.one(e.OperationParked, events)
    assert (parked.reason, parked.level, parked.dimension) == ("never-fits", "domain", "tokens")
    assert keys(events, asked) == ["30"]


def test_parked_work_returns_at_its_old_place_when_the_limit_allows_it():
    cell = s.cell(c.dimension("tokens", 100), places=2)
    cell.run(c.domain(c.dimension("tokens", 100)))
    first = s.started(cell, c.submitted("a", "0"))
    asked = [c.submitted("a", "1"), c.submitted("a", "2", output_tokens_max=20)]
    cell.run(*asked)
    cell.run(c.domain(c.dimension("tokens", 50)))
    events = cell.run(c.result(first), after_ms=61_500)
    assert keys(events, asked) == ["2"]
    cell.run(c.submitted("a", "3"))
    events = cell.run(c.domain(c.dimension("tokens", 1_000)))
    assert s.kinds(events)[:2] == ["ConfigActivated", "OperationUnparked"]
    assert s.grants(events)[0].operation == c.id_of(asked[0])


def test_parked_work_expires_at_its_deadline_and_can_be_cancelled():
    cell = s.cell(c.dimension("tokens", 100), places=2)
    first = s.started(cell, c.submitted("a", "0"))
    asked = [c.submitted("a", "1", start_within_ms=200_000), c.submitted("a", "2")]
    cell.run(*asked)
    cell.run(c.domain(c.dimension("tokens", 50)))
    cell.settle_down(c.result(first), after_ms=61_500)
    assert cell.state.operation(c.id_of(asked[0])).phase == "parked"
    s.one(e.OperationCancelled, cell.run(s.cancel(asked[1])))
    s.one(e.OperationExpired, cell.run(after_ms=200_000))
    assert cell.state.cell.waiting == 0


def test_a_review_of_parked_work_is_bounded_and_goes_on_in_the_next_entry():
    cell = s.cell(c.dimension("tokens", 100), cell_bounds={"grants_per_entry_max": 10})
    first = s.started(cell, c.submitted("a", "0"))
    asked = [c.submitted("a", str(n)) for n in range(1, 151)]
    cell.settle_down(*asked)
    cell.run(c.domain(c.dimension("tokens", 50)))
    cell.settle_down(c.result(first), after_ms=61_500)
    assert {cell.state.operation(c.id_of(one)).phase for one in asked} == {"parked"}
    events = cell.run(c.domain(c.dimension("tokens", 49)))
    assert len(events) == 1 + 64
    assert cell.state.more
    cell.take_over()  # a new owner goes on where the review was
    assert len(cell.settle_down()) == 150 - 64
    unparked = c.only(e.OperationUnparked, cell.settle_down(c.domain(c.dimension("tokens", 100))))
    assert [one.operation for one in unparked] == [c.id_of(one) for one in asked]
