"""Field cases about slots, leases, zombies and unknown outcomes, by their numbers."""

import pytest

from schemas import events as e
from schemas.codes import Code
from streams.core import invariants
from streams.core.decider import decide_due
from streams.core.timers import Kind, Timer
from tests.support import cells as s
from tests.support import core as c
from tests.support.scene import Scene, requests, slots, tokens

LONG = 10**6
"""A call that does not end within the case."""


def check(scene):
    """I1, I3 and I5 of the field cases, after each of them."""
    assert list(invariants.broken(scene.cell.state)) == []
    assert scene.cell.follower().digest() == scene.cell.rows.digest()


def free(scene, limit):
    return limit - s.used(scene.cell, "slots")


def state(scene, name):
    return next(
        str(scene.cell.state.operation(one).phase)
        for one, its in scene.names.items()
        if its == name
    )


def newest(scene):
    return scene.grants[-1][1]


def test_f03_a_stale_finisher_frees_nothing_that_was_freed_already():
    scene = Scene(slots(3), call_s=LONG, lease_ms=30_000)
    scene.at(0, scene.job("J"))
    first = newest(scene)
    assert free(scene, 3) == 2
    s.one(e.OutcomeMarkedUnknown, scene.at(31))
    assert (free(scene, 3), state(scene, "J")) == (2, "unknown")
    scene.at(32, c.reconcile(first, "not_executed"))
    second = newest(scene)
    assert (second.epoch, free(scene, 3), state(scene, "J")) == (2, 2, "started")
    (late,) = scene.at(33, c.result(first))
    assert (type(late), late.code) == (e.ResultRefusedStale, Code.CONTRADICTS_RECONCILIATION)
    assert free(scene, 3) == 2
    scene.at(34, c.result(second))
    assert free(scene, 3) == 3
    again = scene.at(35, c.result(first), c.result(second))
    assert c.only((e.ResultRecorded, e.ReservationSettled), again) == []
    assert free(scene, 3) == 3
    scene.at(36, *[scene.job(str(n)) for n in range(10)])
    assert free(scene, 3) == 0
    check(scene)


def test_f04_a_lapse_found_earlier_does_not_touch_a_call_that_has_ended():
    scene = Scene(slots(3), call_s=LONG, lease_ms=100_000)
    scene.at(0, scene.job("J"))
    scene.at(99.9, c.result(newest(scene)))
    events = scene.at(100.5)
    assert c.only((e.LeaseExpired, e.OutcomeMarkedUnknown), events) == []
    assert state(scene, "J") == "succeeded"
    for _ in range(3):
        assert scene.at(101) == []
    check(scene)


def test_f04_a_lapse_found_earlier_does_not_touch_a_newer_epoch():
    scene = Scene(slots(3), lease_ms=30_000, claim_by_ms=100_000)
    scene.at(0, scene.job("J"))
    first = newest(scene)
    scene.at(1, c.claim(first))
    cell = scene.cell
    listed = Timer(cell.state.lives["m", "e1"].due_ms, Kind.LEASE, b"m\x00e1\x00")
    s.one(e.LeaseExpired, scene.at(31))
    second = newest(scene)
    scene.at(31.1, c.claim(second))
    assert second.epoch == 2
    for _ in range(3):
        assert s.kinds(decide_due(cell.state, listed)) == ["LeasesReviewed"]
    s.one(e.StartAccepted, scene.at(32, c.start(second)))
    assert free(scene, 3) == 2
    check(scene)


@pytest.mark.parametrize("starts", [False, True])
@pytest.mark.parametrize("run", ["same name", "removed"])
def test_f05_a_lease_is_renewed_by_its_incarnation_and_not_by_a_name(run, starts):
    scene = Scene(slots(3), lease_ms=30_000, claim_by_ms=100_000)
    scene.at(0, scene.job("J"))
    grant = newest(scene)
    scene.at(0, c.start(grant) if starts else c.claim(grant))
    scene.at(5, c.renewal(grant))
    if run == "same name":
        scene.at(7, c.join(member_epoch="e2"))
        for second in range(8, 35, 5):
            scene.at(second, c.heartbeat(member_epoch="e2"))
    else:
        scene.at(20, s.leave())
    if starts:
        assert c.only(e.LeaseExpired, scene.at(34.999)) == []
        assert s.one(e.LeaseExpired, scene.at(35)).epoch == 1
        assert state(scene, "J") == "unknown"
    else:  # what was not started goes back with its life at once, as no call was possible
        assert state(scene, "J") in ("waiting", "granted")
    check(scene)


@pytest.mark.parametrize("off_s", [-15, 0, 15, 3_600])
def test_f06_a_lease_is_judged_on_one_clock(off_s):
    scene = Scene(slots(3), call_s=LONG, lease_ms=20_000)
    scene.at(90, scene.job("J"))
    grant = newest(scene)
    told = c.sent(grant, max(0, off_s * 1_000))  # all that a worker's clock can say
    scene.at(100, told, c.renewal(grant))
    assert c.only(e.LeaseExpired, scene.at(119.999)) == []
    s.one(e.LeaseExpired, scene.at(120))
    check(scene)


