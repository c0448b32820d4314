"""When a charge leaves a window: each exit one unit before, at and after its instant."""

import pytest

from streams.core.budgets import earliest_ms
from streams.core.costs import Cost
from streams.core.due import Due
from streams.core.exits import Aging, bucket_ms, exit_ms, parse_bucket_key, takeover_term_ms
from streams.core.limits import LIMIT_MAX, WINDOW_MS_MAX
from streams.core.operations import Charge
from streams.core.rows import KINDS
from streams.core.tables import Overlay, Table
from streams.core.windows import Window
from tests.support import core as c

TERM_MS = 121
"""100 ms of clock bound and 21 ms of spread."""


def window(limit=100, rows=None, aging=None, **over):
    overlay, config = Overlay(rows or c.MemoryRows(), KINDS), c.dimension("tokens", limit, **over)
    return Window(overlay, "domain", "d", config, Due(), aging or Aging(1, TERM_MS))


def take_over(one):
    one._aging.epoch += 1
    one.age(one._aging.term_ms)


# -- arithmetic ---------------------------------------------------------------------------------

BUCKETS = [
    (1, 1),
    (256, 1),
    (257, 2),
    (1_000, 4),
    (60_000, 235),
    (3_600_000, 14_063),
]


@pytest.mark.parametrize(("window_ms", "bucket"), BUCKETS)
def test_a_bucket_is_a_256th_of_the_window_and_at_least_1_ms(window_ms, bucket):
    assert bucket_ms(c.dimension("tokens", 1, window_ms=window_ms)) == bucket


SLIDING = [
    # window_ms, send_within_ms, latest_ms, exit_ms
    (1_000, 200, 1_000, 2_004),  # 1,000 + 1,000 + 1 + 1 (rho, rounded up) = 2,002; bucket 4
    (1_000, 200, 1_002, 2_004),
    (1_000, 200, 1_003, 2_008),
    (100, 0, 50, 152),  # rho of 0.02 ms is a whole millisecond; bucket 1
    (60_000, 1_000, 0, 60_160),  # 60,000 + 1 + 13 (12.2 rounded up) = 60,014; bucket 235
]


@pytest.mark.parametrize(("window_ms", "send_within_ms", "latest_ms", "leaves"), SLIDING)
def test_a_sliding_charge_leaves_a_window_after_its_latest_arrival_rounded_up(
    window_ms, send_within_ms, latest_ms, leaves
):
    one = c.dimension("tokens", 1, window_ms=window_ms)
    assert exit_ms(one, latest_ms=latest_ms, send_within_ms=send_within_ms) == leaves


@pytest.mark.parametrize("kind", ["sliding", "fixed"])
def test_a_fixed_window_of_unknown_alignment_counts_as_sliding(kind):
    one = c.dimension("tokens", 1, window_ms=1_000, kind=kind)
    assert exit_ms(one, latest_ms=1_000, send_within_ms=200) == 2_004


