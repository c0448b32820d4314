"""Entry time follows the broker's append clock: late at first, slowly, and never back."""

from itertools import pairwise

import pytest

from streams.shell.clock import (
    NO_QUICK_REPORT_MS,
    Anchor,
    BrokerClock,
    SystemMonotonic,
    cold_time_ms,
)

HOUR_MS = 3_600_000


def clock(*, time_ms: int = 10_000, append_ms: int = 10_000, last_ms: int = 0) -> BrokerClock:
    return BrokerClock(at_ms=0, time_ms=time_ms, append_ms=append_ms, last_ms=last_ms)


def test_time_runs_with_the_monotonic_clock_when_nothing_is_reported() -> None:
    assert [clock().now_ms(at_ms) for at_ms in (0, 7, HOUR_MS)] == [
        10_000,
        10_007,
        10_000 + HOUR_MS,
    ]


def test_time_never_goes_back_behind_the_entry_that_is_extended() -> None:
    late = clock(last_ms=10_500)
    assert [late.now_ms(at_ms) for at_ms in (0, 400, 600)] == [10_500, 10_500, 10_600]


@pytest.mark.parametrize(
    ("before", "round_trip_ms", "counts"),
    [
        ([], 1, True),
        ([], 19, True),
        ([], 20, False),
        ([30], 59, True),
        ([30], 60, False),
        ([5], 19, True),
        ([5], 20, False),
        ([30] * 3 + [12], 24, False),
        ([1] + [30] * 99, 59, False),
        ([1] + [30] * 100, 59, True),  # the shortest has left the last hundred
    ],
)
def test_only_quick_reports_move_the_estimate(
    before: list[int], round_trip_ms: int, *, counts: bool
) -> None:
    heard, at_ms = clock(), 0
    for span_ms in before:
        heard.report(sent_ms=at_ms, at_ms=at_ms + span_ms, append_ms=10_000 + at_ms)
        at_ms += span_ms
    sent_ms = at_ms
    heard.report(sent_ms=sent_ms, at_ms=sent_ms + round_trip_ms, append_ms=20_000 + sent_ms)
    assert heard.is_behind(5_000) is counts


def test_a_report_is_anchored_at_the_produce_call() -> None:
    heard = clock()
    heard.report(sent_ms=100, at_ms=110, append_ms=10_105)
    assert heard.read(HOUR_MS, 1_000).time_ms == 10_005 + HOUR_MS


@pytest.mark.parametrize("gap_ms", [-900, -50, 50, 900])
def test_time_slews_by_a_hundred_millionths_at_most(gap_ms: int) -> None:
    heard = clock()
    heard.report(sent_ms=0, at_ms=1, append_ms=10_000 + gap_ms)
    times = [heard.now_ms(at_ms) for at_ms in range(0, 10 * HOUR_MS, 100_000)]
    for before, after in pairwise(times):
        assert abs(after - before - 100_000) <= 11
    assert times[-1] - times[0] - (10 * HOUR_MS - 100_000) == gap_ms


def test_a_gap_beyond_the_silence_is_stepped_forward_and_recorded() -> None:
    heard = clock()
    heard.report(sent_ms=100, at_ms=101, append_ms=15_100)
    assert heard.is_behind(1_000)
    reading = heard.read(101, 1_000)
    assert (reading.time_ms, reading.step_ms, reading.shift_ms) == (15_101, 5_000, 0)
    assert heard.read(102, 1_000).step_ms is None


def test_time_is_never_stepped_back() -> None:
    heard = clock()
    heard.report(sent_ms=100, at_ms=101, append_ms=4_100)
    reading = heard.read(102, 1_000)
    assert (reading.time_ms, reading.step_ms, reading.shift_ms) == (10_101, None, 5_999)


def test_a_jump_of_the_brokers_clock_is_told_and_drift_is_not() -> None:
    heard = clock()
    jumps = [
        heard.report(sent_ms=sent_ms, at_ms=sent_ms + 1, append_ms=append_ms)
        for sent_ms, append_ms in ((0, 10_000), (HOUR_MS, 10_500 + HOUR_MS), (HOUR_MS + 9, 0))
    ]
    assert jumps[:2] == [0, 0]
    assert jumps[2] > HOUR_MS


def test_an_owner_without_a_quick_report_for_a_minute_is_deaf() -> None:
    heard = clock()
    heard.report(sent_ms=0, at_ms=5, append_ms=10_000)
    heard.report(sent_ms=10, at_ms=900, append_ms=10_500)
    assert [heard.is_deaf(at_ms) for at_ms in (NO_QUICK_REPORT_MS, NO_QUICK_REPORT_MS + 6)] == [
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("append_ms", "leader_epoch", "shift_ms", "time_ms"),
    [
        # append  leader  shift  entry time   anchor: appended at 1,000 as 900 under leader 3
        (2_000, 3, -100, 1_900),  # both witnesses agree
        (2_000, 3, 500, 2_000),  # the shift says more than anchor and bound allow
        (2_000, 3, -700, 1_300),  # the shift says less: the smaller counts
        (2_000, 4, -100, 1_800),  # another leader: the bound comes off
        (2_000, -1, -100, 1_800),  # nobody knows the leader: the same
    ],
)
def test_a_cold_owner_takes_the_smaller_witness(
    append_ms: int, leader_epoch: int, shift_ms: int, time_ms: int
) -> None:
    anchor = Anchor(append_ms=1_000, time_ms=900, leader_epoch=3)
    assert cold_time_ms(append_ms, leader_epoch, shift_ms, anchor, bound_ms=100) == time_ms


def test_the_hosts_own_clock_does_not_go_back() -> None:
    monotonic = SystemMonotonic()
    readings = [monotonic.now_ms() for _ in range(100)]
    assert readings == sorted(readings)