# -- usage ----------------------------------------------------------------------------------------


def test_f19_usage_that_is_zero_absent_or_half_a_figure_is_told_apart():
    scene = Scene(tokens(2_000, amount="actual"), call_s=LONG)
    scene.at(0, *[scene.job(name, 400, output_tokens_max=100) for name in "ABC"])
    charged = []
    for (_, grant), usage in zip(scene.grants, ((0, 0), (None, None), (None, 40)), strict=True):
        events = scene.at(1, c.result(grant, prompt_tokens=usage[0], output_tokens=usage[1]))
        charged.append(s.one(e.ReservationSettled, events).tokens_actual)
    assert charged == [0, None, None]
    assert s.used(scene.cell, "tokens") == 1_000
    check(scene)


BROKEN = [(7, -15), (-3_327, 5), (2**40, 5)]


@pytest.mark.parametrize("usage", BROKEN)
def test_f20_broken_usage_is_set_aside_and_settled_at_the_estimate(usage):
    scene = Scene(tokens(10_000, amount="actual"), call_s=LONG)
    scene.at(0, scene.job("A", 400, output_tokens_max=100))
    prompt, output = usage
    events = scene.at(1, c.result(newest(scene), prompt_tokens=prompt, output_tokens=output))
    assert s.one(e.ResultRecorded, events).usage_code == Code.USAGE_OUT_OF_RANGE
    assert s.used(scene.cell, "tokens") == 500
    check(scene)


def test_f20_whole_figures_of_either_form_settle_alike():
    scene = Scene(tokens(20_000, amount="actual"), call_s=LONG)
    scene.at(0, scene.job("inside", 5_000), scene.job("beside", 5_000))
    for (_, grant), prompt in zip(scene.grants, (4_091, 27 + 4_064), strict=True):
        settled = s.one(
            e.ReservationSettled,
            scene.at(1, c.result(grant, prompt_tokens=prompt, output_tokens=47)),
        )
        assert settled.tokens_actual == 4_138
    check(scene)


RUNNING_TOTALS = [
    # what the result says, then reports in the order in which they come, and the total
    ((25, 1), [(25, 15)], 40),
    ((27, 1), [(27, 20), (27, 47)], 74),
    ((0, 3), [(0, 510)], 510),
]


@pytest.mark.parametrize(("result", "reports", "total"), RUNNING_TOTALS)
def test_f21_running_totals_are_not_added_together(result, reports, total):
    scene = Scene(tokens(20_000, amount="actual"), call_s=LONG)
    scene.at(0, scene.job("A", 1_000))
    grant = newest(scene)
    said = [
        c.result(grant, prompt_tokens=result[0], output_tokens=result[1]),
        *(
            c.usage(grant, output, prompt_tokens=prompt, evidence=f"u{n}")
            for n, (prompt, output) in enumerate(reports)
        ),
    ]
    events = scene.at(1, *said, *said)
    corrected = c.only(e.UsageCorrected, events)
    assert sum(one.tokens_actual - one.tokens_before for one in corrected) == total - sum(result)
    assert len(corrected) == len(reports)
    assert scene.cell.state.operation(grant.operation).charged_tokens == total
    check(scene)


# -- unknown outcomes -----------------------------------------------------------------------------


@pytest.mark.parametrize("error", ["connection lost after send", "connect and timeout"])
def test_f24_a_call_that_may_have_run_is_not_repeated_and_settles_by_what_it_used(error):
    window = tokens(5_000, amount="actual", window_ms=600_000)
    scene = Scene(slots(3), window, call_s=LONG, lease_ms=100_000)
    scene.at(0, scene.job("J", 1_000))
    grant = newest(scene)
    scene.at(60.1, c.result(grant, "unknown", error=error))
    assert (state(scene, "J"), free(scene, 3)) == ("unknown", 2)
    assert s.used(scene.cell, "tokens") == 1_000
    found = c.evidence(grant, "completed", prompt_tokens=0, output_tokens=900)
    settled = s.one(e.ReservationSettled, scene.at(85, found))
    assert (settled.tokens_actual, free(scene, 3), len(scene.grants)) == (900, 3, 1)
    assert scene.at(86, found) == []
    check(scene)


def test_f24_a_refused_connection_gives_the_whole_reservation_back():
    scene = Scene(requests(9), slots(3), tokens(5_000), call_s=LONG)
    scene.at(0, scene.job("J", 1_000))
    events = scene.at(1, c.result(newest(scene), "not_sent"))
    s.one(e.ReservationReleased, events)
    assert newest(scene).epoch == 2
    assert [s.used(scene.cell, name) for name in ("requests", "slots", "tokens")] == [1, 1, 1_000]
    check(scene)