FIXED = [
    # reset_ms, uncertainty, latest_ms, exit_ms
    (0, 0, 59_999, 60_000),
    (0, 0, 60_000, 120_000),
    (0, 0, 60_001, 120_000),
    (500, 0, 60_499, 60_500),
    (500, 0, 60_500, 120_500),
    (0, 50, 59_949, 60_050),  # surely before the edge; the window may end 50 ms late
    (0, 50, 59_950, 120_050),  # the provider's edge may be 50 ms early: counts in both
    (0, 50, 60_050, 120_050),
    (10**9, 0, 59_999, 10**9 - (10**9 - 60_000) // 60_000 * 60_000),  # a reset to come
]


@pytest.mark.parametrize(("reset_ms", "uncertainty", "latest_ms", "leaves"), FIXED)
def test_a_fixed_window_with_a_known_reset_ends_for_a_charge_wherever_it_may_have_fallen(
    reset_ms, uncertainty, latest_ms, leaves
):
    one = c.dimension(
        "tokens", 1, kind="fixed", reset_ms=reset_ms, reset_uncertainty_ms=uncertainty
    )
    assert exit_ms(one, latest_ms=latest_ms, send_within_ms=200) == leaves


LATER = [
    # window_ms, later resets, uncertainty, latest_ms, exit_ms; the first reset is at 500
    (60_000, (180_000,), 0, 120_499, 120_500),
    (60_000, (180_000,), 0, 120_500, 180_000),  # 500 ms shorter than the others
    (60_000, (181_000,), 0, 120_500, 181_000),  # 500 ms longer
    (60_000, (181_000,), 0, 180_999, 181_000),
    (60_000, (181_000,), 0, 181_000, 241_000),  # from the last one on as from the first
    (60_000, (210_499,), 0, 180_499, 210_499),  # nearly half a window longer
    (60_000, (210_500,), 0, 180_499, 180_500),  # half a window is one of its own
    (60_000, (210_500,), 0, 180_500, 210_500),
    (60_000, (30_500,), 0, 500, 30_500),
    (60_000, (181_000, 300_000), 0, 240_999, 241_000),
    (60_000, (181_000, 300_000), 0, 241_000, 300_000),
    (60_000, (181_000, 300_000), 0, 300_000, 360_000),
    (60_000, (181_000,), 50, 180_949, 181_050),
    (60_000, (181_000,), 50, 180_950, 241_050),  # the provider's edge may be 50 ms early
    (1, (502, 504), 0, 501, 502),
    (60_000, (LIMIT_MAX,), 0, 499, 500),  # before the first
    (3, (LIMIT_MAX,), 0, LIMIT_MAX - 1, LIMIT_MAX),
    (WINDOW_MS_MAX, (LIMIT_MAX,), 0, LIMIT_MAX, LIMIT_MAX + WINDOW_MS_MAX),
]


@pytest.mark.parametrize(("window_ms", "later", "uncertainty", "latest_ms", "leaves"), LATER)
def test_a_later_reset_ends_the_window_before_it_and_begins_the_next(
    window_ms, later, uncertainty, latest_ms, leaves
):
    one = c.dimension(
        "tokens",
        1,
        kind="fixed",
        window_ms=window_ms,
        reset_ms=500,
        later_resets_ms=later,
        reset_uncertainty_ms=uncertainty,
    )
    assert exit_ms(one, latest_ms=latest_ms, send_within_ms=200) == leaves


def test_the_takeover_term_is_the_clock_bound_and_the_spread_of_the_estimate():
    assert takeover_term_ms(100) == TERM_MS


# -- one window ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("now_ms", "used"), [(999, 30), (1_000, 0), (1_001, 0)])
def test_at_its_exit_a_charge_no_longer_counts(now_ms, used):
    one = window()
    one.add(30)
    one.set_exit(30, 1_000)
    assert one.leave(now_ms) is (used == 0)
    assert (one.used, one.free) == (used, 100 - used)


def test_charges_with_one_exit_share_a_bucket_and_each_can_be_taken_out():
    one = window()
    charges = [Charge("domain", "tokens", amount, 1_000, 1) for amount in (10, 20)]
    for charge in charges:
        one.add(charge.amount)
        one.set_exit(charge.amount, 1_000)
    assert one.unset_exit(charges[0])
    assert (one.leaving, one.used) == (20, 30)
    one.leave(1_000)
    assert one.used == 10


def test_a_charge_that_has_left_cannot_be_taken_out_or_corrected():
    one = window()
    one.add(30)
    one.set_exit(30, 1_000)
    one.leave(1_000)
    charge = Charge("domain", "tokens", 30, 1_000, 1)
    assert not one.unset_exit(charge)
    one.correct(charge, 500, now_ms=1_000)
    assert (one.used, one.leaving) == (0, 0)


@pytest.mark.parametrize(("now_ms", "used"), [(999, 40), (1_000, 0)])
def test_an_overdraft_over_a_reservation_of_nothing_counts_until_the_exit(now_ms, used):
    one = window()
    one.set_exit(0, 1_000)
    one.leave(now_ms)
    one.correct(Charge("domain", "tokens", 0, 1_000, 1), 40, now_ms=now_ms)
    assert (one.used, one.leaving) == (used, used)
    one.leave(1_000)
    assert (one.used, one.leaving) == (0, 0)


def test_a_takeover_moves_each_exit_once_by_its_term():
    one = window()
    one.add(30)
    one.set_exit(30, 1_000)
    take_over(one)
    take_over(one)
    charge = Charge("domain", "tokens", 30, 1_000, authority_epoch=1)
    one.leave(1_000 + TERM_MS - 1)
    assert one.used == 30
    one.correct(charge, -10, now_ms=1_000)
    assert (one.used, one.leaving) == (20, 20)
    one.leave(1_000 + TERM_MS)
    assert one.used == 0


def test_what_has_left_is_not_taken_for_what_leaves_there_after_a_takeover_term():
    one = window()
    charges = [Charge("domain", "tokens", 30, 1_000, epoch) for epoch in (1, 2)]
    for charge in charges:
        one.add(30)
        one.set_exit(30, 1_000)
        if charge.authority_epoch == 1:
            take_over(one)  # the first leaves at 1,121 now, where the second would if it were there
    one.leave(1_000)
    take_over(one)
    assert [one.unset_exit(charge) for charge in charges[::-1]] == [False, True]
    assert one.used == 30


def test_when_the_term_changes_the_exits_it_has_moved_move_by_the_difference():
    one = window(aging=Aging(1, 100))
    for exit_at in (1_000, 1_050):  # one moves onto where the other was
        one.add(30)
        one.set_exit(30, exit_at)
    take_over(one)
    one.add(1)
    one.set_exit(1, 1_000)
    one._aging.term_ms = 150
    one.age(50)
    assert one._in_order() == [(1_000, 1), (1_150, 30), (1_200, 30)]
    one.leave(1_149)
    assert one.used == 60
    one.leave(1_150)
    assert one.used == 30


FITS = [
    # amount, instant
    (70, None),  # free already: no exit needed
    (71, 1_000),
    (80, 1_000),
    (81, 2_000),
    (90, 2_000),
    (91, None),  # what has no exit must end by itself
]


@pytest.mark.parametrize(("amount", "at_ms"), FITS)
def test_the_earliest_fit_is_the_exit_after_which_the_amount_is_free(amount, at_ms):
    one = window(limit=100)
    for held, exit_at in ((10, 1_000), (10, 2_000), (10, None)):
        one.add(held)
        if exit_at is not None:
            one.set_exit(held, exit_at)
    expected = 0 if amount <= one.free else at_ms
    assert earliest_ms([one], Cost(1, amount, 1), now_ms=0) == expected


def test_a_window_remembers_itself_and_its_buckets_in_rows():
    rows = c.MemoryRows()
    one = window(rows=rows)
    one.add(30)
    one.set_exit(20, 1_000)
    take_over(one)
    one.set_exit(10, 1_000)
    rows.write(one._rows.drain())
    again = window(rows=rows, aging=one._aging)
    for (table, key), value in rows.values.items():
        if table is Table.BUCKET:
            *names, epoch, exit_at = parse_bucket_key(key)
            assert names == ["domain", "d", "tokens"]
            amount = one._rows.get(Table.BUCKET, key)
            again.load_bucket((epoch, exit_at), amount)
            assert value
    assert (again.used, again._buckets, again.next_exit_ms) == (30, one._buckets, 1_000)


def test_a_bucket_is_looked_at_when_a_charge_leaves_though_it_still_refills_another():
    one = window(kind="bucket", window_ms=1_000)
    for amount, exit_at in ((40, 1_000), (2, 1_005)):
        one.add(amount)
        one.set_exit(amount, exit_at)
    one.leave(1_000)
    assert one.due_ms == 1_005
    one.leave(1_005)
    assert one.due_ms == 1_011  # the first unit of the forty
