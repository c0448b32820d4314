"""Two ledgers: the entitlement once an operation, pacing once a started call; and corrections."""

import pytest

from schemas import events as e
from schemas.codes import Code
from schemas.inputs import TenantBudget
from streams.core.limits import TOKENS_MAX
from tests.support import cells as s
from tests.support import core as c

ONE = c.submitted("a", "1")
LONG = {"window_ms": 10**7}
SLOTS = c.dimension("slots", 9)


def cell_of(amount="actual", **over):
    tokens = c.dimension("tokens", 10_000, amount=amount, **LONG)
    return s.cell(c.dimension("requests", 99, **LONG), tokens, SLOTS, **over)


def ended(cell, used=60, asked=ONE, outcome="success"):
    """A call of 100 reserved tokens that used so many."""
    grant = s.started(cell, asked)
    cell.run(c.result(grant, outcome, prompt_tokens=0, output_tokens=used))
    return grant


def test_three_attempts_commit_the_entitlement_once_and_are_paced_three_times():
    cell = cell_of(retry_backoff_ms=1)
    grants, starts = s.grants(cell.run(c.submitted("a", "1", effect="keyed"))), []
    for outcome in ("retryable", "unknown", "success"):
        starts += c.only(e.StartAccepted, cell.run(c.start(grants[-1])))
        cell.run(c.result(grants[-1], outcome))
        grants += s.grants(cell.run(after_ms=2))
    assert [one.commits_entitlement for one in starts] == [True, False, False]
    assert [s.used(cell, name) for name in ("requests", "tokens")] == [3, 300]
    assert s.used(cell, "slots") == 1  # of the second, which nobody knows the end of
    assert s.same_as_followed(cell)


def test_an_attempt_that_never_started_commits_nothing():
    cell = cell_of(claim_by_ms=1_000)
    s.granted(cell, ONE)
    again = s.granted(cell, after_ms=1_000)
    assert s.one(e.StartAccepted, cell.run(c.start(again))).commits_entitlement
    after = s.granted(cell, c.result(again, "not_sent"))
    assert not s.one(e.StartAccepted, cell.run(c.start(after))).commits_entitlement
    assert s.used(cell, "requests") == 1


@pytest.mark.parametrize("amount", ["actual", "reserved"])
def test_use_above_the_reservation_is_an_overdraft_and_counts_everywhere(amount):
    cell = cell_of(amount)
    grant = s.started(cell, ONE)
    settled = s.one(e.ReservationSettled, cell.run(c.result(grant, output_tokens=400)))
    assert (settled.overdraft_tokens, settled.tokens_actual) == (310, 410)
    assert s.used(cell, "tokens") == 410


# -- usage after the reservation was closed -----------------------------------------------------

CORRECTIONS = [
    # what is charged, settled use, reported use; then what counts in the window
    ("actual", 60, 90, 90),
    ("actual", 60, 30, 60),
    ("actual", 60, 0, 60),
    ("actual", 60, 400, 400),
    ("reserved", 60, 90, 100),
    ("reserved", 60, 30, 100),
    ("reserved", 60, 400, 400),
]


@pytest.mark.parametrize(("amount", "settled", "told", "counts"), CORRECTIONS)
def test_later_usage_corrects_the_ledger_counts_a_surplus_and_frees_nothing(
    amount, settled, told, counts
):
    cell = cell_of(amount)
    grant = ended(cell, settled)
    (corrected,) = cell.run(c.usage(grant, told), after_ms=1_000)
    assert isinstance(corrected, e.UsageCorrected)
    assert (corrected.tokens_before, corrected.tokens_actual) == (settled, told)
    assert (corrected.domain, corrected.evidence) == ("d", "u1")
    assert s.used(cell, "tokens") == counts
    assert cell.state.operation(grant.operation).charged_tokens == told
    assert s.same_as_followed(cell)


def test_a_surplus_counts_in_the_tenants_own_budget_too_and_leaves_with_its_window():
    tokens = c.dimension("tokens", 10_000, window_ms=1_000)
    budget = TenantBudget(domain="d", dimensions=(tokens,))
    cell = s.cell(tokens, SLOTS, tenants=[c.tenant("a", budgets=(budget,))], send_within_ms=1)
    grant = ended(cell)
    cell.run(after_ms=5_000)
    cell.run(c.usage(grant, 500))
    windows = [cell.state.config.windows[scope, "d", "tokens"] for scope in ("domain", "tenant:a")]
    assert [one.used for one in windows] == [400, 400]
    cell.run(after_ms=2_000)
    assert [one.used for one in windows] == [0, 0]


