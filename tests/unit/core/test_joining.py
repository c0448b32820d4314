"""Who becomes a member, of which pool, and for whom."""

import pytest

from schemas import events as e
from schemas.codes import Code
from streams.core.limits import PLACES_MAX
from tests.support import cells as s
from tests.support import core as c

JOIN_BY_MS = 5_000


def made(**over):
    cell = c.Core()
    cell.run(
        s.bounds(join_by_ms=JOIN_BY_MS, self_members_max=2),
        c.domain(c.dimension("slots", 9)),
        c.pool(**over),
    )
    return cell


def test_membership_begins_with_a_slot_and_work_with_the_first_heartbeat():
    cell = made()
    cell.run(c.submitted("a", "1"))
    slot = s.one(e.MemberSlotGranted, cell.run(c.join(places=3)))
    assert (slot.places, slot.join_by_ms) == (3, cell.now_ms + JOIN_BY_MS)
    assert s.kinds(cell.run(c.heartbeat())) == ["MemberActivated", "GrantIssued"]


@pytest.mark.parametrize(
    ("after_ms", "after"), [(JOIN_BY_MS - 1, "joining"), (JOIN_BY_MS, None), (JOIN_BY_MS + 1, None)]
)
def test_a_member_slot_waits_for_its_first_heartbeat_until_join_by(after_ms, after):
    cell = made()
    cell.run(c.join())
    cell.run(after_ms=after_ms)
    assert s.standing(cell) == after
    assert s.slots(cell) == (after is not None)


@pytest.mark.parametrize(("asking", "granted"), [(1, 1), (2, 2), (3, 2), (64, 2)])
def test_the_maximum_of_a_pool_holds_under_any_number_of_joins(asking, granted):
    cell = made(members_max=2)
    events = cell.run(*[c.join(f"m{n}") for n in range(asking)])
    assert len(c.only(e.MemberSlotGranted, events)) == granted == s.slots(cell)
    assert {one.code for one in c.only(e.JoinRefused, events)} <= {Code.POOL_FULL}


REFUSED = [
    ({"places": 0}, Code.INVALID_FIELD),
    ({"places": -1}, Code.INVALID_FIELD),
    ({"places": 8}, Code.INVALID_FIELD),
    ({"pool": "none"}, Code.UNKNOWN_POOL),
    ({"tenant": "a"}, Code.INVALID_FIELD),
    ({"pool": "self"}, Code.INVALID_FIELD),
    ({"pool": "self", "tenant": "a\n"}, Code.INVALID_FIELD),
    ({"pool": "self", "tenant": "a", "places": PLACES_MAX + 1}, Code.INVALID_FIELD),
]


@pytest.mark.parametrize(("over", "code"), REFUSED)
def test_a_join_that_cannot_be_is_refused_and_takes_no_slot(over, code):
    cell = made(places_max=7)
    assert s.one(e.JoinRefused, cell.run(c.join(**over))).code == code
    assert cell.state.pools.members == {}


@pytest.mark.parametrize("over", [{"places": 7}, {"places": 1}, {"pool": "self", "tenant": "a"}])
def test_a_join_at_the_edge_of_its_range_gets_a_slot(over):
    s.one(e.MemberSlotGranted, made(places_max=7).run(c.join(**over)))


@pytest.mark.parametrize("field", ["member", "member_epoch", "pool"])
def test_a_join_whose_names_cannot_be_keys_is_quarantined(field):
    s.one(e.InputQuarantined, made().run(c.join(**{field: "x\x00"})))


def test_members_of_pool_self_count_against_their_tenant():
    cell = made()
    joins = [c.join(f"{t}{n}", pool="self", tenant=t) for t in "ab" for n in range(3)]
    refused = c.only(e.JoinRefused, cell.run(*joins))
    assert [one.member for one in refused] == ["a2", "b2"]
    assert (s.slots(cell, "self", "a"), s.slots(cell, "self", "b")) == (2, 2)


def test_the_same_life_that_asks_again_gets_the_answer_it_had():
    cell = made(members_max=1)
    first = s.one(e.MemberSlotGranted, cell.run(c.join(places=3)))
    again = s.one(e.MemberSlotGranted, cell.run(c.join(places=1), after_ms=10))
    assert again == first
    assert s.slots(cell) == 1
    cell.run(c.heartbeat())
    s.one(e.MemberSlotGranted, cell.run(c.join(places=3)))
    assert s.standing(cell) == "active"


def test_a_life_belongs_to_one_pool_and_one_tenant():
    cell = made()
    cell.run(c.pool("q"), c.join(), c.join("own", pool="self", tenant="a"))
    for other in (c.join(pool="q"), c.join("own", pool="self", tenant="b")):
        assert s.one(e.JoinRefused, cell.run(other)).code == Code.EPOCH_SUPERSEDED


def test_nobody_takes_over_a_member_of_another_tenant():
    cell = made()
    cell.run(c.join("own", pool="self", tenant="a"))
    for over in ({"pool": "self", "tenant": "b"}, {"pool": "p", "tenant": None}):
        refused = s.one(e.JoinRefused, cell.run(c.join("own", member_epoch="e2", **over)))
        assert refused.code == Code.FORBIDDEN


def test_a_new_life_takes_over_the_slot_and_the_old_ones_unstarted_grants_return():
    cell = made(members_max=1)
    cell.run(c.join(places=2), c.heartbeat())
    running = s.started(cell, c.submitted("a", "1"))
    grant = s.granted(cell, c.submitted("a", "2"))
    kinds = s.kinds(cell.run(c.join(member_epoch="e2", places=2)))
    assert kinds == ["GrantRevoked", "ReservationReleased", "MemberSlotGranted"]
    assert s.slots(cell) == 1
    refused = s.one(e.StartRefused, cell.run(c.start(grant)))
    assert refused.code == Code.EPOCH_SUPERSEDED
    assert s.one(e.JoinRefused, cell.run(c.heartbeat())).member_epoch == "e1"
    again = s.granted(cell, c.heartbeat(member_epoch="e2"))
    assert (again.epoch, again.member_epoch) == (2, "e2")
    s.one(e.ResultRecorded, cell.run(c.result(running)))


def test_a_new_life_may_move_to_another_pool_and_takes_its_slot_along():
    cell = made(members_max=1)
    cell.run(c.pool("q", members_max=1), c.join(), c.heartbeat())
    cell.run(c.join(member_epoch="e2", pool="q"), c.heartbeat(member_epoch="e2"))
    assert (s.slots(cell), s.slots(cell, "q")) == (0, 1)
    assert s.grants(cell.run(c.submitted("a", "1"))) == []
    assert s.granted(cell, c.submitted("a", "2", pool="q")).member == "m"
