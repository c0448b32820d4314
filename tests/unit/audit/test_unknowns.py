"""Defects around unknown outcomes: each is named at its position; true stories are clean."""

from msgspec.structs import replace

from schemas.ids import OperationId
from tests.support.budget import DOMAIN
from tests.support.history import History
from tests.support.plants import Plant, Plants, judge, started
from tests.support.trouble import (
    HOLD_MS,
    by_time,
    closing,
    doubt,
    forfeiting,
    give_up,
    lapse,
    looked_up,
    marking,
    never_ran,
    noted,
    reconciling,
    unknown,
)
from tests.support.words import e, i

plants = Plants()


@plants.breaks("unknowns")
def an_outcome_unknown_while_its_lease_lasts(history: History) -> int:
    return by_time(history, marking(history, started(history), "lease_expired"))


@plants.breaks("unknowns")
def an_outcome_unknown_that_nobody_reported(history: History) -> int:
    operation = started(history)
    asked = i.ResultReported(**history.named(operation), outcome="success")
    return history.append([asked], [marking(history, operation, "reported")])


@plants.breaks("unknowns")
def a_hold_shorter_than_its_bound(history: History) -> int:
    operation = started(history)
    until_ms = history.started_ms[operation] + HOLD_MS - 1
    return doubt(history, operation, hold_until_ms=until_ms)


@plants.breaks("unknowns")
def a_forfeit_before_the_bound(history: History) -> int:
    return give_up(history, unknown(history), early_ms=1)


@plants.breaks("unknowns")
def a_forfeit_of_a_running_call(history: History) -> int:
    return by_time(history, forfeiting(history, started(history)))


@plants.breaks("settlements")
def a_forfeit_that_charges_less_than_everything(history: History) -> int:
    operation = unknown(history)
    history.wait(HOLD_MS)
    cheap = forfeiting(history, operation, tokens_reserved=1)
    return by_time(history, cheap, closing(history, operation))


@plants.breaks("settlements")
def an_unknown_outcome_gives_its_slot_back(history: History) -> int:
    operation = started(history)
    return doubt(history, operation, history.settling(operation))


@plants.breaks("settlements")
def a_proof_that_settles_nothing(history: History) -> int:
    operation = unknown(history)
    found = reconciling(history, operation, "provider_lookup", "completed")
    return history.append([looked_up(history, operation, "completed")], [found])


@plants.breaks("settlements")
def what_never_ran_is_settled(history: History) -> int:
    operation = unknown(history)
    found = reconciling(history, operation, "provider_lookup", "not_executed")
    asked = looked_up(history, operation, "not_executed")
    return history.append([asked], [found, history.settling(operation)])


@plants.breaks("unknowns")
def a_verdict_that_nobody_gave(history: History) -> int:
    operation = unknown(history)
    found = reconciling(history, operation, "provider_lookup", "completed")
    return history.append([], [found, history.settling(operation)])


@plants.breaks("unknowns")
def a_verdict_other_than_the_source_says(history: History) -> int:
    operation = unknown(history)
    found = reconciling(history, operation, "provider_lookup", "completed")
    asked = looked_up(history, operation, "failed")
    return history.append([asked], [found, history.settling(operation)])


@plants.breaks("unknowns")
def a_verdict_about_a_running_call(history: History) -> int:
    operation = started(history)
    found = reconciling(history, operation, "provider_lookup", "completed")
    asked = looked_up(history, operation, "completed")
    return history.append([asked], [found, history.settling(operation)])


@plants.breaks("unknowns")
def the_same_evidence_counts_twice(history: History) -> int:
    operation = unknown(history)
    noted(history, operation, "call 7")
    return noted(history, operation, "call 7")


@plants.breaks("unknowns")
def evidence_without_end(history: History) -> int:
    operation = unknown(history)
    for number in range(16):
        noted(history, operation, f"call {number}")
    return noted(history, operation, "one more")


def promised(history: History) -> None:
    """The provider ends every call within a second."""
    history.configure("domain", "d", domain=replace(DOMAIN, call_ms_max=1_000))


def proof(history: History, after_ms: int) -> int:
    """Time proves that a call is over."""
    promised(history)
    operation = unknown(history)
    history.now_ms = history.started_ms[operation] + 105 + after_ms - 1
    found = reconciling(history, operation, "elapsed_maximum", "ended")
    return by_time(history, found, history.settling(operation, tokens_actual=None))