def test_a_correction_moves_the_tenants_turn():
    cell = cell_of()
    grant = ended(cell)
    (lane,) = cell.state.config.domains["d"].lanes.values()
    served = [lane.counters["a"].row.served]
    for told in (400, 100):
        cell.run(c.usage(grant, told, evidence=f"u{told}"))
        served.append(lane.counters["a"].row.served)
    assert served[0] < served[2] < served[1]


@pytest.mark.parametrize("outcome", ["success", "terminal", "retryable", "throttled"])
def test_usage_is_corrected_whatever_the_outcome_was(outcome):
    cell = cell_of()
    grant = ended(cell, 60, outcome=outcome)
    assert s.one(e.UsageCorrected, cell.run(c.usage(grant, 70))).tokens_before == 60


def test_usage_after_a_forfeit_corrects_what_was_charged_in_full():
    cell = cell_of(unknown_hold_ms=1_000)
    grant = s.unknown(cell, ONE)
    s.one(e.ReservationForfeited, cell.run(after_ms=1_000))
    corrected = s.one(e.UsageCorrected, cell.run(c.usage(grant, 70)))
    assert (corrected.tokens_before, corrected.tokens_actual) == (100, 70)
    assert (s.phase(cell, grant), s.used(cell, "tokens")) == ("unknown_closed", 100)
    assert s.same_as_followed(cell)


def test_the_same_figures_again_change_nothing():
    cell = cell_of()
    grant = ended(cell, 60)
    assert cell.run(c.usage(grant, 60), c.usage(grant, 60, evidence="another")) == []
    assert len(cell.run(*[c.usage(grant, 70)] * 3)) == 1


def test_a_report_that_comes_again_after_a_newer_one_changes_nothing():
    cell = cell_of()
    grant = ended(cell, 60)
    first, second = c.usage(grant, 70), c.usage(grant, 510, evidence="u2")
    told = cell.run(first, second, first, second, first)
    assert [one.tokens_actual for one in told] == [70, 510]
    cell.take_over()
    assert cell.run(first) == []


def test_the_report_that_resolved_an_unknown_outcome_is_remembered():
    cell = cell_of()
    grant = s.unknown(cell, ONE)
    first, second = c.usage(grant, 70), c.usage(grant, 510, evidence="u2")
    cell.run(first)
    assert s.kinds(cell.run(second, first, second)) == ["UsageCorrected"]


REFUSED = [
    ({"unit": "requests"}, Code.USAGE_UNIT_UNKNOWN),
    ({"unit": ""}, Code.USAGE_UNIT_UNKNOWN),
    ({"prompt_tokens": -1}, Code.USAGE_OUT_OF_RANGE),
    ({"output_tokens": TOKENS_MAX + 1}, Code.USAGE_OUT_OF_RANGE),
    ({"evidence": ""}, Code.INVALID_FIELD),
    ({"operation": b"\x07" * 16}, Code.NOT_FOUND),
    ({"tenant": "b"}, Code.NOT_FOUND),
    ({"incarnation": 99}, Code.EPOCH_SUPERSEDED),
    ({"epoch": 2}, Code.EPOCH_SUPERSEDED),
]


@pytest.mark.parametrize(("wrong", "code"), REFUSED)
def test_usage_that_makes_no_sense_is_refused_and_changes_nothing(wrong, code):
    cell = cell_of()
    grant = ended(cell)
    (refused,) = cell.run(c.usage(grant, 500, **wrong))
    assert (type(refused), refused.code) == (e.UsageRefused, code)
    assert s.used(cell, "tokens") == 60


def test_usage_of_a_call_under_way_is_refused_since_its_result_will_bring_it():
    cell = cell_of()
    grant = s.granted(cell, ONE)
    assert s.one(e.UsageRefused, cell.run(c.usage(grant, 70))).code == Code.NOT_UNKNOWN
    cell.run(c.start(grant))
    assert s.one(e.UsageRefused, cell.run(c.usage(grant, 70))).code == Code.NOT_UNKNOWN
    other = s.one(e.UsageRefused, cell.run(c.usage(grant, 70, member="n")))
    assert other.code == Code.NOT_ITS_MEMBER


