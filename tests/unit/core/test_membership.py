"""The life of a member: each of its instants one unit before, at and after, and its places."""

import pytest

from schemas import events as e
from schemas import inputs as i
from schemas.codes import Code
from streams.core.configured import DEFAULT_BOUNDS
from streams.core.limits import LIVES_OVER_MAX
from streams.core.tables import Table
from tests.support import cells as s
from tests.support import core as c

TTL_MS = 3_000


def made(**over):
    cell = c.Core()
    cell.run(
        s.bounds(member_ttl_ms=TTL_MS),
        c.domain(c.dimension("slots", 9)),
        c.pool(**over),
    )
    return cell


def leave(member="m", member_epoch="e1"):
    return i.LeaveAnnounced(member=member, member_epoch=member_epoch)


# -- silence ------------------------------------------------------------------------------------

SILENCE = [
    (TTL_MS - 1, "active"),
    (TTL_MS, "suspect"),
    (TTL_MS + 1, "suspect"),
]


@pytest.mark.parametrize(("after_ms", "after"), SILENCE)
def test_a_silent_member_is_suspect_after_one_time_to_live(after_ms, after):
    cell = made()
    cell.run(c.join(), c.heartbeat())
    cell.run(after_ms=after_ms)
    assert s.standing(cell) == after


@pytest.mark.parametrize(
    ("after_ms", "after"), [(TTL_MS - 1, "suspect"), (TTL_MS, None), (TTL_MS + 1, None)]
)
def test_and_lost_after_a_second_one(after_ms, after):
    cell = made()
    cell.run(c.join(), c.heartbeat())
    cell.run(after_ms=TTL_MS)
    cell.run(after_ms=after_ms)
    assert s.standing(cell) == after
    assert s.slots(cell) == (after is not None)


def test_a_heartbeat_is_counted_from_when_it_was_taken():
    cell = made()
    cell.run(c.join(), c.heartbeat())
    for _ in range(5):
        s.one(e.HeartbeatRecorded, cell.run(c.heartbeat(), after_ms=TTL_MS - 1))
    assert s.standing(cell) == "active"


def test_a_heartbeat_at_the_very_instant_comes_before_the_timer():
    cell = made()
    cell.run(c.join(), c.heartbeat())
    assert s.kinds(cell.run(c.heartbeat(), after_ms=TTL_MS)) == ["HeartbeatRecorded"]


def test_a_suspect_gets_no_grants_and_a_restored_member_does():
    cell = made()
    cell.run(c.join(), c.heartbeat())
    assert s.kinds(cell.run(c.submitted("a", "1"), after_ms=TTL_MS)) == [
        "OperationAdmitted",
        "MemberSuspected",
    ]
    assert s.kinds(cell.run(c.heartbeat())) == ["MemberRestored", "GrantIssued"]


def test_what_a_lost_member_had_not_started_returns_and_what_it_had_keeps_its_slot():
    cell = made()
    cell.run(c.join(places=2), c.heartbeat())
    running = s.started(cell, c.submitted("a", "1"))
    waiting = s.granted(cell, c.submitted("a", "2"))
    cell.run(after_ms=TTL_MS)
    kinds = s.kinds(cell.run(after_ms=TTL_MS))
    assert kinds == ["GrantRevoked", "ReservationReleased", "MemberLost"]
    assert (s.standing(cell), s.slots(cell), s.used(cell, "slots")) == ("lost", 1, 1)
    cell.run(after_ms=10 * TTL_MS)
    assert s.used(cell, "slots") == 1
    s.one(e.StartRefused, cell.run(c.start(waiting)))
    assert s.one(e.JoinRefused, cell.run(c.heartbeat())).code == Code.EPOCH_SUPERSEDED
    kinds = s.kinds(cell.run(c.result(running)))
    assert kinds == ["ResultRecorded", "ReservationSettled", "MemberSlotReturned"]
    assert (s.standing(cell), s.slots(cell), s.used(cell, "slots")) == (None, 0, 0)


def test_a_lost_life_cannot_join_again_and_a_new_one_can():
    cell = made(members_max=1)
    cell.run(c.join(), c.heartbeat())
    running = s.started(cell, c.submitted("a", "1"))
    cell.run(after_ms=TTL_MS)
    cell.run(after_ms=TTL_MS)
    assert s.one(e.JoinRefused, cell.run(c.join())).code == Code.EPOCH_SUPERSEDED
    s.one(e.MemberSlotGranted, cell.run(c.join(member_epoch="e2")))
    assert s.slots(cell) == 1
    events = cell.run(c.result(running))
    assert c.only(e.MemberSlotReturned, events) == []
    assert cell.follower().digest() == cell.rows.digest()


# -- leaving ------------------------------------------------------------------------------------


def test_an_idle_member_that_leaves_returns_its_slot_at_once():
    cell = made()
    cell.run(c.join(), c.heartbeat())
    kinds = s.kinds(cell.run(leave()))
    assert kinds == ["MemberDrainRequested", "MemberSlotReturned"]
    assert cell.run(leave()) == []


def test_a_busy_member_that_leaves_finishes_what_it_started_and_gets_no_more():
    cell = made()
    cell.run(c.join(places=3), c.heartbeat())
    running = [s.started(cell, c.submitted("a", str(n))) for n in range(2)]
    s.granted(cell, c.submitted("a", "2"))
    kinds = s.kinds(cell.run(leave()))
    assert kinds == ["GrantRevoked", "ReservationReleased", "MemberDrainRequested"]
    assert cell.run(leave()) == []
    assert s.kinds(cell.run(c.heartbeat())) == ["HeartbeatRecorded"]
    assert "MemberSlotReturned" not in s.kinds(cell.run(c.result(running[0], "not_sent")))
    assert s.kinds(cell.run(c.result(running[1])))[-1] == "MemberSlotReturned"
    assert (s.standing(cell), s.slots(cell)) == (None, 0)