@plants.breaks("unknowns")
def a_proof_by_time_before_its_time(history: History) -> int:
    return proof(history, 999)


@plants.breaks("unknowns")
def a_proof_by_time_without_a_promise(history: History) -> int:
    operation = unknown(history)
    history.wait(HOLD_MS - 10)
    found = reconciling(history, operation, "elapsed_maximum", "ended")
    return by_time(history, found, history.settling(operation))


@plants.breaks("starts")
def a_send_report_moves_what_is_settled(history: History) -> int:
    proof(history, 1_000)
    (operation,) = history.grants
    return history.sent(operation, delay_ms=1, latest_ms=history.started_ms[operation] + 6)


@plants.breaks("starts")
def a_result_of_an_older_attempt_is_recorded(history: History) -> int:
    operation = unknown(history)
    never_ran(history, operation)
    old = history.grants[operation]
    history.grant(operation)
    history.start(operation)
    history.grants[operation] = old
    return history.result(operation)


@plants.breaks("settlements")
def usage_corrects_another_charge_than_was_made(history: History) -> int:
    operation = started(history)
    history.result(operation)
    return correct(history, operation, tokens_before=29)


@plants.breaks("told")
def usage_other_than_was_told(history: History) -> int:
    operation = started(history)
    history.result(operation)
    return correct(history, operation, tokens_actual=41)


def correct(history: History, operation: OperationId, **changes: int) -> int:
    """Usage of 40 tokens is told after 30 were charged."""
    named = history.named(operation)
    asked = i.UsageReported(
        **named, unit="tokens", prompt_tokens=10, output_tokens=30, evidence="u"
    )
    parts = {"input_tokens_before": 10, "input_tokens_actual": 10}
    charge = {"tokens_before": 30, "tokens_actual": 40, **parts, **changes}
    return history.append([asked], [e.UsageCorrected(**named, domain="d", evidence="u", **charge)])


@plants.cases()
def test_a_planted_defect_is_named_at_its_position(check: str, plant: Plant) -> None:
    judge(check, plant)


def test_each_source_makes_an_outcome_known() -> None:
    history = History()
    operation = unknown(history, "a")
    late = i.ResultReported(**history.named(operation), outcome="success")
    history.append(
        [late],
        [
            reconciling(history, operation, "late_result", "success"),
            history.recording(operation, "success"),
            history.settling(operation),
        ],
    )
    operation = unknown(history, "b")
    noted(history, operation, "call 7")
    never_ran(history, operation)
    history.run(operation)
    operation = unknown(history, "c")
    history.wait(2_000)
    lookup = reconciling(history, operation, "operator", "failed")
    asked = i.ReconcileRequested(
        tenant="t", operation=operation, verdict="failed", author="o", reason="r"
    )
    history.append([asked], [lookup, history.settling(operation)])
    findings = history.audit(strict=True)
    assert findings.findings == ()
    assert findings.operations == {"failed": 1, "succeeded": 2}


def test_an_unknown_outcome_is_held_to_its_bound_and_then_closed() -> None:
    history = History()
    operation = started(history)
    lapse(history, operation)
    give_up(history, operation)
    findings = history.audit(strict=True)
    assert findings.findings == ()
    assert findings.operations == {"unknown_closed": 1}
    assert findings.reservations == {"forfeited": 1, "open": 0}


def test_what_has_ended_for_certain_gives_its_slot_back_and_stays_unknown() -> None:
    history = History()
    proof(history, 1_000)
    (operation,) = history.grants
    assert history.audit(strict=True).findings == ()
    history.now_ms = history.started_ms[operation] + HOLD_MS - 1
    by_time(history, closing(history, operation))
    assert history.audit(strict=True).findings == ()


def test_an_abandoned_outcome_keeps_its_hold_and_usage_is_corrected_later() -> None:
    history = History()
    operation = unknown(history)
    asked = i.ReconcileRequested(
        tenant="t", operation=operation, verdict="abandoned", author="o", reason="r"
    )
    found = reconciling(history, operation, "operator", "abandoned")
    history.append([asked], [found, closing(history, operation, "abandoned")])
    history.now_ms = history.started_ms[operation] + HOLD_MS - 1
    by_time(history, forfeiting(history, operation))
    correct(history, operation)
    assert history.audit(strict=True).findings == ()
