"""Savers without a place, past their deadline, too many or too far."""

from schemas import events as e
from schemas.lanes import DECISION, INTERACTIVE
from streams.core import saving
from tests.support import cells as s
from tests.support import core as c
from tests.support.stream import WINDOW_MS, Stream, tokens


def test_a_saver_without_a_place_keeps_what_it_needs_until_it_has_one():
    stream = Stream(skips_max=4)
    stream.cell.run(c.pool("q"), c.join("n", pool="q"), c.heartbeat("n"))
    stream.warm()
    large = stream.submit("c", 900, pool="q")
    stream.until_somebody_saves()
    stream.run(s.leave("n"))
    stream.flow(2 * WINDOW_MS, "a", "b")
    assert (stream.saver, stream.granted_ms(large)) == (large, None)
    stream.run(c.join("o", pool="q"), c.heartbeat("o"))
    assert stream.granted_ms(large) is not None


def test_a_saver_whose_timer_is_still_behind_others_expires_instead_of_going():
    stream = Stream(skips_max=4)
    stream.warm().submit("c", 900, start_within_ms=2 * WINDOW_MS)
    stream.until_somebody_saves()
    stream.cell.state.touch("d")
    events = stream.cell.run(after_ms=2 * WINDOW_MS, timers=False)
    assert s.one(e.OperationExpired, events).tenant == "c"
    assert stream.saver is None


def test_no_more_heads_are_remembered_than_the_bound(monkeypatch):
    monkeypatch.setattr(saving, "SKIPPED_MAX", 0)
    stream = Stream(skips_max=4)
    stream.warm().submit("c", 900)
    stream.flow(WINDOW_MS, "a", "b")
    assert stream.saver is None
    assert not stream.cell.state.config.domains["d"].row.skipped


def test_of_two_that_are_too_far_each_is_told_its_instant():
    day = tokens(kind="fixed", reset_ms=0, window_ms=100_000)
    stream = Stream(day, skips_max=2, saving_max_ms=5_000)
    for _ in range(4):
        stream.submit("a", stream.small)
    stream.submit("c", 900, lane=DECISION)
    for tenant in ("a", "b", "a"):
        stream.submit(tenant, stream.small)
    stream.submit("d", 900, lane=INTERACTIVE)
    for tenant in ("b", "a", "b", "a", "b"):
        stream.submit(tenant, stream.small, lane=DECISION)
    far = [one for one in c.only(e.OperationDeferred, stream.events) if one.held_by == "far"]
    assert {one.tenant for one in far} == {"c", "d"}
