"""Leases: who gets one, and what its end means."""

import pytest

from schemas import events as e
from schemas.codes import Code
from tests.support import cells as s
from tests.support import core as c

LEASE_MS = 10_000
EDGE = [(LEASE_MS - 1, False), (LEASE_MS, True), (LEASE_MS + 1, True)]
ONE, TWO = c.submitted("a", "1"), c.submitted("a", "2")


def cell_of(*dimensions, **over):
    return s.cell(*dimensions, **{"lease_ms": LEASE_MS, "claim_by_ms": 10**6, **over})


def claimed(cell, asked=ONE):
    grant = s.granted(cell, asked)
    s.one(e.LeaseClaimed, cell.run(c.claim(grant)))
    return grant


# -- claims -------------------------------------------------------------------------------------


def test_a_claim_gives_the_member_of_the_grant_its_lease():
    cell = cell_of()
    grant = s.granted(cell, ONE)
    (lease,) = cell.run(c.claim(grant), after_ms=5)
    assert (c.named(lease), lease.expires_ms) == (c.named(grant), cell.now_ms + LEASE_MS)
    assert s.phase(cell, grant) == "leased"
    assert s.same_as_followed(cell)


def test_a_start_claims_in_the_same_entry_what_was_not_claimed_before():
    cell = cell_of()
    grant = s.granted(cell, ONE)
    assert s.kinds(cell.run(c.start(grant))) == ["LeaseClaimed", "StartAccepted"]
    assert s.phase(cell, grant) == "started"


def test_a_start_of_what_was_claimed_does_not_claim_again():
    cell = cell_of()
    grant = claimed(cell)
    assert s.kinds(cell.run(c.start(grant))) == ["StartAccepted"]


def test_of_a_hundred_claims_one_is_heard_and_the_others_change_nothing():
    cell = cell_of()
    grant = s.granted(cell, ONE)
    assert s.kinds(cell.run(*[c.claim(grant)] * 100)) == ["LeaseClaimed"]
    assert cell.run(c.claim(grant)) == []
    cell.run(c.start(grant))
    assert cell.run(c.claim(grant)) == []


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("operation", b"\x07" * 16, Code.NOT_FOUND),
        ("tenant", "b", Code.NOT_FOUND),
        ("incarnation", 99, Code.EPOCH_SUPERSEDED),
        ("attempt", 2, Code.EPOCH_SUPERSEDED),
        ("epoch", 2, Code.EPOCH_SUPERSEDED),
        ("member", "n", Code.EPOCH_SUPERSEDED),
        ("member_epoch", "e0", Code.EPOCH_SUPERSEDED),
    ],
)
def test_a_claim_that_does_not_name_the_grant_is_refused(field, value, code):
    cell = cell_of()
    grant = s.granted(cell, ONE)
    (refused,) = cell.run(c.claim(grant, **{field: value}))
    assert (type(refused), refused.code) == (e.ClaimRefused, code)


@pytest.mark.parametrize("wrong", [{"member": "n"}, {"member_epoch": "e2"}])
def test_a_claim_of_a_lease_that_another_life_holds_is_refused(wrong):
    cell = cell_of()
    grant = claimed(cell)
    (refused,) = cell.run(c.claim(grant, **wrong))
    assert (type(refused), refused.code) == (e.ClaimRefused, Code.CLAIM_HELD)
    assert s.kinds(cell.run(c.start(grant))) == ["StartAccepted"]


@pytest.mark.parametrize(("after_ms", "late"), EDGE)
def test_a_claim_comes_before_the_claim_by(after_ms, late):
    cell = cell_of(claim_by_ms=LEASE_MS)
    grant = s.granted(cell, ONE)
    (event,) = cell.run(c.claim(grant), after_ms=after_ms, timers=False)
    assert isinstance(event, e.ClaimRefused) is late


# -- the end of a lease -------------------------------------------------------------------------


@pytest.mark.parametrize(("after_ms", "ended"), EDGE)
def test_an_unstarted_lease_that_ends_gives_everything_back_and_the_work_waits_again(
    after_ms, ended
):
    cell = cell_of(c.dimension("requests", 9), c.dimension("slots", 9))
    claimed(cell)
    cell.run(c.domain(c.dimension("requests", 0), c.dimension("slots", 9), claim_by_ms=10**6))
    events = cell.run(after_ms=after_ms)
    expected = ["LeaseExpired", "GrantExpired", "ReservationExpired"]
    assert s.kinds(events)[:3] == (expected if ended else [])
    assert s.used(cell, "requests") == s.used(cell, "slots") == 1 - ended
    assert cell.state.cell.waiting == ended
    assert s.same_as_followed(cell)


