"""Leases by the thousand: what ends at once ends in bounded entries, and nothing waits for it."""

from schemas import events as e
from streams.core import invariants
from streams.core.limits import LEASES_ENDED_MAX, PLACES_MAX
from tests.support import cells as s
from tests.support import core as c

LEASE_MS = 10_000


def ended(events):
    return [one.operation for one in c.only(e.LeaseExpired, events)]


def many(count, members, **over):
    """Started attempts of one member after the other, all of one instant."""
    bounds = {"grants_per_entry_max": 128, "timers_per_entry_max": 400}
    slots = c.dimension("slots", 20_000)
    cell = s.cell(slots, places=PLACES_MAX, lease_ms=LEASE_MS, cell_bounds=bounds, **over)
    for number in range(1, members):
        name = f"m{number}"
        cell.run(c.join(name, places=PLACES_MAX), c.heartbeat(name))
    events = []
    for first in range(0, count, 128):
        some = range(first, min(first + 128, count))
        events += cell.settle_down(*(c.submitted("a", str(n)) for n in some))
    cell.run(*(c.start(grant) for grant in s.grants(events)))
    assert len(s.grants(events)) == count
    return cell


def test_ten_thousand_leases_due_at_once_end_in_bounded_entries_and_delay_no_result():
    cell = many(10_000, 10)
    grant = s.started(cell, c.submitted("b", "quick"))
    cell.run(c.renewal(grant), after_ms=LEASE_MS - 1)
    events = cell.run(c.result(grant), after_ms=1)
    assert s.kinds(events)[:2] == ["ResultRecorded", "ReservationSettled"]
    over, entries = len(ended(events)), 1
    while cell.state.more:
        events = cell.run()
        over, entries = over + len(ended(events)), entries + 1
        assert len(events) <= 400 + 5 * LEASES_ENDED_MAX
    assert over == 10_000
    assert entries <= 10_000 * 2 // 400 + 1
    assert s.used(cell, "slots") == 10_000  # nobody knows whether the calls ended
    assert list(invariants.broken(cell.state)) == []


def test_a_member_of_all_places_that_is_lost_loses_all_its_leases_in_parts():
    cell = many(PLACES_MAX, 1, unknown_hold_ms=10**6)
    events = cell.run(after_ms=LEASE_MS)
    assert 0 < len(ended(events)) < PLACES_MAX
    while cell.state.more:
        events += cell.run()
    assert len(set(ended(events))) == len(ended(events)) == PLACES_MAX
    assert cell.state.pools.free_places("m") == PLACES_MAX
    assert cell.state.lives == {}


def test_an_owner_killed_between_the_parts_ends_each_lease_once():
    cell = many(300, 1)
    events = cell.run(after_ms=LEASE_MS)
    while cell.state.more:
        cell.take_over()
        events += cell.run()
    assert len(set(ended(events))) == len(ended(events)) == 300
    assert s.same_as_followed(cell)
