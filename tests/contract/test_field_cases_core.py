"""Faults that real systems have had, by their numbers in the field cases: what the core decides."""

import pytest

from schemas import events as e
from schemas.codes import Code
from schemas.inputs import CancellationRequested, TenantBudget
from streams.core import invariants
from tests.support import cells as s
from tests.support import core as c
from tests.support.scene import Scene, requests, slots, tokens

LONG = 10**6
"""A call that does not end within the case."""
SOON = {"send_within_ms": 1, "call_s": 0.1}
SLIDING = {"kind": "sliding", "reset_ms": None}
MINUTES = [{}, SLIDING]
"""Fixed minutes, then any sixty seconds."""


def check(scene):
    """I1, I3 and I5 of the field cases, after each of them."""
    assert list(invariants.broken(scene.cell.state)) == []
    assert scene.cell.follower().digest() == scene.cell.rows.digest()


def test_f01_grants_lost_on_their_way_lapse_at_the_claim_limit_and_are_granted_again():
    scene = Scene(slots(2))
    scene.at(0, *[scene.job(f"J{n}") for n in (1, 2, 3, 4)])
    assert len(scene.grants) == 2
    scene.at(9.999)
    assert len(scene.grants) == 2
    scene.call_s = 1
    scene.at(11)
    assert [(at, scene.names[g.operation], g.epoch) for at, g in scene.grants[2:4]] == [
        (10.0, "J1", 2),
        (10.0, "J2", 2),
    ]
    scene.at(20)
    assert {row.phase for row in operations(scene)} == {"succeeded"}
    assert s.used(scene.cell, "slots") == 0
    check(scene)


def operations(scene):
    return [scene.cell.state.operation(one) for one in scene.names]


def test_f02_a_running_job_counts_wherever_its_sequence_lies():
    budget = TenantBudget(domain="d", dimensions=(slots(2),))
    scene = Scene(slots(10), call_s=LONG, tenants=[c.tenant("a", budgets=(budget,))])
    scene.at(0, c.pool("q"), *[scene.job(str(n), pool="q") for n in (100, 101, 102)])
    scene.at(1, scene.job("900"))
    assert scene.times() == {"900": 1}
    scene.cell.take_over()
    scene.at(2, c.join("mq", pool="q", places=9), c.heartbeat("mq"))
    assert scene.times() == {"900": 1, "100": 2}
    check(scene)


@pytest.mark.parametrize("kind", MINUTES)
def test_f07_a_refused_slot_uses_no_request(kind):
    scene = Scene(requests(2, **kind), slots(1), call_s=5, send_within_ms=1)
    for second, name in ((0, "A"), (1, "B"), (6, "C"), (7, "D")):
        scene.at(second, scene.job(name))
        assert s.used(scene.cell, "requests") <= 2
        assert s.used(scene.cell, "requests") == (1 if second < 5 else 2)
    scene.at(130)
    # A sliding exit is rounded up to its bucket (235 ms) and covers clock and transit.
    assert scene.times() == pytest.approx({"A": 0, "B": 5, "C": 60, "D": 65}, abs=0.3)
    check(scene)


@pytest.mark.parametrize("kind", MINUTES)
@pytest.mark.parametrize(("first", "second"), [(58, 80), (80, 58)])
def test_f08_calls_of_the_same_moment_see_each_other(first, second, kind):
    scene = Scene(tokens(100, **kind), **SOON)
    jobs = [scene.job(f"{est}.{n}", est) for n, est in enumerate((first, second, 175, 175, 175))]
    events = scene.at(0, *jobs)
    refused = [(one.code, one.dimension) for one in c.only(e.OperationRejected, events)]
    assert refused == [(Code.NEVER_FITS, "tokens")] * 3
    scene.at(61)
    assert scene.times() == pytest.approx({f"{first}.0": 0, f"{second}.1": 60}, abs=0.3)
    check(scene)


@pytest.mark.parametrize("kind", MINUTES)
def test_f09_windows_of_two_dimensions_do_not_reset_each_other(kind):
    spent = []
    for dimensions in ((requests(500, **kind), tokens(200, **kind)), (tokens(200, **kind),)):
        scene = Scene(*dimensions, **SOON)
        scene.at(1, scene.job("150", 150))
        scene.at(62, scene.job("100", 100))
        for second in range(63, 721):
            scene.at(second, scene.job(str(second), 10, start_within_ms=10**8))
        assert scene.times()["100"] == 62
        spent.append(sum(grant.tokens for at, grant in scene.grants if 120 <= at < 720))
        check(scene)
    assert spent[0] == spent[1] == pytest.approx(2_000, abs=10)


