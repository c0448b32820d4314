"""Savers without a place, past their deadline, too many or too far."""

import pytest

from schemas import events as e
from schemas.lanes import DECISION, INTERACTIVE
from streams.core import saving
from tests.support import cells as s
from tests.support import core as c
from tests.support.stream import LIMIT, WINDOW_MS, Stream, tokens

TTL_MS = 500


def served_by_n(**pool) -> tuple[Stream, bytes]:
    """Pool q has member n; a head of it saves."""
    stream = Stream(skips_max=4)
    stream.cell.run(c.pool("q", **pool), c.join("n", pool="q", places=1), c.heartbeat("n"))
    stream.warm()
    large = stream.submit("c", 900, pool="q")
    stream.until_somebody_saves()
    return stream, large


def used(stream: Stream, span_ms: int) -> int:
    """Tokens granted to others over a span."""
    before = len(stream.grants)
    stream.flow(span_ms, "a", "b")
    return sum(grant.tokens for _, grant in stream.grants[before:])


def drained(stream: Stream) -> None:
    stream.run(s.leave("n"))


def lost(stream: Stream) -> None:
    stream.run(s.bounds(member_ttl_ms=TTL_MS), c.heartbeat("n"))
    for _ in range(2):
        stream.run(c.heartbeat(), after_ms=TTL_MS)
    stream.run(s.bounds(), c.heartbeat())


@pytest.mark.parametrize("leave", [drained, lost])
def test_a_saver_that_nobody_is_left_to_run_holds_nobody_back_and_saves_again(leave):
    stream, large = served_by_n()
    leave(stream)
    assert stream.saver is None
    assert used(stream, 2 * WINDOW_MS) >= 2 * 0.9 * LIMIT
    stream.run(c.join("o", pool="q"), c.heartbeat("o"))
    assert stream.saver == large
    stream.flow(WINDOW_MS + 2_000, "a", "b")
    assert stream.granted_ms(large) is not None
    assert s.same_as_followed(stream.cell)


def test_a_saver_whose_pool_is_only_full_keeps_what_it_needs():
    stream, large = served_by_n()
    free = c.submitted("d", "busy", pool="q", prompt_tokens=0, output_tokens_max=0)
    s.started(stream.cell, free)
    assert used(stream, 2 * WINDOW_MS) < LIMIT
    assert (stream.saver, stream.granted_ms(large)) == (large, None)


def test_a_saver_of_another_pool_goes_on_saving_when_a_member_leaves():
    stream, large = served_by_n()
    stream.cell.run(c.pool("r"), c.join("o", pool="r"), c.heartbeat("o"))
    stream.run(s.leave("o"))
    assert stream.saver == large


def test_a_saver_of_an_open_pool_needs_no_member():
    stream, large = served_by_n(unclaimed_max=1)
    stream.run(s.leave("n"))
    assert stream.saver == large


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
