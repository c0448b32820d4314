"""Field cases about limiters and clocks, by their numbers: provider buckets, where they differ."""

import pytest

from schemas import events as e
from streams.core import invariants
from tests.support import cells as s
from tests.support import core as c
from tests.support.scene import Scene

MINUTE_MS = 60_000
SOON = {"send_within_ms": 1, "call_s": 0.1}


def requests(capacity, **over):
    return c.dimension("requests", capacity, **{"kind": "bucket", "window_ms": MINUTE_MS, **over})


def tokens(capacity, **over):
    return c.dimension("tokens", capacity, **{"kind": "bucket", "window_ms": MINUTE_MS, **over})


def check(scene):
    """I1, I3 and I5 of the field cases, after each of them."""
    assert list(invariants.broken(scene.cell.state)) == []
    assert scene.cell.follower().digest() == scene.cell.rows.digest()


def about(times):
    """A bucket is refilled 200 ppm too slowly, from the latest arrival rounded up by 235 ms."""
    return pytest.approx(times, abs=0.5)


def test_f07_a_bucket_of_two_gives_one_every_thirty_seconds():
    scene = Scene(requests(2), c.dimension("slots", 1), **{**SOON, "call_s": 5})
    for second, name in ((0, "A"), (1, "B"), (6, "C"), (7, "D")):
        scene.at(second, scene.job(name))
    scene.at(130)
    assert scene.times() == about({"A": 0, "B": 5, "C": 30, "D": 60})
    check(scene)


def test_f08_a_bucket_lets_the_second_go_when_enough_is_refilled():
    scene = Scene(tokens(100), **SOON)
    scene.at(0, scene.job("first", 58), scene.job("second", 80))
    scene.at(61)
    assert scene.times() == about({"first": 0, "second": 22.8})
    check(scene)


def test_f09_a_bucket_beside_another_limit_gives_what_it_gives_alone():
    spent = []
    for dimensions in ((requests(500), tokens(200)), (tokens(200),)):
        scene = Scene(*dimensions, **SOON)
        scene.at(1, scene.job("150", 150))
        scene.at(62, scene.job("100", 100))
        for second in range(63, 721):
            scene.at(second, scene.job(str(second), 10, start_within_ms=10**8))
        assert scene.times()["100"] == 62
        spent.append(sum(grant.tokens for at, grant in scene.grants if 120 <= at < 720))
        check(scene)
    assert spent[0] == spent[1] == pytest.approx(2_000, abs=20)


def test_f10_what_is_behind_a_full_bucket_goes_as_soon_as_so_much_is_refilled():
    scene = Scene(tokens(100), **SOON)
    events = scene.at(0, *[scene.job(str(est), est) for est in (100, 101, 200, 10)])
    assert len(c.only(e.OperationRejected, events)) == 2
    scene.at(61)
    assert scene.times() == about({"100": 0, "10": 6})
    check(scene)


def test_f11_a_bucket_allows_its_capacity_and_what_is_refilled_meanwhile():
    scene = Scene(requests(60), **SOON)
    scene.at(0, *[scene.job(str(n)) for n in range(200)])
    scene.at(200)
    times = sorted(scene.times().values())
    most = max(sum(at <= one < at + 60 for one in times) for at in times)
    assert 118 <= most <= 119
    check(scene)


def test_f11_two_in_ten_seconds_and_five_jobs_at_once():
    scene = Scene(requests(2, window_ms=10_000), **SOON)
    scene.at(0, *[scene.job(str(n)) for n in range(5)])
    scene.at(60)
    assert sorted(scene.times().values()) == about([0, 0, 5, 10, 15])
    check(scene)


def test_f12_a_step_of_time_refills_nothing_and_no_refill_goes_below_zero_or_above_the_limit():
    scene = Scene(requests(60), **SOON)
    scene.at(0, *[scene.job(str(n)) for n in range(3)])
    window = scene.cell.state.config.windows["domain", "d", "requests"]
    assert window.free == 57
    scene.at(0.5, scene.job("after a step back, which entry time does not follow"))
    assert window.free in (56, 57)
    scene.cell.now_ms += 3_600_000
    scene.cell.take_over(step_ms=3_600_000)
    before = len(scene.grants)
    events = scene.at(3_600.6, *[scene.job(f"late {n}") for n in range(200)])
    (deferred,) = c.only(e.OperationDeferred, events)
    assert deferred.not_before_ms - scene.cell.now_ms <= MINUTE_MS
    window = scene.cell.state.config.windows["domain", "d", "requests"]
    assert 55 <= len(scene.grants) - before <= 57
    assert window.free == 0
    scene.at(3_600.6 + 60)
    assert len(scene.grants) - before >= 115
    check(scene)


@pytest.mark.parametrize("kind", ["sliding", "fixed", "bucket"])
def test_a_limit_of_one_a_minute_opens_again_across_midnight(kind):
    reset_ms = 0 if kind == "fixed" else None
    scene = Scene(requests(1, kind=kind, reset_ms=reset_ms), **SOON)
    day_s = 86_400 - scene.cell.now_ms % 86_400_000 / 1_000
    scene.at(day_s - 30, scene.job("before"))
    scene.at(day_s + 60, scene.job("after"))
    assert scene.times() == about({"before": day_s - 30, "after": day_s + 60})
    assert s.used(scene.cell, "requests") == 1
    check(scene)