def test_of_a_closed_attempt_only_its_own_member_may_tell_the_usage():
    cell = cell_of(unknown_hold_ms=1_000)
    ended_one = ended(cell)
    forfeited = s.unknown(cell, c.submitted("a", "2"))
    s.one(e.ReservationForfeited, cell.run(after_ms=1_000))
    cell.take_over()
    for grant in (ended_one, forfeited):
        for other in ({"member": "n"}, {"member_epoch": "e2"}, {"attempt": 2}):
            (refused,) = cell.run(c.usage(grant, 70, **other))
            assert (type(refused), refused.code) == (e.UsageRefused, Code.NOT_ITS_MEMBER)
        assert s.kinds(cell.run(c.usage(grant, 70))) == ["UsageCorrected"]
    assert s.same_as_followed(cell)


# -- what else tells of use after time has proved the end ---------------------------------------

LATE = [
    c.result,
    lambda grant, **used: c.result(grant, "retryable", **used),
    lambda grant, **used: c.evidence(grant, "completed", **used),
    lambda grant, **used: c.reconcile(grant, "failed", **used),
    lambda grant, **used: c.usage(grant, used["output_tokens"]),
]


def proved(amount="actual"):
    """Time has proved that its call is over; nobody knows how it ended."""
    cell = cell_of(amount, call_ms_max=1_000, unknown_hold_ms=10**6)
    grant = s.unknown(cell, ONE)
    assert s.one(e.ReservationSettled, cell.run(after_ms=10_000)).tokens_actual is None
    return cell, grant


@pytest.mark.parametrize("late", LATE)
@pytest.mark.parametrize(("used", "counts"), [(70, 100), (400, 400)])
def test_what_a_call_used_is_charged_when_it_is_told_after_the_proof_of_its_end(late, used, counts):
    cell, grant = proved()
    events = cell.run(late(grant, prompt_tokens=0, output_tokens=used))
    corrected = s.one(e.UsageCorrected, events)
    assert (corrected.tokens_before, corrected.tokens_actual) == (100, used)
    assert cell.state.operation(grant.operation).charged_tokens == used
    assert s.used(cell, "tokens") == counts
    assert s.same_as_followed(cell)


def test_a_late_end_without_figures_keeps_the_charge_of_the_proof():
    for outcome in ("success", "not_sent"):
        cell, grant = proved()
        told = c.result(grant, outcome, prompt_tokens=None, output_tokens=None)
        assert c.only(e.UsageCorrected, cell.run(told)) == []
        assert cell.state.operation(grant.operation).charged_tokens == 100


def test_what_a_person_tells_of_a_call_that_was_given_back_charges_nothing():
    cell = cell_of()
    grant = s.unknown(cell, ONE)
    cell.run(c.reconcile(grant, "abandoned"))
    cell.run(c.reconcile(grant, "not_executed"))
    told = c.reconcile(grant, "completed", prompt_tokens=0, output_tokens=70)
    assert s.kinds(cell.run(told)) == ["OutcomeReconciled"]
    # Nobody remembers whose attempt it was: its usage is taken from whoever names it.
    corrected = s.one(e.UsageCorrected, cell.run(c.usage(grant, 70, member="n")))
    assert (corrected.tokens_before, corrected.tokens_actual) == (0, 70)
    assert s.same_as_followed(cell)


# -- a second settlement ------------------------------------------------------------------------


def test_a_second_settlement_that_is_equal_is_nothing_and_another_one_is_a_conflict():
    cell = cell_of()
    grant = ended(cell, 60)
    equal = c.result(grant, prompt_tokens=0, output_tokens=60)
    assert s.said(cell.run(equal, equal, after_ms=7 * 86_400_000)) == []
    (conflict,) = cell.run(c.result(grant, prompt_tokens=0, output_tokens=61))
    assert (type(conflict), conflict.code) == (e.ResultRefusedStale, Code.SETTLEMENT_CONFLICT)
    assert cell.state.operation(grant.operation).charged_tokens == 60


def test_results_doubled_reordered_and_a_week_late_settle_each_attempt_once():
    cell = cell_of(retry_backoff_ms=1, unknown_hold_ms=10**9)
    first = s.unknown(cell, c.submitted("a", "1", effect="keyed"))
    second = s.started(cell, after_ms=1)
    late = [c.result(second), c.result(first), c.result(second), c.result(first)]
    events = cell.run(*late, after_ms=1) + cell.run(*late, after_ms=7 * 86_400_000)
    settled = c.only(e.ReservationSettled, events)
    assert [one.epoch for one in settled] == [2, 1]
    assert (s.phase(cell, second), s.used(cell, "slots")) == ("succeeded", 0)
    assert s.same_as_followed(cell)