def test_a_leaving_member_that_falls_silent_is_suspect_and_lost_and_drains_when_restored():
    cell = made()
    cell.run(c.join(), c.heartbeat())
    s.started(cell, c.submitted("a", "1"))
    cell.run(after_ms=TTL_MS)
    cell.run(leave())
    assert s.standing(cell) == "suspect"
    cell.run(c.heartbeat())
    assert s.standing(cell) == "draining"
    cell.run(after_ms=TTL_MS)
    cell.run(after_ms=TTL_MS)
    assert s.standing(cell) == "lost"


def test_who_is_no_member_cannot_leave_and_is_told_to_join():
    cell = made()
    assert cell.run(leave()) == []
    assert s.one(e.JoinRefused, cell.run(c.heartbeat())).code == Code.EPOCH_SUPERSEDED


def second_life_joins(cell):
    return cell.run(c.join(member_epoch="e2"))


def second_life_is_lost(cell):
    cell.run(c.join(member_epoch="e2"), c.heartbeat(member_epoch="e2"))
    cell.run(after_ms=TTL_MS)


def second_life_leaves(cell):
    cell.run(c.join(member_epoch="e2"), c.heartbeat(member_epoch="e2"))
    cell.run(leave(member_epoch="e2"))


@pytest.mark.parametrize(
    ("ends", "after_ms"),
    [
        (second_life_joins, DEFAULT_BOUNDS.join_by_ms),
        (second_life_is_lost, TTL_MS),
        (second_life_leaves, 0),
    ],
)
def test_a_slot_is_not_free_while_an_earlier_life_runs_what_it_started(ends, after_ms):
    cell = made(members_max=1)
    cell.run(c.join(), c.heartbeat())
    grant = s.started(cell, c.submitted("a", "1"))
    ends(cell)
    assert s.slots(cell) == 1
    cell.run(after_ms=after_ms)
    assert (s.slots(cell), s.standing(cell) is None) == (1, False)
    (refused,) = cell.run(c.join("n"))
    assert refused.code == Code.POOL_FULL
    cell.take_over()
    events = cell.run(c.result(grant), c.join("n"))
    assert s.one(e.MemberSlotReturned, events).member_epoch == "e2"
    assert s.one(e.MemberSlotGranted, events).member == "n"
    assert s.slots(cell) == 1


def superseded(cell):
    cell.run(c.join(member_epoch="e2"), c.heartbeat(member_epoch="e2"))


def returned(cell):
    cell.run(leave())


@pytest.mark.parametrize("ends", [superseded, returned])
def test_a_life_that_is_over_cannot_join_again(ends):
    cell = made()
    cell.run(c.join(), c.heartbeat())
    ends(cell)
    cell.take_over()
    (refused,) = cell.run(c.join())
    assert (type(refused), refused.code) == (e.JoinRefused, Code.EPOCH_SUPERSEDED)
    assert s.one(e.MemberSlotGranted, cell.run(c.join(member_epoch="e3"))).member_epoch == "e3"


def test_of_the_lives_that_are_over_only_the_latest_are_remembered():
    cell = made()
    for n in range(LIVES_OVER_MAX + 1):
        cell.run(c.join(member_epoch=f"e{n}"), leave(member_epoch=f"e{n}"))
    assert len(list(cell.state.rows.load(Table.LIFE))) == LIVES_OVER_MAX
    cell.take_over()
    assert s.kinds(cell.run(c.join(member_epoch="e1"))) == ["JoinRefused"]
    assert s.kinds(cell.run(c.join(member_epoch="e0"))) == ["MemberSlotGranted"]
    assert cell.follower().digest() == cell.rows.digest()


# -- places -------------------------------------------------------------------------------------


@pytest.mark.parametrize("places", [1, 2, 5])
def test_live_grants_and_leases_never_exceed_announced_places(places):
    cell = made()
    cell.run(c.join(places=places), c.heartbeat())
    events = cell.run(*[c.submitted("a", str(n)) for n in range(9)])
    found = s.grants(events)
    assert len(found) == places
    assert s.grants(cell.run(*[c.start(one) for one in found])) == []
    assert len(s.grants(cell.run(c.result(found[0])))) == 1


def test_the_member_with_most_free_places_is_chosen_and_ties_go_by_name():
    cell = made()
    cell.run(c.join("b", places=2), c.join("a", places=2), c.join("c", places=1))
    cell.run(c.heartbeat("a"), c.heartbeat("b"), c.heartbeat("c"))
    events = cell.run(*[c.submitted("a", str(n)) for n in range(5)])
    assert [one.member for one in s.grants(events)] == ["a", "b", "a", "b", "c"]


def test_work_of_pool_self_goes_to_its_own_member_and_no_busy_one_holds_it_up():
    cell = made()
    joins = [c.join(m, pool="self", tenant="a") for m in ("m1", "m2")]
    cell.run(*joins, c.heartbeat("m1"), c.heartbeat("m2"))
    asked = [
        c.submitted("a", str(n), pool="self", member=m) for n, m in enumerate(["m1", "m1", "m2"])
    ]
    found = s.grants(cell.run(*asked))
    assert [(one.member, one.operation) for one in found] == [
        ("m1", c.id_of(asked[0])),
        ("m2", c.id_of(asked[2])),
    ]
