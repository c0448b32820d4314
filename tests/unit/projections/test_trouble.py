"""Views of what does not simply end: leases, unknown outcomes, retries, both ledgers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from projections.queries import Queries
from schemas.phase import Phase
from tests.support.folding import Fold
from tests.support.told import START_MS, Told, configured
from tests.support.words import e, i

TOLD = Told()


@pytest.fixture
def fold(tmp_path: Path) -> Iterator[Fold]:
    made = Fold(tmp_path)
    yield made
    made.store.close()


def claimed(told: Told, expires_ms: int) -> Any:
    return e.LeaseClaimed(**told.attempt, expires_ms=expires_ms)


def slots(asked: Queries) -> tuple[int, int, int]:
    use = next(d for d in asked.budgets("d")[0].dimensions if d.config.name == "slots")
    return use.held, use.in_use, use.unknown


def lease(asked: Queries, told: Told) -> int | None:
    row = asked.operation(told.id)
    assert row is not None
    return asked.lease_expires_ms(told.id, row)


def test_one_renewal_holds_for_all_leases_but_those_it_did_not_name(fold: Fold) -> None:
    first, second = Told("k1", sequence=1), Told("k2", sequence=2)
    fold.tell((0, first.admitted()), (1, second.admitted()), inputs=[(0, 0, 2)])
    asked = fold.tell(first.granted(), second.granted(), claimed(first, 50), claimed(second, 50))
    assert [lease(asked, told) for told in (first, second)] == [50, 50]
    unnamed = (i.LeaseName(operation=first.id, epoch=1),)
    named = {"member": "m1", "member_epoch": "e1"}
    asked = fold.tell(e.LeasesRenewed(**named, expires_ms=90, unnamed=unnamed))
    assert [lease(asked, told) for told in (first, second)] == [50, 90]
    asked = fold.tell(e.GrantExpired(**first.attempt), e.ReservationExpired(**first.attempt))
    assert [lease(asked, told) for told in (first, second)] == [None, 90]


def test_a_claimed_grant_is_leased_and_its_member_counts_it_so(fold: Fold) -> None:
    member = {"member": "m1", "member_epoch": "e1"}
    fold.tell(e.MemberSlotGranted(**member, pool="p", places=2, join_by_ms=START_MS + 5))
    fold.tell((0, TOLD.admitted()), inputs=[(0, 0, 1)])
    asked = fold.tell(TOLD.granted(), claimed(TOLD, START_MS + 60_000))
    row = asked.operation(TOLD.id)
    assert row is not None
    assert row.phase is Phase.LEASED
    member_row = asked.members()["m1"]
    assert (member_row.granted, member_row.leased, member_row.started) == (0, 1, 0)


def test_the_first_claim_takes_what_was_offered_to_nobody(fold: Fold) -> None:
    offered, taken = Told(member=""), Told(member="m2")
    fold.tell((0, offered.admitted()), inputs=[(0, 0, 1)])
    offer = e.GrantIssued(
        **{**plain(offered.granted()), **offered.attempt, "member_epoch": ""},
    )
    asked = fold.tell(offer)
    assert [one.member for one in asked.held_slots()] == [""]
    assert asked.members() == {}
    member = {"member": "m2", "member_epoch": "e1"}
    fold.tell(e.MemberSlotGranted(**member, pool="p", places=2, join_by_ms=START_MS + 5))
    asked = fold.tell(claimed(taken, START_MS + 60_000))
    (slot,) = asked.held_slots()
    assert (slot.member, slot.phase) == ("m2", Phase.LEASED)
    assert (asked.members()["m2"].granted, asked.members()["m2"].leased) == (0, 1)


def plain(event: Any) -> dict[str, Any]:
    return {name: getattr(event, name) for name in event.__struct_fields__}


def test_an_unknown_outcome_keeps_its_slot_until_the_bound(fold: Fold) -> None:
    fold.start(TOLD)
    asked = fold.tell(TOLD.unknown())
    assert slots(asked) == (0, 1, 1)
    forfeited = e.ReservationForfeited(
        **TOLD.attempt, domain="d", tokens_reserved=300, held_ms=900_000, cost_ns=7
    )
    needed = e.OperatorActionNeeded(
        tenant="acme", operation=TOLD.id, incarnation=1, epoch=1, reason="hold_bound"
    )
    asked = fold.tell(forfeited, needed)
    row = asked.operation(TOLD.id)
    assert row is not None
    assert (row.phase, row.code) == (Phase.UNKNOWN_CLOSED, "hold_bound")
    assert slots(asked) == (0, 0, 0)
    assert list(asked.unknowns()) == []
    ledger = asked.ledgers("acme")["d"]
    assert (ledger.forfeited, ledger.tokens_charged) == (1, 300)


def test_proof_by_time_gives_the_slot_back_and_the_outcome_stays_unknown(fold: Fold) -> None:
    fold.start(TOLD)
    fold.tell(TOLD.unknown())
    asked = fold.tell(TOLD.reconciled("elapsed_maximum", "ended"), TOLD.settled(None))
    row = asked.operation(TOLD.id)
    assert row is not None
    assert row.phase is Phase.UNKNOWN
    assert slots(asked) == (0, 0, 0)
    (one,) = asked.unknowns()
    assert (one.row.held, one.row.awaited) == (False, True)


def test_an_older_hold_settles_by_its_own_epoch_and_amounts(fold: Fold) -> None:
    fold.start(TOLD)
    fold.tell(TOLD.unknown(), TOLD.scheduled("unknown", START_MS + 50))
    parked = fold.tell().operation(TOLD.id)
    assert parked is not None
    assert (parked.phase, parked.not_before_ms) == (Phase.PARKED, START_MS + 50)
    later = TOLD.again()
    unparked = e.OperationUnparked(tenant="acme", operation=TOLD.id)
    asked = fold.tell(unparked, later.granted(), *later.started(START_MS + 300))
    assert slots(asked) == (0, 2, 1)
    asked = fold.tell(TOLD.settled(900))
    assert slots(asked) == (0, 1, 0)
    row = asked.operation(TOLD.id)
    assert row is not None
    assert (row.phase, row.attempt) == (Phase.STARTED, 2)


def test_three_attempts_are_one_entitlement_and_three_paced_calls(fold: Fold) -> None:
    """R57."""
    attempt = TOLD
    fold.tell((0, attempt.admitted()), inputs=[(0, 0, 1)])
    asked = fold.tell(attempt.granted())
    ledger = asked.ledgers("acme")["d"]
    assert (ledger.held, ledger.committed) == (1, 0)
    for _ in range(2):
        fold.tell(*attempt.started(START_MS + 200), attempt.result("retryable"))
        fold.tell(attempt.settled(), attempt.scheduled("retryable", START_MS + 50))
        attempt = attempt.again()
        unparked = e.OperationUnparked(tenant="acme", operation=TOLD.id)
        fold.tell(unparked, attempt.granted())
    asked = fold.tell(*attempt.started(START_MS + 200), attempt.result(), attempt.settled())
    ledger = asked.ledgers("acme")["d"]
    assert (ledger.held, ledger.committed) == (0, 1)
    assert (ledger.starts, ledger.settled, ledger.tokens_charged) == (3, 3, 720)
    assert asked.domains()["d"].outcomes == {"retryable": 2, "success": 1}
    assert asked.domains()["d"].retries == {"retryable": 2}


@pytest.mark.parametrize("cancelled", [True, False])
def test_an_entitlement_is_released_by_a_cancellation_and_expires_otherwise(
    fold: Fold, cancelled: bool
) -> None:
    fold.tell((0, TOLD.admitted()), inputs=[(0, 0, 1)])
    fold.tell(TOLD.granted())
    fold.tell(e.GrantExpired(**TOLD.attempt), e.ReservationExpired(**TOLD.attempt))
    kind = e.OperationCancelled if cancelled else e.OperationExpired
    asked = fold.tell(kind(tenant="acme", operation=TOLD.id, reason="enough"))
    ledger = asked.ledgers("acme")["d"]
    assert (ledger.held, ledger.committed) == (0, 0)
    assert (ledger.released, ledger.expired) == (int(cancelled), int(not cancelled))


def test_later_usage_corrects_the_ledger_and_counts_only_what_is_beyond(fold: Fold) -> None:
    fold.start(TOLD)
    fold.tell(TOLD.result(), TOLD.settled(240))
    fold.journal.time_ms = START_MS + 5_000
    for actual, counted in ((100, 0), (700, 400)):
        corrected = e.UsageCorrected(
            **TOLD.attempt, domain="d", evidence="u", tokens_before=240, tokens_actual=actual
        )
        asked = fold.tell(corrected)
        use = next(d for d in asked.budgets("d")[0].dimensions if d.config.name == "tokens-1s")
        assert use.counted == counted
    ledger = asked.ledgers("acme")["d"]
    assert ledger.tokens_corrected == (100 - 240) + (700 - 240)


def test_a_pause_lasts_until_its_end_or_until_the_domain_is_configured(fold: Fold) -> None:
    asked = fold.tell(e.CooldownSet(domain="d", cause="throttled", until_ms=START_MS + 50))
    assert asked.domains()["d"].is_paused(START_MS + 49)
    assert not asked.domains()["d"].is_paused(START_MS + 50)
    asked = fold.tell(e.CooldownSet(domain="d", cause="quota_exhausted"))
    assert asked.domains()["d"].is_paused(START_MS + 10**9)
    asked = fold.tell(configured()[1])
    assert not asked.domains()["d"].is_paused(START_MS)


def test_a_run_tells_its_turns_and_its_last_checkpoint(fold: Fold) -> None:
    run, turn = Told("run"), Told("turn", sequence=2)
    admitted = e.OperationAdmitted(**{**plain(run.admitted()), "turns_max": 3, "tools": ("a",)})
    fold.tell((0, admitted), inputs=[(0, 0, 1)])
    fold.tell(run.granted(), *run.started(START_MS + 200))
    child = e.OperationAdmitted(**{**plain(turn.admitted()), "parent": run.id})
    fold.tell((0, child), inputs=[(0, 0, 1)])
    asked = fold.tell(e.CheckpointRecorded(**run.attempt, number=1, state_ref="s3://state"))
    row = asked.operation(run.id)
    assert row is not None
    assert (row.checkpoint, row.checkpoint_ref, row.tools) == (1, "s3://state", ("a",))
    assert asked.turns(run.id, row) == 1
    page = asked.children(run.id, begin=None, limit=9, keep=lambda _: True)
    assert [operation for operation, _ in page.items] == [turn.id]


def test_an_operator_s_word_on_a_closed_operation_ends_it_for_good(fold: Fold) -> None:
    fold.start(TOLD)
    needed = e.OperatorActionNeeded(
        tenant="acme", operation=TOLD.id, incarnation=1, epoch=1, reason="abandoned"
    )
    asked = fold.tell(TOLD.unknown(), TOLD.reconciled("operator", "abandoned"), needed)
    (one,) = asked.unknowns()
    assert (one.row.held, one.row.awaited) == (True, False)
    row = asked.operation(TOLD.id)
    assert row is not None
    assert row.phase is Phase.UNKNOWN_CLOSED
    asked = fold.tell(TOLD.reconciled("operator", "completed"), TOLD.settled(None))
    row = asked.operation(TOLD.id)
    assert row is not None
    assert (row.phase, row.code) == (Phase.SUCCEEDED, None)
    found, _ = asked.tenants()["acme"]
    assert {phase: n for phase, n in found.phases.items() if n} == {Phase.SUCCEEDED: 1}
    letters = asked.dead_letters(tenant="acme", begin=None, limit=9, keep=lambda _: True)
    assert letters.items == []


def test_a_long_history_keeps_its_newest_steps_and_says_how_many_it_dropped(fold: Fold) -> None:
    fold.tell((0, TOLD.admitted()), inputs=[(0, 0, 1)])
    expiry = [e.GrantExpired(**TOLD.attempt), e.ReservationExpired(**TOLD.attempt)]
    for _ in range(100):
        asked = fold.tell(TOLD.granted(), *expiry)
    history = asked.history(TOLD.id)
    assert (len(history.steps), history.dropped) == (256, 45)
    assert history.steps[-1].type == "ReservationExpired"
