"""Buckets: taken from at the grant, refilled from the latest arrival on, and when a head fits."""

from functools import partial

import pytest

from schemas import events as e
from streams.core.budgets import earliest_ms
from streams.core.costs import Cost
from streams.core.due import Due
from streams.core.exits import Aging, exit_ms, parse_bucket_key
from streams.core.pace import Rate
from streams.core.rows import KINDS
from streams.core.tables import Overlay, Table
from streams.core.windows import Window
from tests.support import cells as s
from tests.support import core as c
from tests.support.scene import Scene

SECOND_NS = 10**9
TERM_MS = 121
BUCKET = partial(c.dimension, kind="bucket", window_ms=1_000)
TEN = partial(BUCKET, "requests", 10)


def bucket(limit=10, rows=None, **over):
    dimension = BUCKET("tokens", limit, **over)
    overlay = Overlay(rows or c.MemoryRows(), KINDS)
    return Window(overlay, "domain", "d", dimension, Due(), Aging(1, TERM_MS))


# -- arithmetic ---------------------------------------------------------------------------------

LEFT = [
    # limit, milliseconds until it is full, what is missing
    (10, 0, 0),
    (10, -5, 0),
    (10, 1, 1),  # a part of a unit is a unit
    (10, 100, 1),
    (10, 101, 2),
    (1_000, 500, 500),
    (1_000, 501, 504),  # in steps of 4
    (25_600, 500, 12_800),
]


@pytest.mark.parametrize(("limit", "ms", "left"), LEFT)
def test_what_is_missing_is_seen_in_steps_of_a_256th_of_the_capacity(limit, ms, left):
    rate = Rate(limit, SECOND_NS)
    assert rate.left(ms * 10**6, 0) == left
    if left:
        falls_ms = rate.falls_ms(ms * 10**6, left - rate.step)
        assert rate.left(ms * 10**6, falls_ms) == left - rate.step
        assert rate.left(ms * 10**6, falls_ms - 1) == left


@pytest.mark.parametrize(("latest_ms", "from_ms"), [(1_000, 1_004), (1_002, 1_004), (1_003, 1_008)])
def test_a_charge_is_refilled_from_its_latest_arrival_rounded_up(latest_ms, from_ms):
    assert exit_ms(bucket().config, latest_ms=latest_ms, send_within_ms=200) == from_ms


# -- one bucket ---------------------------------------------------------------------------------


def test_a_charge_counts_in_full_until_it_arrives_and_then_less_and_less():
    one = bucket()
    one.add(4)
    one.set_exit(4, 1_000)
    assert [one.leave(at) or one.used for at in (999, 1_000, 1_100)] == [4, 4, 4]
    instants = (1_101, 1_200, 1_201, 1_400, 1_401)
    found = [(one.leave(at_ms), one.used, one.due_ms) for at_ms in instants]
    # It is refilled 200 ppm more slowly than it says, so that no clock makes it too fast.
    assert found == [
        (True, 3, 1_201),
        (False, 3, 1_201),
        (True, 2, 1_301),
        (True, 1, 1_401),
        (True, 0, None),
    ]


def test_idleness_fills_a_bucket_to_its_capacity_and_not_beyond():
    one = bucket()
    for at_ms in (1_000, 9_000):
        one.add(10)
        one.set_exit(10, at_ms)
        one.leave(at_ms)
        assert one.free == 0
    one.leave(9_101)
    assert one.free == 1


def test_what_arrives_together_is_refilled_one_after_the_other():
    one = bucket()
    one.add(10)
    for exit_at in (1_000, 1_050):
        one.set_exit(5, exit_at)
    one.leave(1_101)
    assert (one.used, one.leaving) == (9, 9)
    one.leave(2_000)
    assert one.used == 1


