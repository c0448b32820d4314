"""Views fold lists: events in, rows out, through a follower without a broker."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from projections.queries import Queries
from schemas.phase import Phase
from tests.support.folding import Fold
from tests.support.told import START_MS, Told
from tests.support.words import e


@pytest.fixture
def fold(tmp_path: Path) -> Iterator[Fold]:
    made = Fold(tmp_path)
    yield made
    made.store.close()


def used(asked: Queries, dimension: str) -> tuple[int, int, int]:
    level = asked.budgets("d")[0]
    found = next(d for d in level.dimensions if d.config.name == dimension)
    return found.held, found.in_use, found.counted


def test_an_operation_goes_through_its_life(fold: Fold) -> None:
    told = Told()
    phases: list[Phase] = []
    for events in (
        [told.granted()],
        told.started(START_MS + 200),
        [told.result(), told.settled()],
    ):
        if not phases:
            fold.admit(told)
        row = fold.tell(*events).operation(told.id)
        assert row is not None
        phases.append(row.phase)
    assert phases == [Phase.GRANTED, Phase.STARTED, Phase.SUCCEEDED]
    assert row is not None
    assert (row.holder, row.attempt, row.outcome, row.used_output_tokens) == (
        "m1",
        1,
        "success",
        40,
    )


@pytest.mark.parametrize(
    ("outcome", "cancelled", "phase"),
    [
        ("success", False, Phase.SUCCEEDED),
        ("terminal", False, Phase.FAILED),
        ("policy_denied", False, Phase.FAILED),
        ("cancelled", False, Phase.CANCELLED),
        ("not_sent", False, Phase.WAITING),
        ("success", True, Phase.SUCCEEDED),
        ("terminal", True, Phase.CANCELLED),
    ],
)
def test_a_result_ends_an_operation_as_its_outcome_says(
    fold: Fold, outcome: str, cancelled: bool, phase: Phase
) -> None:
    told = Told()
    fold.admit(told)
    fold.tell(told.granted(), *told.started(START_MS + 200))
    if cancelled:
        fold.tell(e.CancelSignalled(**told.attempt, cause="enough"))
    row = fold.tell(told.result(outcome)).operation(told.id)
    assert row is not None
    assert row.phase is phase


def test_a_place_is_counted_in_admission_order_within_one_queue(fold: Fold) -> None:
    first, second, third = (Told(f"k{n}", sequence=n) for n in (1, 2, 3))
    other = Told("k", tenant="bolt", sequence=4)
    asked = fold.admit(first, second, third, other)
    rows = [asked.operation(told.id) for told in (first, second, third, other)]
    assert [asked.place(row) for row in rows if row is not None] == [1, 2, 3, 1]
    asked = fold.tell(first.granted())
    rows = [asked.operation(told.id) for told in (first, second, third)]
    assert [asked.place(row) for row in rows if row is not None] == [None, 1, 2]


def test_a_grant_that_ends_unstarted_waits_again_at_its_old_place(fold: Fold) -> None:
    first, second = Told("k1", sequence=1), Told("k2", sequence=2)
    fold.admit(first, second)
    fold.tell(first.granted())
    asked = fold.tell(e.GrantExpired(**first.attempt), e.ReservationExpired(**first.attempt))
    row = asked.operation(first.id)
    assert row is not None
    assert (row.phase, asked.place(row)) == (Phase.WAITING, 1)
    assert used(asked, "slots") == (0, 0, 0)


def test_a_queue_says_what_its_head_waits_for_until_something_is_granted(fold: Fold) -> None:
    first, second = Told("k1", sequence=1), Told("k2", sequence=2)
    fold.admit(first, second)
    asked = fold.tell(
        e.OperationDeferred(
            tenant="acme",
            operation=first.id,
            domain="d",
            level="domain",
            dimension="tokens-1s",
            not_before_ms=START_MS + 9,
        )
    )
    (queue,) = asked.queues("acme")
    assert (queue.row.waiting, queue.row.waiting_bytes) == (2, 20)
    assert queue.head is not None
    assert queue.head.operation == first.id
    assert queue.row.deferral == ("domain", "tokens-1s", "budget", START_MS + 9)
    (queue,) = fold.tell(first.granted()).queues("acme")
    assert queue.row.deferral is None


def test_an_empty_queue_leaves_no_row(fold: Fold) -> None:
    told = Told()
    fold.admit(told)
    assert fold.tell(told.granted()).queues("acme") == []


def test_a_reservation_is_held_then_in_use_then_gone(fold: Fold) -> None:
    told = Told()
    fold.admit(told)
    assert used(fold.tell(told.granted()), "slots") == (1, 0, 1)
    assert used(fold.tell(*told.started(START_MS + 200)), "slots") == (0, 1, 1)
    assert used(fold.tell(told.result(), told.settled()), "slots") == (0, 0, 0)


def test_a_charge_counts_in_its_window_until_its_latest_arrival_has_left(fold: Fold) -> None:
    told = Told()
    fold.admit(told)
    assert used(fold.tell(told.granted()), "tokens-1s") == (300, 0, 300)
    fold.tell(*told.started(START_MS + 200))
    asked = fold.tell(told.result(), told.settled())
    assert used(asked, "tokens-1s") == (0, 0, 300)
    # 200 + 1000 + 1 + rho of 1, up to a bucket of 4: counted before 1204, gone at it
    fold.journal.time_ms = START_MS + 1202
    assert used(fold.tell(), "tokens-1s")[2] == 300
    fold.journal.time_ms = START_MS + 1203
    assert used(fold.tell(), "tokens-1s")[2] == 0


def test_a_send_report_lets_a_charge_leave_earlier(fold: Fold) -> None:
    told = Told()
    fold.admit(told)
    fold.tell(told.granted(), *told.started(START_MS + 200))
    fold.tell(told.sent(START_MS + 3))
    fold.journal.time_ms = START_MS + 1010
    assert used(fold.tell(), "tokens-1s")[2] == 0


def test_a_call_that_was_not_sent_counts_no_more(fold: Fold) -> None:
    told = Told()
    fold.admit(told)
    fold.tell(told.granted(), *told.started(START_MS + 200))
    asked = fold.tell(told.result("not_sent"), told.released())
    assert used(asked, "tokens-1s") == (0, 0, 0)
    assert used(asked, "slots") == (0, 0, 0)


def test_offered_is_admitted_rejected_repeated_or_in_conflict(fold: Fold) -> None:
    told, full = Told("k1"), Told("k2", sequence=2)
    fold.admit(told)
    fold.tell((0, full.rejected("tenant-queue-full", binds=False)), inputs=[(0, 0, 1)])
    fold.tell(e.DuplicateObserved(tenant="acme", operation=told.id, state="waiting"))
    found = fold.tell(e.SubmissionConflicted(tenant="acme", operation=told.id)).tenant("acme")
    assert found is not None
    row, config = found
    assert (row.admitted, row.refusals, row.duplicates, row.conflicts) == (
        1,
        {"tenant-queue-full": 1},
        1,
        1,
    )
    assert config.weight == 2


def test_admitted_is_live_or_ended(fold: Fold) -> None:
    told = [Told(f"k{n}", sequence=n) for n in range(4)]
    fold.admit(*told)
    fold.tell(told[0].granted(), *told[0].started(START_MS + 200))
    fold.tell(told[0].result(), told[0].settled(), told[1].granted())
    cancelled = e.OperationCancelled(tenant="acme", operation=told[2].id, reason="enough")
    found = fold.tell(cancelled).tenant("acme")
    assert found is not None
    row, _ = found
    assert {phase: count for phase, count in row.phases.items() if count} == {
        Phase.SUCCEEDED: 1,
        Phase.GRANTED: 1,
        Phase.CANCELLED: 1,
        Phase.WAITING: 1,
    }
    assert sum(row.phases.values()) == row.admitted
    assert row.waiting_bytes == 10


def test_a_temporary_refusal_frees_the_key_and_is_not_listed(fold: Fold) -> None:
    told = Told()
    asked = fold.tell((0, told.rejected("tenant-queue-full", binds=False)), inputs=[(0, 0, 1)])
    assert asked.page(tenant="acme", begin=None, limit=9, keep=lambda _: True).items == []
    asked = fold.admit(told)
    row = asked.operation(told.id)
    assert row is not None
    assert (row.phase, row.code) == (Phase.WAITING, None)


def test_a_forgotten_operation_is_gone_everywhere(fold: Fold) -> None:
    told = Told()
    fold.admit(told)
    fold.tell(e.OperationCancelled(tenant="acme", operation=told.id, reason=""))
    asked = fold.tell(e.OperationForgotten(tenant="acme", operation=told.id))
    assert asked.operation(told.id) is None
    assert asked.page(tenant=None, begin=None, limit=9, keep=lambda _: True).items == []


def test_a_lost_member_stays_until_its_started_attempt_is_settled(fold: Fold) -> None:
    told = Told()
    member = {"member": "m1", "member_epoch": "e1"}
    fold.admit(told)
    fold.tell(e.MemberSlotGranted(**member, pool="p", places=2, join_by_ms=START_MS + 5))
    fold.tell(e.MemberActivated(**member), told.granted(), *told.started(START_MS + 200))
    asked = fold.tell(e.MemberSuspected(**member), e.MemberLost(**member))
    row = asked.members()["m1"]
    assert (row.state, row.started) == ("left", 1)
    assert fold.tell(told.result(), told.settled()).members() == {}


def test_a_member_that_asks_again_for_its_slot_stays_what_it_is(fold: Fold) -> None:
    member = {"member": "m1", "member_epoch": "e1"}
    slot = e.MemberSlotGranted(**member, pool="p", places=2, join_by_ms=START_MS + 5)
    fold.tell(slot, e.MemberActivated(**member))
    assert fold.tell(slot).members()["m1"].state == "active"


def test_pages_follow_each_other_without_gap_or_repeat_newest_first(fold: Fold) -> None:
    told = [Told(f"k{n}", sequence=n) for n in range(7)]
    other = Told("k", tenant="bolt", sequence=9)
    asked = fold.admit(*told, other)
    found: list[bytes] = []
    begin = None
    while True:
        page = asked.page(tenant="acme", begin=begin, limit=3, keep=lambda _: True)
        found += [operation for operation, _ in page.items]
        begin = page.next
        if begin is None:
            break
    assert found == [one.id for one in reversed(told)]


def test_a_cursor_of_another_tenant_never_leads_to_it(fold: Fold) -> None:
    told = [Told(f"k{n}", tenant="acme", sequence=n) for n in range(3)]
    asked = fold.admit(*told, Told("k", tenant="bolt", sequence=9))
    theirs = asked.page(tenant="acme", begin=None, limit=1, keep=lambda _: True).next
    page = asked.page(tenant="bolt", begin=theirs, limit=9, keep=lambda _: True)
    assert [row.tenant for _, row in page.items] == ["bolt"]
