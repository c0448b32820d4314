"""Laws of all histories: replay equals live, repeats decide nothing, budgets hold."""

import pytest

from schemas import events as e
from streams.core import invariants
from streams.core.decider import decide
from streams.core.opening import open_state
from streams.core.outcomes import Source, Taken
from tests.support import core as c
from tests.support.walk import Walk


@pytest.mark.parametrize("seed", range(40))
def test_after_every_entry_the_invariants_hold(seed):
    walk = Walk(seed)
    for _ in range(150):
        walk.entry()
        assert list(invariants.broken(walk.cell.state)) == []


@pytest.mark.parametrize("seed", range(20))
def test_folding_the_entries_gives_the_live_rows_and_reopening_changes_no_decision(seed):
    walk, steady = Walk(seed), Walk(seed)
    steady.cell.take_over = lambda **over: type(steady.cell).take_over(
        steady.cell, **{**over, "reopen": False}
    )
    for _ in range(200):
        walk.entry()
        steady.entry()
    assert walk.events == steady.events
    assert walk.cell.rows.digest() == steady.cell.rows.digest()
    assert walk.cell.follower().digest() == walk.cell.rows.digest()


@pytest.mark.parametrize("seed", range(10))
def test_deciding_changes_nothing(seed):
    walk = Walk(seed)
    for _ in range(60):
        walk.entry()
        assert not any(walk.cell.state.rows._changed)
        for _ in range(5):
            asked = walk.ask()
            decide(walk.cell.state, Taken(Source(c.TOPIC_OF[type(asked)], 0, 0), asked))
        assert walk.cell.state.drain() == []


@pytest.mark.parametrize("seed", range(10))
def test_every_readable_submission_has_exactly_one_answer(seed):
    walk = Walk(seed)
    answers = (
        e.OperationAdmitted,
        e.OperationRejected,
        e.DuplicateObserved,
        e.SubmissionConflicted,
    )
    for _ in range(150):
        asked = [walk.submission() for _ in range(3)]
        events = walk.cell.run(*asked, after_ms=7)
        assert [event.operation for event in c.only(answers, events)] == [
            c.id_of(one) for one in asked
        ]
        walk.keep(events)
        walk.entry()


@pytest.mark.parametrize("seed", range(10))
def test_the_end_of_a_history_ends_all_work(seed):
    walk = Walk(seed)
    for _ in range(100):
        walk.entry()
    cell = walk.cell
    cell.run(*[c.result(grant) for grant in walk.grants])
    for _ in range(200):
        cell.run(after_ms=1_000)
    state = open_state(cell.rows)
    assert state.cell.waiting == 0
    assert state.attempts == {}
    assert all(window.used == 0 for window in state.config.windows.values())