@pytest.mark.parametrize(("after_ms", "ended"), EDGE)
def test_a_started_lease_that_ends_makes_the_outcome_unknown_and_keeps_the_slot(after_ms, ended):
    cell = cell_of(c.dimension("tokens", 900), c.dimension("slots", 9), places=1)
    grant = s.started(cell, ONE)
    events = cell.run(after_ms=after_ms)
    expected = ["LeaseExpired", "OutcomeMarkedUnknown", "LeasesReviewed"]
    assert s.kinds(events) == (expected if ended else [])
    assert [one.started for one in c.only(e.LeaseExpired, events)] == [True] * ended
    assert s.phase(cell, grant) == ("unknown" if ended else "started")
    assert (s.used(cell, "slots"), s.used(cell, "tokens")) == (1, 100)
    assert cell.state.pools.free_places("m") == ended
    assert s.same_as_followed(cell)


def test_after_twice_its_lease_the_slot_is_still_held():
    cell = cell_of(unknown_hold_ms=10**6)
    s.started(cell, ONE)
    cell.run(after_ms=2 * LEASE_MS)
    cell.run(after_ms=2 * LEASE_MS)
    assert s.used(cell, "slots") == 1


def test_the_place_of_an_ended_lease_takes_other_work():
    cell = cell_of(places=1)
    s.started(cell, ONE)
    cell.run(TWO)
    grant = s.granted(cell, after_ms=LEASE_MS)
    assert grant.operation == c.id_of(TWO)


@pytest.mark.parametrize(("after_ms", "ended"), EDGE)
def test_a_start_comes_before_the_end_of_its_lease(after_ms, ended):
    cell = cell_of()
    grant = claimed(cell)
    (event,) = cell.run(c.start(grant), after_ms=after_ms, timers=False)
    if ended:
        assert (type(event), event.code) == (e.StartRefused, Code.LEASE_NOT_HELD)
    else:
        assert isinstance(event, e.StartAccepted)


def test_a_result_in_the_entry_in_which_its_lease_ends_is_taken():
    cell = cell_of()
    grant = s.started(cell, ONE)
    kinds = s.kinds(cell.run(c.result(grant), after_ms=LEASE_MS))
    assert kinds == ["ResultRecorded", "ReservationSettled", "LeasesReviewed"]
    assert s.phase(cell, grant) == "succeeded"


def test_a_lease_that_was_renewed_in_time_is_looked_at_and_does_not_end():
    cell = cell_of()
    grant = s.started(cell, ONE)
    cell.run(c.renewal(grant), after_ms=LEASE_MS - 1)
    assert cell.run(after_ms=1) == []
    assert s.phase(cell, grant) == "started"


def test_a_claimed_grant_ends_at_its_claim_by_like_any_other():
    cell = cell_of(claim_by_ms=1_000)
    claimed(cell)
    kinds = s.kinds(cell.run(after_ms=1_000))
    assert kinds == ["GrantExpired", "ReservationExpired", "GrantIssued"]


@pytest.mark.parametrize("how", ["left", "lost"])
def test_a_claimed_grant_goes_back_with_its_member(how):
    cell = s.cell(lease_ms=LEASE_MS, cell_bounds={"member_ttl_ms": 1_000})
    claimed(cell)
    if how == "left":
        events = cell.run(s.leave())
    else:
        cell.run(after_ms=1_000)
        events = cell.run(after_ms=1_000)
    assert s.one(e.GrantRevoked, events).reason == f"member_{how}"
    assert s.used(cell, "slots") == 0


def test_a_started_lease_outlives_its_member_and_then_frees_the_members_slot():
    cell = s.cell(lease_ms=LEASE_MS, cell_bounds={"member_ttl_ms": 1_000})
    grant = s.started(cell, ONE)
    cell.run(after_ms=1_000)
    assert s.kinds(cell.run(after_ms=1_000)) == ["MemberLost"]
    assert (s.phase(cell, grant), s.slots(cell)) == ("started", 1)
    kinds = s.kinds(cell.run(after_ms=LEASE_MS - 2_000))
    assert kinds[:3] == ["LeaseExpired", "OutcomeMarkedUnknown", "MemberSlotReturned"]
    assert (s.phase(cell, grant), s.slots(cell), s.used(cell, "slots")) == ("unknown", 0, 1)


def test_an_attempt_of_a_journal_from_before_leases_has_none_and_goes_on_as_it_did():
    cell = cell_of()
    grant = s.granted(cell, ONE)
    old = e.LeaseClaimed(**c.named(grant))
    accepted = e.StartAccepted(**c.named(grant), send_within_ms=0, latest_arrival_ms=cell.now_ms)
    cell.fold(old, accepted)
    assert cell.run(after_ms=10**6) == []
    assert s.one(e.RenewRefused, cell.run(c.renewal(grant))).code == Code.LEASE_NOT_HELD
    cell.run(c.result(grant))
    assert (s.phase(cell, grant), s.used(cell, "slots")) == ("succeeded", 0)
