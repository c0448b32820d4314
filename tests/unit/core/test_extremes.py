"""Numbers at their edges: limits, windows, amounts and instants that nobody means."""

import pytest

from schemas import events as e
from schemas.codec import encode
from schemas.codes import Code
from schemas.inputs import Prices
from streams.core import usage
from streams.core.limits import LIMIT_MAX, PRICE_MAX, TOKENS_MAX, USED_MAX, WINDOW_MS_MAX
from tests.support import cells as s
from tests.support import core as c

INT64_MAX = 2**63 - 1
KINDS = ("sliding", "fixed", "bucket")


def whole(**over):
    """A call of as many tokens as a call can have."""
    return c.submitted("a", "1", prompt_tokens=TOKENS_MAX, output_tokens_max=TOKENS_MAX, **over)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limit", [2 * TOKENS_MAX, LIMIT_MAX])
@pytest.mark.parametrize("window_ms", [1, 1_000, WINDOW_MS_MAX])
@pytest.mark.parametrize("pace_percent", [None, 1, 100])
def test_the_largest_numbers_fit_every_row_and_event(kind, limit, window_ms, pace_percent):
    pace = None if kind == "bucket" else pace_percent
    window = {"kind": kind, "window_ms": window_ms, "pace_percent": pace, "amount": "actual"}
    cell = s.cell(c.dimension("tokens", limit, **window))
    grant = s.started(cell, whole())
    used = {"prompt_tokens": TOKENS_MAX, "output_tokens": TOKENS_MAX}
    events = cell.run(c.result(grant, **used))
    assert all(encode(one) for one in events)
    cell.run(c.usage(grant, TOKENS_MAX, evidence="once more"))
    assert s.used(cell, "tokens") <= LIMIT_MAX
    cell.run(after_ms=1)
    assert s.same_as_followed(cell)


@pytest.mark.parametrize("unit", ["tokens", "money"])
def test_reports_that_go_up_and_down_for_ever_never_sum_up_beyond_64_bits(unit, monkeypatch):
    prices = Prices(currency="EUR", output_micros=PRICE_MAX)
    cell = s.cell(c.dimension(unit, LIMIT_MAX, amount="actual"), prices=prices)
    grant = s.started(cell, c.submitted("a", "1"))
    cell.run(c.result(grant, prompt_tokens=0, output_tokens=0))
    most = TOKENS_MAX * (PRICE_MAX // 10**6 if unit == "money" else 1)
    monkeypatch.setattr(usage, "USED_MAX", 2 * most)
    reports = [c.usage(grant, TOKENS_MAX * (n % 2), evidence=f"u{n}") for n in range(1, 9)]
    refused = c.only(e.UsageRefused, cell.run(*reports))
    assert {one.code for one in refused} == {Code.USAGE_OUT_OF_RANGE}
    assert s.used(cell, unit) == 3 * most
    assert USED_MAX + most < INT64_MAX
    assert s.same_as_followed(cell)


@pytest.mark.parametrize("kind", KINDS)
def test_a_limit_of_one_takes_an_overdraft_of_billions_and_comes_back(kind):
    cell = s.cell(c.dimension("tokens", 1, kind=kind, window_ms=1_000), send_within_ms=1)
    grant = s.started(cell, c.submitted("a", "1", prompt_tokens=1, output_tokens_max=0))
    cell.run(c.result(grant, prompt_tokens=TOKENS_MAX, output_tokens=TOKENS_MAX))
    one = c.submitted("a", "2", prompt_tokens=1, output_tokens_max=0)
    assert not s.grants(cell.run(one))
    assert s.grants(cell.run(after_ms=2_100))
    assert s.same_as_followed(cell)


def test_an_entry_at_the_end_of_time_breaks_nothing():
    cell = s.cell(c.dimension("tokens", 1_000, pace_percent=None))
    s.started(cell, c.submitted("a", "1"))
    cell.settle_down(after_ms=9 * 10**12 - cell.now_ms)
    assert s.used(cell, "tokens") == 0
    cell.run(c.join(member_epoch="e2", places=9), c.heartbeat(member_epoch="e2"))
    s.started(cell, c.submitted("a", "2"))
    assert s.same_as_followed(cell)


DELAYS = [-1, -INT64_MAX, 1_000, INT64_MAX]


@pytest.mark.parametrize("delay_ms", DELAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_an_impossible_send_time_moves_no_exit(kind, delay_ms):
    cell = s.cell(c.dimension("requests", 9, kind=kind, window_ms=1_000), send_within_ms=1_000)
    grant = s.started(cell, c.submitted("a", "1"))
    window = cell.state.config.windows["domain", "d", "requests"]
    before = window.next_exit_ms
    events = cell.run(c.sent(grant, delay_ms))
    assert not c.only(e.SendObserved, events)
    cell.run(c.result(grant, send_delay_ms=delay_ms))
    assert window.next_exit_ms == before
    assert s.same_as_followed(cell)


@pytest.mark.parametrize("kind", [*KINDS, "concurrency"])
def test_a_limit_lowered_below_use_blocks_until_use_fits_and_raised_again_lets_go(kind):
    unit = "slots" if kind == "concurrency" else "requests"
    window_ms = None if kind == "concurrency" else 60_000
    one = {"kind": kind, "unit": unit, "window_ms": window_ms}
    cell = s.cell(c.dimension("x", 4, **one), send_within_ms=1)
    for n in range(4):
        s.started(cell, c.submitted("a", str(n)))
    cell.run(after_ms=500)  # all have arrived
    assert not s.grants(cell.run(c.domain(c.dimension("x", 2, **one)), c.submitted("a", "next")))
    window = cell.state.config.windows["domain", "d", "x"]
    assert window.free <= 0
    assert s.grants(cell.run(c.domain(c.dimension("x", 9, **one), send_within_ms=1)))
    assert s.same_as_followed(cell)


def test_ten_thousand_configurations_leave_one_row_and_no_lost_charge():
    cell = s.cell(c.dimension("tokens", 1_000), c.dimension("slots", 9))
    grant = s.started(cell, c.submitted("a", "1"))
    rows = len(cell.rows.values)
    for n in range(10_000 // 50):
        limits = [500 + (50 * n + k) % 997 for k in range(50)]
        asked = [c.domain(c.dimension("tokens", one), c.dimension("slots", 9)) for one in limits]
        assert len(c.only(e.ConfigActivated, cell.run(*asked))) == 50
        cell.entries.clear()
    assert len(cell.rows.values) <= rows + 1
    assert cell.state.config.version("domain", "d") == 10_001
    assert s.used(cell, "tokens") == 100
    s.one(e.ReservationSettled, cell.run(c.result(grant)))
    cell.run(after_ms=70_000)
    assert s.used(cell, "tokens") == s.used(cell, "slots") == 0
