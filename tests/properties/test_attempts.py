"""Laws of attempts over all histories: epochs, starts, ends, and what is never done twice."""

from collections import Counter, defaultdict
from functools import cache

import pytest

from schemas import events as e
from tests.support import core as c
from tests.support.walk import Walk

SEEDS = range(30)
CLOSED = (
    e.ReservationSettled,
    e.ReservationReleased,
    e.ReservationExpired,
    e.ReservationForfeited,
)
KNOWN = (e.OutcomeReconciled, e.ResultRecorded, e.ManualRetryAccepted)


@cache
def history(seed):
    """Events of a walk, after whose end time goes on until nothing is left to say."""
    walk = Walk(seed)
    for _ in range(250):
        walk.entry()
    walk.keep(walk.cell.run(*[c.result(grant) for grant in walk.grants[-20:]]))
    for _ in range(100):
        walk.keep(walk.cell.run(after_ms=1_000))
    return tuple(walk.events)


def attempt(event):
    return event.operation, event.incarnation, event.epoch


@pytest.mark.parametrize("seed", SEEDS)
def test_epochs_of_an_operation_only_grow_over_retries_incarnations_and_owners(seed):
    newest = {}
    for grant in c.only(e.GrantIssued, history(seed)):
        epoch = grant.incarnation, grant.epoch
        assert epoch > newest.get(grant.operation, (-1, 0))
        newest[grant.operation] = epoch


@pytest.mark.parametrize("seed", SEEDS)
def test_every_reservation_ends_exactly_once(seed):
    granted = Counter(map(attempt, c.only(e.GrantIssued, history(seed))))
    assert Counter(map(attempt, c.only(CLOSED, history(seed)))) == granted
    assert set(granted.values()) == {1}


@pytest.mark.parametrize("seed", SEEDS)
def test_an_attempt_has_one_lease_one_start_and_one_recorded_result(seed):
    for kind in (e.LeaseClaimed, e.StartAccepted, e.ResultRecorded, e.OutcomeMarkedUnknown):
        counted = Counter(map(attempt, c.only(kind, history(seed))))
        assert set(counted.values()) <= {1}, kind


@pytest.mark.parametrize("seed", SEEDS)
def test_an_entitlement_is_committed_with_the_first_start_and_never_again(seed):
    starts = defaultdict(list)
    for one in c.only(e.StartAccepted, history(seed)):
        starts[one.operation, one.incarnation].append(one.commits_entitlement)
    for commits in starts.values():
        assert commits == [True] + [False] * (len(commits) - 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_unsafe_work_is_granted_again_only_after_something_is_known_of_its_last_attempt(seed):
    doubtful, unsafe = {}, set()
    for event in history(seed):
        match event:
            case e.OperationAdmitted():
                (unsafe.add if event.effect == "unsafe" else unsafe.discard)(event.operation)
            case e.OutcomeMarkedUnknown() if event.operation in unsafe:
                doubtful[event.operation] = attempt(event)
            case e.OutcomeReconciled(verdict="ended"):
                pass  # the call is over, and nobody knows how
            case e.OutcomeReconciled() | e.ResultRecorded():
                if doubtful.get(event.operation) == attempt(event):
                    del doubtful[event.operation]
            case e.ManualRetryAccepted():
                doubtful.pop(event.operation, None)
            case e.GrantIssued():
                last = doubtful.get(event.operation)
                assert last is None or last[1] != event.incarnation


@pytest.mark.parametrize("seed", SEEDS)
def test_attempts_that_count_stay_within_their_bound(seed):
    """Attempts that failed or stayed unknown; three in domain d, five elsewhere."""
    tries = Counter()
    for event in history(seed):
        match event:
            case e.OperationAdmitted() | e.ManualRetryAccepted():
                tries[event.operation] = 0
            case e.RetryScheduled():
                tries[event.operation] += 1
                assert tries[event.operation] < 5


@pytest.mark.parametrize("seed", SEEDS)
def test_a_grant_starts_at_once_only_where_effects_may_be_repeated(seed):
    """R185: and then it does, under the owner that its member heard last."""
    offered, due = {}, []
    for event in history(seed):
        match event:
            case e.HeartbeatRecorded() | e.MemberActivated() | e.MemberRestored():
                offered.pop((event.member, event.member_epoch), None)
            case e.PlacesOffered():
                offered[event.member, event.member_epoch] = event.authority_epoch
            case e.GrantIssued() if event.started_ms is not None:
                assert (event.pool, event.effect != "unsafe") == ("p", True)
                assert offered[event.member, event.member_epoch] == event.authority_epoch
                due = [e.LeaseClaimed, e.StartAccepted]
            case e.LeaseClaimed() | e.StartAccepted() if due:
                assert type(event) is due.pop(0)
            case _:
                assert not due


def test_the_histories_hold_what_these_laws_are_about():
    grants = [grant for seed in SEEDS for grant in c.only(e.GrantIssued, history(seed))]
    assert sum(grant.started_ms is not None for grant in grants) >= 20
    assert sum(grant.epoch > 2 for grant in grants) >= 100
    kinds = Counter(type(event) for seed in SEEDS for event in history(seed))
    for kind in (*CLOSED, *KNOWN, e.LeaseExpired, e.RetryScheduled, e.OperatorActionNeeded):
        assert kinds[kind] >= 5, kind
