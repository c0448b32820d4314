"""The state is a function of the rows, follows entries, and never scans what waits."""

from functools import cache

import pytest

from schemas import events as e
from schemas.entry import InputRun
from streams.core import invariants
from streams.core.decider import Acted, decide_due, step
from streams.core.opening import open_state
from streams.core.outcomes import Source, Taken, Unreadable
from streams.core.tables import Table
from streams.core.timers import Kind, Timer
from tests.support import cells as s
from tests.support import core as c


def test_an_entry_moves_only_the_input_partitions_that_it_names():
    cell = s.cell()
    made = c.Made(cell.height + 1, 1, cell.now_ms, inputs=(taken_run(1, 2, 7), taken_run(3, 0, 9)))
    cell.state.begin(made)
    cell.rows.write(cell.state.drain())
    later = c.Made(cell.height + 2, 1, cell.now_ms, inputs=(taken_run(1, 2, 8),))
    cell.state.begin(later)
    cell.rows.write(cell.state.drain())
    wanted = {(1, 2): 8, (3, 0): 9}
    assert cell.state.positions == open_state(cell.rows).positions == wanted


def taken_run(topic, partition, position):
    return InputRun(topic=topic, partition=partition, first=0, next=position)


def test_the_header_of_an_entry_is_taken_over_as_a_whole():
    cell = s.cell()
    cell.state.begin(c.Made(50, 7, 5_000_000, generation=3))
    state = cell.state
    assert (state.cell.height, state.cell.epoch, state.cell.generation) == (50, 7, 3)
    cell.rows.write(state.drain())
    again = open_state(cell.rows)
    assert (again.cell, again.now_ms) == (state.cell, 5_000_000)


def test_time_that_stands_still_or_is_told_twice_changes_nothing():
    cell = s.cell(c.dimension("requests", 1, window_ms=1_000), claim_by_ms=500)
    s.granted(cell, c.submitted("a", "1", start_within_ms=400))
    assert s.kinds(cell.run(after_ms=400))[-1] == "OperationExpired"
    for after_ms in (0, 0, -300, 300):
        assert cell.run(after_ms=after_ms) == []
    assert cell.follower().digest() == cell.rows.digest()


def test_time_that_goes_back_makes_nothing_early():
    cell = s.cell()
    s.started(cell, c.submitted("a", "1"))
    cell.run(c.domain(c.dimension("slots", 1)))
    cell.run(c.submitted("a", "2", start_within_ms=1_000))
    cell.run(after_ms=-500)
    assert cell.run(after_ms=1_499) == []
    assert s.kinds(cell.run(after_ms=1)) == ["OperationExpired"]


def test_an_unreadable_input_is_quarantined_with_its_place():
    cell = s.cell()
    bad = Taken(Source(c.TOPIC_OF[type(c.join())], 5, 77), Unreadable("malformed", "why"))
    cell.state.begin(c.Made(cell.height + 1, 1, cell.now_ms))
    (decided,) = step(cell.state, [bad], Acted())
    cause, event = decided.cause, decided.event
    assert (cause, type(event)) == (0, e.InputQuarantined)
    assert (event.topic, event.partition, event.offset) == ("members", 5, 77)
    assert (event.code, event.detail) == ("malformed", "why")


def test_each_event_names_its_cause():
    cell = s.cell(places=1)
    s.granted(cell, c.submitted("a", "0"))
    cell.run(c.submitted("a", "1", start_within_ms=500))
    cell.run(c.domain(c.dimension("slots", 0)), c.submitted("a", "2"), after_ms=500)
    causes = [(one.cause, type(one.event).__name__) for one in cell.entries[-1][1]]
    assert causes == [(0, "ConfigActivated"), (1, "OperationAdmitted"), (-1, "OperationExpired")]
    cell.run(c.pool("x"), c.join("m2"), c.heartbeat("m2"), c.domain(c.dimension("slots", 2)))
    assert [one.cause for one in cell.entries[-1][1]] == [0, 1, 2, 3, -2]


@pytest.mark.parametrize("bound", [1, 3, 7])
def test_timers_are_bounded_and_the_next_entry_follows_at_once(bound):
    cell = s.cell(cell_bounds={"timers_per_entry_max": bound})
    cell.run(c.pool("idle"))
    asked = [c.submitted("a", str(n), pool="idle", start_within_ms=100) for n in range(7)]
    cell.run(*asked)
    assert len(cell.run(after_ms=100)) == bound
    assert cell.state.more is (bound < 7)
    left = 7 - bound
    while left:
        left -= len(cell.run())
    assert not cell.state.more


def test_an_entry_that_may_not_let_time_act_fires_no_timer():
    cell = s.cell(c.dimension("slots", 0), cell_bounds={"member_ttl_ms": 100})
    cell.run(c.submitted("a", "1", start_within_ms=100))
    assert cell.run(after_ms=1_000, timers=False) == []
    assert cell.state.more
    assert set(s.kinds(cell.run())) == {"OperationExpired", "MemberSuspected"}


def test_an_owner_that_opened_its_tables_decides_as_one_that_never_stopped():
    def history(*, reopen):
        cell = s.cell(c.dimension("slots", 3), c.dimension("tokens", 900), places=3)
        cell.run(
            c.tenant("a", weight=3), *[c.submitted(t, str(n)) for t in "abc" for n in range(9)]
        )
        live = [one.event for _, decided in cell.entries for one in decided]
        found = s.grants(live)
        for n in range(30):
            cell.take_over(reopen=reopen)
            if found:
                grant = found.pop(0)
                found += s.grants(cell.run(c.start(grant), after_ms=50 * n))
                found += s.grants(cell.run(c.result(grant), after_ms=700))
        return cell

    one, other = history(reopen=True), history(reopen=False)
    assert [decided for _, decided in one.entries] == [decided for _, decided in other.entries]
    assert one.rows.digest() == other.rows.digest() == one.follower().digest()