def test_a_takeover_delays_what_is_being_refilled_and_what_will_be():
    one = bucket()
    one.add(6)
    one.set_exit(3, 1_000)
    one.set_exit(3, 1_400)
    one.leave(1_050)
    one._aging.epoch = 2
    one.age(TERM_MS)
    assert one.next_exit_ms == 1_400 + TERM_MS
    one.leave(1_101)
    assert one.used == 7
    one.leave(1_101 + TERM_MS)
    assert one.used == 5
    one.age(10)
    one.leave(1_101 + TERM_MS)
    assert one.used == 6


FITS = [
    # amount, instant; 6 arrive at 1,000, 2 at 1,500, and 1 has no exit
    (1, 0),
    (2, 1_101),
    (6, 1_501),
    (7, 1_601),
    (9, 1_801),
    (10, None),
]


@pytest.mark.parametrize(("amount", "at_ms"), FITS)
def test_the_earliest_fit_is_when_enough_is_refilled(amount, at_ms):
    one = bucket()
    one.add(9)
    one.set_exit(6, 1_000)
    one.set_exit(2, 1_500)
    assert earliest_ms([one], Cost(1, amount, 1), now_ms=0) == at_ms
    if at_ms:
        one.leave(at_ms - 1)
        assert one.free < amount
        one.leave(at_ms)
        assert one.free >= amount


def test_a_bucket_remembers_in_rows_what_is_missing():
    rows = c.MemoryRows()
    one = bucket(rows=rows)
    one.add(7)
    one.set_exit(5, 1_000)
    one.set_exit(2, 2_000)
    one.leave(1_200)
    rows.write(one._rows.drain())
    again = bucket(rows=rows)
    for table, key in rows.values:
        if table is Table.BUCKET:
            *_, epoch, exit_at = parse_bucket_key(key)
            amount = one._rows.get(Table.BUCKET, key)
            again.load_bucket((epoch, exit_at), amount)
    again.leave(1_200)
    assert (again.used, again.due_ms) == (one.used, one.due_ms) == (6, 1_201)


CHANGED = [
    # another configuration, what is missing then and 101 ms later; 6 of 10 are before
    ({"limit": 20}, 6, 4),
    ({"limit": 5}, 5, 5),
    ({"window_ms": 10_000}, 6, 6),
    ({"window_ms": 100}, 6, 0),
    ({"limit": 0}, 6, 5),  # its provider goes on refilling what nobody may take
]


@pytest.mark.parametrize(("over", "then", "later"), CHANGED)
def test_another_capacity_or_rate_begins_with_what_was_missing(over, then, later):
    one = bucket()
    one.add(6)
    one.set_exit(6, 1_000)
    one.leave(1_000)
    one.configure(BUCKET("tokens", **{"limit": 10, **over}), 1_000)
    assert one.used == then
    one.leave(1_101)
    assert one.used == later


def test_a_paused_bucket_that_opens_again_has_refilled_meanwhile():
    rows = c.MemoryRows()
    one = bucket(rows=rows)
    one.add(10)
    one.set_exit(10, 1_000)
    one.configure(BUCKET("tokens", 0), 900)
    rows.write(one._rows.drain())
    one = bucket(0, rows=rows)
    one.load_bucket((1, 1_000), 10)
    one.leave(1_501)
    one.configure(BUCKET("tokens", 10), 1_501)
    assert one.free == 5


# -- in a cell ----------------------------------------------------------------------------------


def jobs(count):
    return [c.submitted("a", str(n)) for n in range(count)]


def test_a_cell_wakes_for_each_step_that_something_waits_for():
    cell = s.cell(BUCKET("requests", 2), send_within_ms=1, transit_ms=0)
    first = [s.grants(cell.run(*jobs(4)))]
    cell.run(*[c.start(grant) for grant in first[0]])
    arrived_ms = cell.now_ms
    times = []
    while len(times) < 2:
        events = cell.run(after_ms=cell.state.next_due_ms - cell.now_ms)
        times += [cell.now_ms - arrived_ms] * len(s.grants(events))
        cell.run(*[c.start(grant) for grant in s.grants(events)])
    assert times == [pytest.approx(500, abs=6), pytest.approx(1_000, abs=12)]
    assert s.same_as_followed(cell)