@pytest.mark.parametrize("kind", MINUTES)
def test_f10_what_never_fits_is_refused_and_stands_in_nobodys_way(kind):
    scene = Scene(tokens(100, **kind), **SOON)
    events = scene.at(0, *[scene.job(str(est), est) for est in (100, 101, 200, 10)])
    refused = c.only(e.OperationRejected, events)
    assert [(one.code, one.retry_at_ms) for one in refused] == [(Code.NEVER_FITS, None)] * 2
    scene.at(61)
    assert scene.times() == pytest.approx({"100": 0, "10": 60}, abs=0.3)
    check(scene)


def test_f10_a_lowered_limit_parks_what_no_longer_fits_and_keeps_what_was_granted():
    scene = Scene(tokens(100), call_s=None)
    scene.at(0, scene.job("60", 60), scene.job("80", 80, start_within_ms=300_000))
    events = scene.at(1, scene.domain(tokens(50)))
    parked = s.one(e.OperationParked, events)
    assert (scene.names[parked.operation], parked.reason) == ("80", Code.NEVER_FITS)
    s.one(e.StartAccepted, scene.at(2, c.start(scene.grants[0][1])))
    over = s.one(e.OperationExpired, scene.at(300))
    assert (scene.names[over.operation], len(scene.grants)) == ("80", 1)
    check(scene)


def test_f11_a_sliding_minute_never_holds_more_than_its_limit_across_an_edge():
    scene = Scene(requests(60, kind="sliding", reset_ms=None), call_s=1)
    for n in range(60):
        scene.at(59 + n * 0.9 / 60, scene.job(f"first{n}"))
    for n in range(60):
        scene.at(60 + n * 0.9 / 60, scene.job(f"second{n}"))
    scene.at(125)
    times = sorted(scene.times().values())
    assert len(times) == 120
    assert max(sum(at <= one < at + 60 for one in times) for at in times) == 60
    assert times[60] >= 119
    check(scene)


def test_f11_fixed_minutes_hold_twice_their_limit_across_an_edge_and_no_more():
    scene = Scene(requests(60), **SOON)
    scene.at(59, *[scene.job(f"first{n}") for n in range(60)])
    scene.at(60, *[scene.job(f"second{n}") for n in range(60)])
    scene.at(60.9, scene.job("one more"))
    scene.at(119.999)
    assert sorted(scene.times().values()) == [59] * 60 + [60] * 60
    scene.at(120)
    assert scene.times()["one more"] == 120
    check(scene)


def test_f11_two_in_any_ten_seconds_and_five_jobs_at_once():
    scene = Scene(requests(2, window_ms=10_000, **SLIDING), **SOON)
    scene.at(0, *[scene.job(str(n)) for n in range(5)])
    scene.at(60)
    assert sorted(scene.times().values()) == pytest.approx([0, 0, 10, 10, 20], abs=0.1)
    check(scene)


def test_f22_a_spent_budget_is_spent_for_every_name_that_leads_to_it():
    """The submitter names the budget, so an alias is resolved before anything is asked here."""
    scene = Scene(tokens(1_000), call_s=LONG)
    scene.at(0, c.domain(tokens(1_000), name="other", claim_by_ms=10_000))
    scene.at(1, scene.job("all of it", 1_000))
    scene.at(2, *[scene.job(f"alias {n}", 10, start_within_ms=10**8) for n in range(4)])
    scene.at(3, scene.job("of another budget", 10, domain="other"))
    for name in ("D", "d-2026-05-01", "openai/d"):
        refused = s.one(e.OperationRejected, scene.at(4, scene.job(name, 10, domain=name)))
        assert refused.code == Code.UNKNOWN_DOMAIN
    assert list(scene.times()) == ["all of it", "of another budget"]
    scene.at(60)
    assert [scene.names[one.operation] for _, one in scene.grants[2:]] == [
        f"alias {n}" for n in range(4)
    ]
    check(scene)


def test_f25_a_key_with_another_payload_is_told_apart_from_a_repeat():
    scene = Scene(slots(5), call_s=LONG)
    h1, h2 = (scene.job("K", content_sha256=digest) for digest in ("h1", "h2"))
    scene.at(0, h1)
    (again,) = scene.at(1, h1)
    assert (again.operation, again.state) == (c.id_of(h1), "started")
    assert s.kinds(scene.at(2, h2)) == ["SubmissionConflicted"]
    scene.at(3, c.result(scene.grants[0][1]))
    (after,) = scene.at(4, h1)
    assert (type(after), after.state) == (e.DuplicateObserved, "succeeded")
    assert s.kinds(scene.at(5, h2)) == ["SubmissionConflicted"]
    scene.at(6, scene.job("K", tenant="b", content_sha256="h1"))
    assert scene.order() == "ab"
    check(scene)


def test_f33_names_that_begin_alike_or_hold_other_letters_share_nothing():
    scene = Scene(slots(100), call_s=LONG)
    names = ["default", "tenant-a", "tenant-ab", "ténant", "tenant-a:b"]
    scene.at(0, *[scene.job("same key", tenant=name) for name in names])
    assert [grant.tenant for _, grant in scene.grants] == sorted(names, key=names.index)
    check(scene)


