"""What a member says of when it sent its call, true or not: no charge leaves before it may."""

from random import Random

import pytest

from schemas import events as e
from streams.core.exits import exit_ms
from tests.support import cells as s
from tests.support import core as c

SEND_WITHIN_MS, TRANSIT_MS, TERM_MS = 400, 50, 121
WINDOWS = [
    {"kind": "sliding", "window_ms": 1_000},
    {"kind": "bucket", "window_ms": 1_000},
    {"kind": "fixed", "window_ms": 1_000},
    {"kind": "fixed", "window_ms": 1_000, "reset_ms": 300, "reset_uncertainty_ms": 20},
]
DELAYS = [-(2**63), -1, 0, 1, 399, 400, 401, 10**12, 2**63 - 1]


def exit_of(cell, accepted_ms, delay_ms):
    """When a call leaves that was sent so long after its start was accepted, without takeovers."""
    (window,) = cell.state.config.domains["d"].windows
    latest_ms = accepted_ms + delay_ms + TRANSIT_MS
    return exit_ms(window.config, latest_ms=latest_ms, send_within_ms=SEND_WITHIN_MS)


def cell_with(one, **domain):
    pace = None if one["kind"] == "bucket" else 100
    dimension = c.dimension("requests", 9, **{"pace_percent": pace, **one})
    return s.cell(dimension, send_within_ms=SEND_WITHIN_MS, transit_ms=TRANSIT_MS, **domain)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("one", WINDOWS, ids=lambda one: "-".join(map(str, one.values())))
def test_whatever_is_said_how_often_and_by_whom_a_charge_leaves_when_its_call_may_have_left(
    one, seed
):
    chance = Random(seed)
    cell = cell_with(one)
    grant = s.started(cell, c.submitted("a", "1"))
    accepted_ms, believed = cell.now_ms, SEND_WITHIN_MS
    (window,) = cell.state.config.domains["d"].windows
    aged_ms = 0
    for _ in range(40):
        match chance.choice(["sent", "sent", "sent", "stranger", "takeover", "time"]):
            case "sent":
                delay_ms = chance.choice(DELAYS)
                observed = c.only(e.SendObserved, cell.run(c.sent(grant, delay_ms)))
                is_first = believed == SEND_WITHIN_MS
                assert bool(observed) is (is_first and 0 <= delay_ms < SEND_WITHIN_MS)
                believed = delay_ms if observed else believed
            case "stranger":
                over = chance.choice([{"epoch": 2}, {"member_epoch": "e2"}, {"attempt": 2}])
                assert not c.only(e.SendObserved, cell.run(c.sent(grant, 0, **over)))
            case "takeover":
                cell.take_over()
                (window,) = cell.state.config.domains["d"].windows
                aged_ms = TERM_MS
            case "time":
                cell.run(after_ms=chance.randint(0, 9))
        assert window.next_exit_ms == exit_of(cell, accepted_ms, believed) + aged_ms
    assert s.same_as_followed(cell)


@pytest.mark.parametrize("delay_ms", DELAYS)
@pytest.mark.parametrize("one", WINDOWS, ids=lambda one: "-".join(map(str, one.values())))
def test_after_its_settlement_nothing_that_is_said_moves_a_charge(one, delay_ms):
    cell = cell_with(one)
    grant = s.started(cell, c.submitted("a", "1"))
    (window,) = cell.state.config.domains["d"].windows
    cell.run(c.result(grant))
    before = window.next_exit_ms
    assert not c.only(e.SendObserved, cell.run(c.sent(grant, delay_ms)))
    cell.run(c.result(grant, send_delay_ms=delay_ms))
    assert (window.next_exit_ms, window.used) == (before, 1)


@pytest.mark.parametrize("delay_ms", DELAYS)
@pytest.mark.parametrize("one", WINDOWS, ids=lambda one: "-".join(map(str, one.values())))
def test_with_an_unknown_outcome_a_delay_counts_as_ever_until_its_hold_is_closed(one, delay_ms):
    cell = cell_with(one, unknown_hold_ms=2_000, call_ms_max=30)
    grant = s.started(cell, c.submitted("a", "1"))
    accepted_ms = cell.now_ms
    (window,) = cell.state.config.domains["d"].windows
    cell.run(c.result(grant, "unknown", send_delay_ms=delay_ms))
    believed = delay_ms if 0 <= delay_ms < SEND_WITHIN_MS else SEND_WITHIN_MS
    assert window.next_exit_ms == exit_of(cell, accepted_ms, believed)
    proof_ms = SEND_WITHIN_MS + TRANSIT_MS + 30  # it cannot be under way any more
    s.one(e.ReservationSettled, cell.run(after_ms=proof_ms))
    assert s.phase(cell, grant) == "unknown"
    before = window.next_exit_ms
    assert not c.only(e.SendObserved, cell.run(c.sent(grant, 0)))
    assert window.next_exit_ms == before


@pytest.mark.parametrize("delay_ms", DELAYS)
def test_before_its_start_nothing_that_is_said_gives_a_charge_an_exit(delay_ms):
    cell = cell_with(WINDOWS[0])
    grant = s.granted(cell, c.submitted("a", "1"))
    (window,) = cell.state.config.domains["d"].windows
    assert not c.only(e.SendObserved, cell.run(c.sent(grant, delay_ms)))
    assert (window.next_exit_ms, window.used) == (None, 1)
    s.one(e.StartAccepted, cell.run(c.start(grant), after_ms=700))
    assert window.next_exit_ms == exit_of(cell, cell.now_ms, SEND_WITHIN_MS)


@pytest.mark.parametrize("delay_ms", DELAYS)
def test_of_a_call_that_has_left_its_window_a_late_word_takes_nothing_out_again(delay_ms):
    cell = cell_with(WINDOWS[0])
    grant = s.started(cell, c.submitted("a", "1"))
    (window,) = cell.state.config.domains["d"].windows
    cell.run(after_ms=2_000)
    assert window.used == 0
    s.started(cell, c.submitted("a", "2"))
    before = window.next_exit_ms
    cell.run(c.sent(grant, delay_ms))
    assert (window.used, window.next_exit_ms) == (1, before)
    assert s.same_as_followed(cell)
