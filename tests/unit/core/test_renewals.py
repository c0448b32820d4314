"""Renewal: only the life that holds a lease renews it, by a heartbeat that names it (R66)."""

import pytest
from msgspec.structs import replace

from schemas import events as e
from schemas.codes import Code
from streams.core.limits import RENEWALS_MAX, RENEWALS_REFUSED_MAX
from tests.support import cells as s
from tests.support import core as c

LEASE_MS = 10_000
EDGE = [(LEASE_MS - 1, False), (LEASE_MS, True), (LEASE_MS + 1, True)]
ONE, TWO = c.submitted("a", "1"), c.submitted("a", "2")


def cell_of():
    return s.cell(lease_ms=LEASE_MS, claim_by_ms=10**6)


def claimed(cell, asked=ONE):
    grant = s.granted(cell, asked)
    s.one(e.LeaseClaimed, cell.run(c.claim(grant)))
    return grant


def test_a_heartbeat_renews_the_leases_that_it_names_and_no_other():
    cell = cell_of()
    named, unnamed = claimed(cell), claimed(cell, TWO)
    alive, renewed = cell.run(c.renewal(named), after_ms=4_000)
    assert isinstance(alive, e.HeartbeatRecorded)
    assert renewed.expires_ms == cell.now_ms + LEASE_MS
    assert [(one.operation, one.epoch) for one in renewed.unnamed] == [(unnamed.operation, 1)]
    (ended,) = c.only(e.LeaseExpired, cell.run(after_ms=LEASE_MS - 4_000))
    assert ended.operation == unnamed.operation
    assert c.only(e.LeaseExpired, cell.run(after_ms=3_999)) == []
    (ended,) = c.only(e.LeaseExpired, cell.run(after_ms=1))
    assert ended.operation == named.operation
    assert s.same_as_followed(cell)


def test_a_heartbeat_that_names_nothing_renews_nothing():
    cell = cell_of()
    s.started(cell, ONE)
    assert s.kinds(cell.run(c.heartbeat(), after_ms=LEASE_MS - 1)) == ["HeartbeatRecorded"]
    s.one(e.LeaseExpired, cell.run(after_ms=1))


def test_two_heartbeats_of_one_instant_renew_what_each_of_them_names():
    cell = cell_of()
    first, second = s.started(cell, ONE), s.started(cell, TWO)
    cell.run(c.renewal(first), c.renewal(second), c.renewal(first, second), after_ms=5_000)
    assert c.only(e.LeaseExpired, cell.run(after_ms=LEASE_MS - 1)) == []
    assert len(c.only(e.LeaseExpired, cell.run(after_ms=1))) == 2


def test_a_lease_claimed_after_a_renewal_has_its_own_end():
    cell = cell_of()
    first = s.started(cell, ONE)
    cell.run(c.renewal(first), after_ms=1_000)
    second = s.granted(cell, TWO)
    cell.run(c.start(second), after_ms=2_000)
    assert c.only(e.LeaseExpired, cell.run(after_ms=LEASE_MS - 2_001)) == []
    assert s.one(e.LeaseExpired, cell.run(after_ms=1)).operation == first.operation
    assert s.one(e.LeaseExpired, cell.run(after_ms=2_000)).operation == second.operation


FOREIGN = [
    # what is wrong with the name of the lease, or with who renews it
    {"operation": b"\x07" * 16},
    {"epoch": 7},
    {"member": "n", "member_epoch": "n1"},
]


@pytest.mark.parametrize("wrong", FOREIGN)
def test_a_renewal_of_what_this_life_does_not_hold_is_refused_and_renews_nothing(wrong):
    cell = cell_of()
    cell.run(c.join("n", member_epoch="n1"), c.heartbeat("n", "n1"))
    grant = s.started(cell, ONE)
    assert grant.member == "m"
    fields = {**{name: getattr(grant, name) for name in ("operation", "epoch")}}
    who = (wrong.pop("member", "m"), wrong.pop("member_epoch", "e1"))
    lease = replace(c.renewal(grant).leases[0], **{**fields, **wrong})
    asked = replace(c.heartbeat(*who), leases=(lease,))
    _, refused = cell.run(asked, after_ms=LEASE_MS - 1)
    assert (type(refused), refused.code) == (e.RenewRefused, Code.LEASE_NOT_HELD)
    assert (refused.member, refused.operation) == (who[0], lease.operation)
    s.one(e.LeaseExpired, cell.run(after_ms=1))


def test_a_new_life_of_the_member_renews_nothing_of_the_old_one():
    cell = cell_of()
    grant = s.started(cell, ONE)
    cell.run(c.join(member_epoch="e2"), c.heartbeat(member_epoch="e2"))
    asked = c.heartbeat("m", "e2", grant)
    assert s.one(e.RenewRefused, cell.run(asked, after_ms=5_000)).member_epoch == "e2"
    old = s.one(e.JoinRefused, cell.run(c.renewal(grant)))
    assert old.code == Code.EPOCH_SUPERSEDED
    s.one(e.LeaseExpired, cell.run(after_ms=5_000))


@pytest.mark.parametrize(("after_ms", "ended"), EDGE)
def test_a_renewal_comes_before_the_end_of_the_lease(after_ms, ended):
    cell = cell_of()
    grant = s.started(cell, ONE)
    events = cell.run(c.renewal(grant), after_ms=after_ms, timers=False)
    kinds = [e.RenewRefused] if ended else [e.LeasesRenewed]
    assert [type(one) for one in events[1:]] == kinds


def test_a_lease_whose_result_was_just_recorded_is_nothing_to_let_go_of():
    cell = cell_of()
    grant = s.started(cell, ONE)
    cell.run(c.result(grant))
    assert s.kinds(cell.run(c.renewal(grant))) == ["HeartbeatRecorded"]


def test_a_heartbeat_names_at_most_as_many_leases_as_a_member_has_places():
    cell = cell_of()
    grant = s.started(cell, ONE)
    many = replace(c.renewal(grant), leases=c.renewal(grant).leases * (RENEWALS_MAX + 1))
    assert s.one(e.InputQuarantined, cell.run(many)).code == Code.INVALID_FIELD
    fits = replace(many, leases=many.leases[1:])
    assert s.kinds(cell.run(fits)) == ["HeartbeatRecorded", "LeasesRenewed"]


def test_a_heartbeat_is_told_of_a_few_leases_that_it_does_not_hold_and_the_next_of_others():
    cell = cell_of()
    (lease,) = c.renewal(s.granted(cell, ONE)).leases
    many = tuple(replace(lease, operation=bytes([n]) * 16) for n in range(RENEWALS_REFUSED_MAX + 1))
    refused = c.only(e.RenewRefused, cell.run(replace(c.heartbeat(), leases=many)))
    assert [one.operation for one in refused] == [one.operation for one in many[:-1]]


def test_what_is_granted_and_not_claimed_has_no_lease_to_renew():
    cell = cell_of()
    grant = s.granted(cell, ONE)
    assert s.one(e.RenewRefused, cell.run(c.renewal(grant))).code == Code.LEASE_NOT_HELD