def test_a_broken_invariant_is_told_as_a_sentence():
    cell = s.cell(c.dimension("slots", 2), places=2)
    s.started(cell, c.submitted("a", "1"))
    cell.run(c.domain(c.dimension("slots", 1)), c.submitted("a", "2"))
    assert list(invariants.broken(cell.state)) == []
    state = cell.state
    domain = state.config.domains["d"]
    domain.windows[0].add(1)
    domain.row.count += 1
    state.waiting("a").count += 1
    state.cell.waiting += 1
    state.pools.members["m"].places = 0
    waiting = c.id_of(c.submitted("a", "2"))
    state.timers.unset(state.operation(waiting).deadline_ms, Kind.DEADLINE, waiting)
    for timer in [one for one in timers(state) if one.kind is Kind.LEASE]:
        state.timers.unset(*timer)
    cell.rows.write(state.drain())
    found = "\n".join(invariants.broken(state))
    for part in (
        "to count in",
        "at m,",
        "to wait in d",
        "of a to wait",
        "to wait, but",
        "a timer of",
        "the lease of",
        "lives to be looked at",
    ):
        assert part in found
    (attempt,) = state.attempts.values()
    attempt.epoch += 1
    assert "to be the newest" in "\n".join(invariants.broken(state))
    state.attempts.clear()
    assert "an attempt of" in "\n".join(invariants.broken(state))


def test_a_hold_that_nothing_ends_is_told_as_a_broken_invariant():
    cell = s.cell()
    grant = s.started(cell, c.submitted("a", "1"))
    cell.run(c.result(grant, "unknown"))
    assert list(invariants.broken(cell.state)) == []
    state = cell.state
    (attempt,) = state.attempts.values()
    state.holds.keep(grant.operation, attempt)
    state.holds.unwatch(grant.operation, attempt)
    state.pools.occupy("m", "e1", grant.operation)
    cell.rows.write(state.drain())
    found = "\n".join(invariants.broken(state))
    for part in ("to count in", "to have a place exactly", "to be held once", "the hold of"):
        assert part in found
    attempt.uncertain.closed = True
    assert "an open hold of" in "\n".join(invariants.broken(state))


def timers(state):
    rows = [key for key, _ in state.rows.load(Table.TIMER)]
    return [Timer(int.from_bytes(key[:8], "big"), Kind(key[8]), key[9:]) for key in rows]


def test_an_idle_budget_is_told_as_a_broken_invariant():
    cell = s.cell(c.dimension("slots", 1))
    cell.run(c.submitted("a", "1"), c.submitted("a", "2"))
    cell.state.config.domains["d"].windows[0].add(-1)
    assert "to be granted" in "\n".join(invariants.broken(cell.state))
    cell.state.touch("d")
    assert "to be granted" not in "\n".join(invariants.broken(cell.state))


def test_every_kind_of_timer_has_a_decision():
    cell = s.cell()
    with pytest.raises(AssertionError):
        decide_due(cell.state, Timer(0, 99, b""))


# -- nothing is scanned -------------------------------------------------------------------------

FEW, MANY = 1_000, 30_000


@cache
def backlog(waiting):
    """A cell with this much waiting work, of five tenants, and nothing granted."""
    big = {"waiting_count_max": 10**6, "deferral_sample_ms": 10**9}
    cell = s.cell(
        c.dimension("slots", 0),
        cell_bounds=big,
        tenants=[c.tenant(t, waiting_count_max=10**6) for t in "abcde"],
        waiting_count_max=10**6,
    )
    for first in range(0, waiting, 500):
        cell.run(*[c.submitted("abcde"[n % 5], str(n)) for n in range(first, first + 500)])
    cell.entries.clear()
    return cell


def lifecycle(cell, key):
    cell.run(c.domain(c.dimension("slots", 1), waiting_count_max=10**6))
    asked = c.submitted("a", key, start_within_ms=50)
    events = cell.run(asked)
    (grant,) = s.grants([one.event for one in cell.entries[-2][1]])
    cell.run(c.start(grant))
    cell.run(c.domain(c.dimension("slots", 0), waiting_count_max=10**6))
    cell.run(c.result(grant))
    cell.run(after_ms=50)
    assert events


def test_a_lifecycle_reads_as_many_rows_beside_many_waiting_as_beside_few():
    steps = []
    for waiting in (FEW, MANY):
        cell = backlog(waiting)
        for n in range(2 * 32):  # as often as it takes for fronts to be read again
            lifecycle(cell, f"warm{n}")
        cell.rows.steps = 0
        for n in range(3 * 32):
            lifecycle(cell, f"key{n}")
        steps.append(cell.rows.steps)
    assert steps[1] <= steps[0] * 1.02, steps


def test_memory_holds_nothing_of_the_backlog():
    few, many = (backlog(waiting).state for waiting in (FEW, MANY))

    def held(state):
        fronts = sum(
            len(queue._front)
            for lane in state.config.domains["d"].lanes.values()
            for counter in lane.counters.values()
            for queue in counter.queues.values()
        )
        return fronts, len(state.timers._near) <= 5 * 1_024, len(state._live), len(state.attempts)

    assert held(few) == held(many)
    assert sum(table is Table.WAITING for table, _ in backlog(MANY).rows.values) >= MANY - 200
