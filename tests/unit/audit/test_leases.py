"""Defects in leases: each is named at its position; true stories of them are clean."""

import pytest
from msgspec.structs import replace

from tests.support.history import LEASE_MS, History
from tests.support.plants import Plant, Plants, granted, judge, started
from tests.support.trouble import by_time, doubt, lapse, lease_name, marking, renew
from tests.support.words import e, i

plants = Plants()


@plants.breaks("leases")
def a_lease_that_lasts_too_long(history: History) -> int:
    operation = granted(history)
    asked = i.ClaimRequested(**history.named(operation))
    lease = history.claiming(operation, expires_ms=history.now_ms + 2 + LEASE_MS)
    return history.append([asked], [lease])


@plants.breaks("leases")
def a_lease_without_an_end(history: History) -> int:
    started(history)
    operation = granted(history, "b")
    asked = i.ClaimRequested(**history.named(operation))
    return history.append([asked], [history.claiming(operation, expires_ms=None)])


@plants.breaks("starts")
def a_lease_nobody_asked_for(history: History) -> int:
    operation = granted(history)
    return history.append([], [history.claiming(operation)])


@plants.breaks("starts")
def a_lease_for_another_life(history: History) -> int:
    operation = granted(history)
    named = {**history.named(operation), "member_epoch": "2"}
    lease = history.claiming(operation, member_epoch="2")
    return history.append([i.ClaimRequested(**named)], [lease])


@plants.breaks("leases")
def a_lease_ends_early(history: History) -> int:
    return lapse(history, started(history), early_ms=1)


@plants.breaks("leases")
def a_renewed_lease_ends_as_if_it_were_not(history: History) -> int:
    operation = started(history)
    renew(history, operation)
    return lapse(history, operation)


@plants.breaks("leases")
def a_lease_ends_though_the_scheduler_was_silent(history: History) -> int:
    operation = started(history)
    history.wait(5_000)
    by_time(history, e.LeasesExtended(cell="c", by_ms=5_000))
    return lapse(history, operation)


@plants.breaks("leases")
def a_silence_longer_than_the_time_that_passed(history: History) -> int:
    started(history)
    history.wait(5_000)
    return by_time(history, e.LeasesExtended(cell="c", by_ms=5_002))


@plants.breaks("leases")
def a_renewal_of_what_was_not_named(history: History) -> int:
    first, _ = started(history, "a"), started(history, "b")
    return renew(history, first)


@plants.breaks("leases")
def a_lease_that_was_named_is_not_renewed(history: History) -> int:
    first, second = started(history, "a"), started(history, "b")
    return renew(history, first, second, unnamed=(lease_name(history, second),))


@plants.breaks("leases")
def a_renewal_by_the_name_of_another_life(history: History) -> int:
    operation = started(history)
    beat = i.HeartbeatReported(
        member="m", member_epoch="2", leases=(lease_name(history, operation),)
    )
    about = {"member": "m", "member_epoch": "1"}
    renewed = e.LeasesRenewed(**about, expires_ms=history.now_ms + 1 + LEASE_MS)
    return history.append([beat], [e.HeartbeatRecorded(**about), renewed])


@plants.breaks("leases")
def a_renewal_after_the_end(history: History) -> int:
    operation = started(history)
    history.wait(LEASE_MS)
    return renew(history, operation)


@plants.breaks("leases")
def a_renewal_of_nothing(history: History) -> int:
    granted(history)
    return renew(history)


@plants.breaks("leases")
def a_holder_is_refused_its_lease(history: History) -> int:
    operation = started(history)
    about = {"member": "m", "member_epoch": "1"}
    named = lease_name(history, operation)
    refused = e.RenewRefused(**about, operation=operation, epoch=named.epoch, code="lease-not-held")
    return history.append(
        [i.HeartbeatReported(**about, leases=(named,))], [e.HeartbeatRecorded(**about), refused]
    )


@plants.breaks("leases")
def a_start_after_the_end_of_its_lease(history: History) -> int:
    operation = granted(history)
    asked = i.ClaimRequested(**history.named(operation))
    history.configure("pool", "p", pool=i.PoolConfig(lease_ms=100))
    history.append([asked], [history.claiming(operation, expires_ms=history.now_ms + 101)])
    history.wait(100)
    start = i.StartRequested(**history.named(operation))
    return history.append([start], history.starting(operation)[1:])


@plants.breaks("settlements")
def a_lease_ends_and_nothing_follows(history: History) -> int:
    operation = started(history)
    history.now_ms = history.started_ms[operation] + LEASE_MS - 1
    return by_time(history, e.LeaseExpired(**history.named(operation), started=True))


@plants.breaks("leases")
def a_run_is_asked_to_end_too_early(history: History) -> int:
    operation = started(history)
    renew(history, operation)
    return by_time(history, e.CancelSignalled(**history.named(operation), cause="runtime-limit"))


@plants.cases()
def test_a_planted_defect_is_named_at_its_position(check: str, plant: Plant) -> None:
    judge(check, plant)


@pytest.mark.parametrize("step_ms", [0, 10_000])
@pytest.mark.parametrize("silent_ms", [0, 7_000])
@pytest.mark.parametrize("early_ms", [0, 1])
def test_a_lease_lasts_for_its_time_less_steps_and_silences(
    step_ms: int, silent_ms: int, early_ms: int
) -> None:
    history = History()
    operation = started(history)
    if step_ms:
        history.wait(step_ms)
        history.append([], [], time_step_ms=step_ms)
    if silent_ms:
        history.wait(silent_ms)
        by_time(history, e.LeasesExtended(cell="c", by_ms=silent_ms))
    history.started_ms[operation] += step_ms
    history.now_ms = history.started_ms[operation] + silent_ms + LEASE_MS - 1 - early_ms
    expired = e.LeaseExpired(**history.named(operation), started=True)
    by_time(history, expired, marking(history, operation, "lease_expired"))
    assert history.audit().found == early_ms


def test_renewals_and_what_they_leave_out_are_clean() -> None:
    history = History()
    first, second = started(history, "a"), started(history, "b")
    renew(history, first, second)
    history.wait(50_000)
    renew(history, first, unnamed=(lease_name(history, second),))
    history.result(first)
    doubt(history, second)
    assert history.audit(strict=True).findings == ()


def test_an_unstarted_lease_that_ends_gives_everything_back() -> None:
    history = History()
    history.configure("pool", "p", pool=i.PoolConfig(lease_ms=100))
    operation = granted(history)
    asked = i.ClaimRequested(**history.named(operation))
    lease = history.claiming(operation, expires_ms=history.now_ms + 101)
    history.append([asked], [lease])
    history.append([asked], [])
    history.wait(100)
    named = history.named(operation)
    by_time(
        history,
        e.LeaseExpired(**named, started=False),
        e.GrantExpired(**named),
        e.ReservationExpired(**named),
    )
    history.grant(operation)
    assert history.audit(strict=True).findings == ()


def test_in_an_open_pool_the_first_to_claim_has_it() -> None:
    history = History()
    history.configure("pool", "p", pool=i.PoolConfig(unclaimed_max=1))
    operation = history.submit("a")
    history.grant(operation, member="", member_epoch="")
    taken = replace(history.grants[operation], member="m", member_epoch="1")
    history.grants[operation] = taken
    asked = i.ClaimRequested(**history.named(operation))
    history.append([asked], [history.claiming(operation)])
    assert history.audit(strict=True).findings == ()