@pytest.mark.parametrize("ended_after_ms", [0, 5_000])
def test_a_reservation_that_led_to_no_call_fills_the_bucket_unless_it_was_refilled(ended_after_ms):
    cell = s.cell(TEN(), send_within_ms=200)
    grant = s.started(cell, *jobs(1))
    assert s.used(cell, "requests") == 1
    cell.run(c.result(grant, "not_sent"), s.cancel(jobs(1)[0]), after_ms=ended_after_ms)
    cell.run(s.cancel(jobs(1)[0]))
    assert s.used(cell, "requests") == (1 if cell.state.attempts else 0)
    assert s.same_as_followed(cell)


USED = [
    # use, milliseconds after the start, what is missing then of 1,000; 100 were reserved
    (40, 0, 40),
    (300, 0, 300),
    (40, 250, 56),  # too late to be told from what others have to refill
    (300, 250, 256),
]


@pytest.mark.parametrize(("tokens", "after_ms", "missing"), USED)
def test_a_refund_counts_before_the_arrival_and_an_overdraft_always(tokens, after_ms, missing):
    cell = s.cell(BUCKET("tokens", 1_000, amount="actual"), send_within_ms=200)
    grant = s.started(cell, c.submitted("a", "1"))
    cell.run(c.result(grant, prompt_tokens=tokens, output_tokens=0), after_ms=after_ms)
    assert s.used(cell, "tokens") == missing
    assert s.same_as_followed(cell)


def test_late_usage_counts_until_it_is_refilled():
    cell = s.cell(BUCKET("tokens", 1_000), send_within_ms=1)
    grant = s.started(cell, c.submitted("a", "1"))
    cell.run(c.result(grant), after_ms=5_000)
    cell.run(c.usage(grant, 500))
    assert s.used(cell, "tokens") == 400
    cell.run(after_ms=500)
    assert s.used(cell, "tokens") == 0


def test_what_counts_at_completion_is_refilled_from_then_on():
    cell = s.cell(BUCKET("tokens", 1_000, instant="completion", amount="actual"), send_within_ms=1)
    grant = s.started(cell, c.submitted("a", "1"))
    cell.run(after_ms=50_000)
    assert s.used(cell, "tokens") == 100
    cell.run(c.result(grant, prompt_tokens=50, output_tokens=0))
    assert s.used(cell, "tokens") == 50
    cell.run(after_ms=30)
    assert s.used(cell, "tokens") == 28


def test_more_than_a_bucket_holds_never_fits():
    cell = s.cell(BUCKET("tokens", 99))
    assert s.one(e.OperationRejected, cell.run(*jobs(1))).dimension == "tokens"


def test_a_bucket_lives_over_a_takeover_and_a_step_of_time():
    cell = s.cell(TEN(), send_within_ms=1, claim_by_ms=10**6)
    grants = s.grants(cell.run(*jobs(12)))
    cell.run(*[c.start(grant) for grant in grants])
    cell.run(after_ms=cell.state.next_due_ms - cell.now_ms)  # all have arrived
    due_ms = cell.state.next_due_ms - cell.now_ms
    cell.now_ms += 5_000
    cell.take_over(step_ms=5_000)
    assert not s.grants(cell.run(after_ms=due_ms))
    assert not s.grants(cell.run(after_ms=TERM_MS - 1))
    assert len(s.grants(cell.run(after_ms=1))) == 1
    assert s.same_as_followed(cell)


def test_a_bucket_is_used_as_fast_as_it_is_refilled():
    scene = Scene(BUCKET("requests", 100, window_ms=60_000), call_s=0.1, send_within_ms=1)
    scene.at(0, *[scene.job(str(n), start_within_ms=10**8) for n in range(600)])
    scene.at(300)
    assert len(scene.grants) == pytest.approx(600, abs=3)
    assert s.same_as_followed(scene.cell)
