"""Pools without a named member: the first claim in log order has the lease (R65, R170)."""

import pytest

from schemas import events as e
from schemas import inputs as i
from schemas.codes import Code
from schemas.topics import Topic, routes
from tests.support import core as c

CLAIMERS = 100


def _cell(unclaimed_max: int = 2, **over: int) -> c.Core:
    cell = c.Core()
    cell.run(c.domain(c.dimension("slots", 1_000)), c.pool(unclaimed_max=unclaimed_max, **over))
    return cell


def _join(cell: c.Core, *members: str, places: int = 1) -> None:
    cell.run(*[c.join(member, places=places) for member in members])
    cell.run(*[c.heartbeat(member) for member in members])


def _claim(grant: e.GrantIssued, member: str) -> i.ClaimRequested:
    return i.ClaimRequested(**{**c.named(grant), "member": member, "member_epoch": "e1"})


def _start(grant: e.GrantIssued, member: str) -> i.StartRequested:
    return c.start(grant, member=member, member_epoch="e1")


def _grants(cell: c.Core, count: int) -> list[e.GrantIssued]:
    asked = [c.submitted("a", str(number)) for number in range(count)]
    return c.only(e.GrantIssued, cell.settle_down(*asked))


def test_a_grant_of_an_open_pool_names_nobody_and_needs_no_member():
    (grant,) = _grants(_cell(), 1)
    assert (grant.member, grant.member_epoch) == ("", "")


def test_no_more_grants_are_out_than_may_wait_for_a_claim():
    cell = _cell(unclaimed_max=3)
    first, *others = _grants(cell, 10)
    assert len(others) == 2
    _join(cell, "m1")
    events = cell.settle_down(_claim(first, "m1"))
    assert len(c.only(e.GrantIssued, events)) == 1, "a claim makes room for another grant"


def test_of_a_hundred_claimers_one_has_the_lease():
    cell = _cell()
    members = [f"m{number}" for number in range(CLAIMERS)]
    cell.run(c.pool(members_max=CLAIMERS, unclaimed_max=1))
    _join(cell, *members)
    (grant,) = _grants(cell, 1)
    events = cell.run(*[_claim(grant, member) for member in members])
    (lease,) = c.only(e.LeaseClaimed, events)
    assert lease.member == "m0", "the first in log order"
    refused = c.only(e.ClaimRefused, events)
    assert len(refused) == CLAIMERS - 1
    assert {one.code for one in refused} == {Code.CLAIM_HELD}


def test_a_start_claims_what_nobody_has_and_is_refused_for_what_somebody_has():
    cell = _cell()
    _join(cell, "m1", "m2")
    (grant,) = _grants(cell, 1)
    events = cell.run(_start(grant, "m2"), _start(grant, "m1"))
    assert [type(event) for event in events] == [e.LeaseClaimed, e.StartAccepted, e.StartRefused]
    assert (events[1].member, events[2].code) == ("m2", Code.CLAIM_HELD)


def test_the_claimer_alone_goes_on_with_it():
    cell = _cell()
    _join(cell, "m1", "m2")
    (grant,) = _grants(cell, 1)
    cell.run(_claim(grant, "m1"))
    (refused,) = cell.run(_claim(grant, "m2"))
    assert (type(refused), refused.code) == (e.ClaimRefused, Code.CLAIM_HELD)
    (accepted,) = cell.run(_start(grant, "m1"))
    assert isinstance(accepted, e.StartAccepted)
    events = cell.run(c.result(grant, member="m1", member_epoch="e1"))
    assert c.only(e.ReservationSettled, events)


@pytest.mark.parametrize(
    ("who", "code"),
    [
        ("stranger", Code.EPOCH_SUPERSEDED),
        ("elsewhere", Code.EPOCH_SUPERSEDED),
        ("busy", Code.POOL_FULL),
    ],
)
def test_only_a_member_of_the_pool_with_a_free_place_may_claim(who, code):
    cell = _cell()
    cell.run(c.pool("q"))
    _join(cell, "busy")
    cell.run(c.join("elsewhere", pool="q"), c.heartbeat("elsewhere"))
    first, second = _grants(cell, 2)
    cell.run(_claim(first, "busy"))
    (refused,) = cell.run(_claim(second, who))
    assert (type(refused), refused.code) == (e.ClaimRefused, code)


def test_what_nobody_claims_returns_at_its_claim_by_and_is_granted_anew():
    cell = _cell(unclaimed_max=1)
    (grant,) = _grants(cell, 1)
    events = cell.settle_down(after_ms=grant.claim_by_ms - cell.now_ms)
    assert [type(event) for event in events] == [
        e.GrantExpired,
        e.ReservationExpired,
        e.GrantIssued,
    ]
    assert events[-1].epoch == grant.epoch + 1


def test_an_owner_that_opened_its_tables_knows_what_is_unclaimed():
    cell = _cell(unclaimed_max=2)
    first, _ = _grants(cell, 5)
    cell.take_over()
    assert not c.only(e.GrantIssued, cell.settle_down())
    _join(cell, "m1")
    events = cell.settle_down(_start(first, "m1"))
    assert len(c.only(e.GrantIssued, events)) == 1


def test_an_unclaimed_grant_is_delivered_to_nobody():
    (grant,) = _grants(_cell(), 1)
    assert [topic for topic, _ in routes(grant)] == [Topic.GRANTS]