def test_f34_after_a_restart_every_tenants_work_is_delivered_in_its_former_order():
    scene = Scene(slots(20), tokens(10**6), places=3)
    names = ["default", "tenant-a", "tenant-ab", "ünïcode", "z"]
    jobs = [scene.job(f"{name}{n}", 10, tenant=name) for n in range(20) for name in names]
    scene.at(0, *jobs)
    assert len(scene.grants) == 3  # granted, and their member is gone
    scene.cell.take_over()
    scene.call_s = 0.1
    scene.at(1, c.join(member_epoch="e2", places=9), c.heartbeat(member_epoch="e2"))
    scene.at(2, scene.job("late", 10, tenant="default"))
    scene.at(60)
    done = {name: [] for name in names}
    for _, grant in scene.grants[3:]:
        done[grant.tenant].append(scene.names[grant.operation])
    assert done.pop("default") == [f"default{n}" for n in range(20)] + ["late"]
    assert done == {name: [f"{name}{n}" for n in range(20)] for name in names[1:]}
    check(scene)


def test_f36_bad_numbers_and_results_for_nothing_change_nothing():
    scene = Scene(slots(5), call_s=LONG)
    scene.at(0, scene.job("good"))
    (_, grant) = scene.grants[0]
    before = s.used(scene.cell, "slots")
    bad = [scene.job("bad", -5), c.result(grant, operation=b"\x01" * 16)]
    assert s.kinds(scene.at(1, *bad)) == ["OperationRejected", "ResultRefusedStale"]
    assert s.used(scene.cell, "slots") == before
    check(scene)


def test_f38_a_payload_over_its_limit_is_refused_and_a_large_result_settles_anyway():
    scene = Scene(slots(5), call_s=LONG, bounds={"payload_bytes_max": 1_000_000})
    sizes = (999_000, 1_000_000, 1_000_001, 5_000_000)
    events = scene.at(0, *[scene.job(str(size), payload_bytes=size) for size in sizes])
    refused = c.only(e.OperationRejected, events)
    assert [one.code for one in refused] == [Code.PAYLOAD_TOO_LARGE] * 2
    assert all("1000000" in one.detail for one in refused)
    events = scene.at(1, c.result(scene.grants[0][1], result_ref="x" * 1_200_000))
    assert s.one(e.ResultRecorded, events).result_ref is None
    assert s.used(scene.cell, "slots") == 1
    check(scene)


def test_f41_a_cancelled_job_never_starts_when_its_slot_frees():
    scene = Scene(slots(1), call_s=LONG)
    scene.at(0, scene.job("A"))
    waiting = scene.job("B")
    scene.at(1, waiting)
    scene.at(2, s.cancel(waiting))
    scene.at(3, c.result(scene.grants[0][1]))
    assert list(scene.times()) == ["A"]
    check(scene)


def test_f41_a_cancellation_between_grant_and_start_refuses_the_start():
    scene = Scene(slots(1), call_s=None)
    job = scene.job("B")
    scene.at(0, job)
    events = scene.at(1, s.cancel(job), c.start(scene.grants[0][1]))
    assert s.one(e.StartRefused, events).code == Code.EPOCH_SUPERSEDED
    assert s.used(scene.cell, "slots") == 0
    check(scene)


@pytest.mark.parametrize(("frees", "granted"), [(29.999, True), (30, False)])
def test_f41_a_deadline_is_half_open(frees, granted):
    scene = Scene(slots(1), call_s=LONG)
    scene.at(0, scene.job("A"), scene.job("B", start_within_ms=30_000))
    scene.at(frees, c.result(scene.grants[0][1]))
    assert ("B" in scene.times()) is granted
    check(scene)


def test_f41_twice_unknown_and_early_cancellations():
    scene = Scene(slots(1), call_s=LONG)
    early = scene.job("early")
    s.one(e.CancellationRemembered, scene.at(0, s.cancel(early)))
    assert scene.at(1, s.cancel(early)) == []
    assert s.kinds(scene.at(2, early)) == ["OperationAdmitted", "OperationCancelled"]
    unknown = CancellationRequested(tenant="a", operation=b"\x09" * 16, reason="")
    scene.at(3, unknown)
    assert s.kinds(scene.at(64)) == ["CancellationForgotten"]
    check(scene)


def test_f41_a_wait_of_an_hour_beyond_a_lease_of_a_minute_gives_one_grant():
    scene = Scene(slots(1), call_s=LONG, lease_ms=60_000)
    scene.at(0, scene.job("A", start_within_ms=10**8))
    (_, grant) = scene.grants[0]
    scene.at(1, c.result(grant, "throttled", retry_after_ms=3_600_000))
    scene.at(3_600.999)
    assert len(scene.grants) == 1
    scene.at(3_601.1)
    assert [one.epoch for _, one in scene.grants] == [1, 2]
    check(scene)
