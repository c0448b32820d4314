"""Figures that do not follow from what was told, and what was told and not charged."""

from typing import Any

from msgspec.structs import replace

from schemas.ids import OperationId
from tests.support.budget import DOMAIN
from tests.support.history import History
from tests.support.plants import Plant, Plants, granted, judge, started
from tests.support.trouble import by_time, doubt, looked_up, reconciling, unknown
from tests.support.words import e, i

plants = Plants()

TOO_MANY = 10**9 + 1
USED = {"prompt_tokens": 8, "output_tokens": 12}
"""Of 10 and 20 that were reserved."""
SETTLED = {"input_tokens_actual": 8, "tokens_actual": 20}


def end(
    history: History,
    operation: OperationId,
    told: dict[str, Any],
    settled: dict[str, Any],
    outcome: str = "success",
    **recorded: Any,
) -> int:
    """A result that tells this, recorded as it was told, and settled at that."""
    asked = i.ResultReported(**history.named(operation), outcome=outcome, **told)
    event = replace(history.recording(operation, outcome), **{**told, **recorded})
    return history.append([asked], [event, history.settling(operation, **settled)])


@plants.breaks("told")
def a_settlement_below_what_was_told(history: History) -> int:
    return end(history, started(history), USED, {**SETTLED, "tokens_actual": 19})


@plants.breaks("told")
def output_that_is_settled_as_input(history: History) -> int:
    return end(history, started(history), USED, {**SETTLED, "input_tokens_actual": 12})


@plants.breaks("told")
def use_that_was_told_and_settled_as_unknown(history: History) -> int:
    return end(history, started(history), USED, {})


@plants.breaks("told")
def use_that_nobody_told(history: History) -> int:
    return end(history, started(history), {}, SETTLED)


@plants.breaks("told")
def input_of_a_call_whose_use_is_unknown(history: History) -> int:
    return end(history, started(history), {}, {"input_tokens_actual": 1})


@plants.breaks("told")
def half_a_figure_below_the_reservation_that_frees_tokens(history: History) -> int:
    half = {"input_tokens_actual": 10, "tokens_actual": 15}
    return end(history, started(history), {"output_tokens": 5}, half)


@plants.breaks("told")
def half_a_figure_above_the_reservation_that_is_lost(history: History) -> int:
    return end(history, started(history), {"output_tokens": 25}, {})


@plants.breaks("told")
def a_broken_figure_that_is_believed(history: History) -> int:
    told = {"prompt_tokens": 10, "output_tokens": TOO_MANY}
    settled = {"tokens_actual": 10 + TOO_MANY, "overdraft_tokens": TOO_MANY - 20}
    return end(history, started(history), told, settled)


@plants.breaks("told")
def a_broken_figure_that_is_not_marked(history: History) -> int:
    told = {"prompt_tokens": 10, "output_tokens": -1}
    return end(history, started(history), told, {}, output_tokens=None)


@plants.breaks("told")
def a_call_that_was_not_taken_and_costs_tokens(history: History) -> int:
    return end(history, started(history), {}, {}, "throttled")


@plants.breaks("told")
def a_result_recorded_with_other_figures(history: History) -> int:
    return end(history, started(history), USED, SETTLED, output_tokens=13)


@plants.breaks("told")
def a_slot_held_longer_than_it_was(history: History) -> int:
    return history.result(started(history), held_ms=9)


@plants.breaks("told")
def a_look_up_settled_at_other_figures(history: History) -> int:
    operation = unknown(history)
    found = reconciling(history, operation, "provider_lookup", "completed", **USED)
    asked = looked_up(history, operation, "completed", **USED)
    return history.append([asked], [found, history.settling(operation)])


@plants.breaks("told")
def a_verdict_with_figures_that_nobody_told(history: History) -> int:
    operation = unknown(history)
    found = reconciling(history, operation, "provider_lookup", "completed", **USED)
    asked = looked_up(history, operation, "completed")
    return history.append([asked], [found, history.settling(operation)])


@plants.breaks("told")
def a_settlement_that_nobody_asked_for(history: History) -> int:
    return history.append([], [history.settling(started(history))])


@plants.breaks("told")
def a_result_of_its_holder_that_is_refused(history: History) -> int:
    return refuse(history, started(history))


@plants.breaks("told")
def a_late_result_of_an_unknown_outcome_that_is_refused(history: History) -> int:
    return refuse(history, unknown(history))


def refuse(history: History, operation: OperationId, code: str = "epoch-superseded") -> int:
    """A result is kept as mere evidence."""
    named = history.named(operation)
    asked = i.ResultReported(**named, outcome="success")
    event = e.ResultRefusedStale(**named, outcome="success", code=code)
    return history.append([asked], [event])


def usage(history: History, operation: OperationId, code: str, **asked: Any) -> int:
    """A usage report is refused."""
    named = history.named(operation)
    told = {"unit": "tokens", "evidence": "u", **USED, **asked}
    event = e.UsageRefused(**named, code=code)
    return history.append([i.UsageReported(**{**named, **told})], [event])


@plants.breaks("told")
def usage_of_an_unknown_outcome_that_is_refused(history: History) -> int:
    return usage(history, unknown(history), "not-unknown")


@plants.breaks("told")
def usage_of_a_charged_attempt_that_is_refused(history: History) -> int:
    operation = started(history)
    history.result(operation)
    return usage(history, operation, "epoch-superseded")


def corrected(history: History, operation: OperationId, **changes: Any) -> Any:
    """The event that corrects what was reserved to what is told later."""
    made = e.UsageCorrected(
        **history.named(operation), domain="d", evidence="u", tokens_before=30,
        input_tokens_before=10, tokens_actual=20, input_tokens_actual=8,
    )  # fmt: skip
    return replace(made, **changes)


@plants.breaks("told")
def a_correction_that_nobody_told(history: History) -> int:
    operation = started(history)
    history.result(operation)
    return by_time(history, corrected(history, operation))


@plants.breaks("told")
def a_correction_that_names_another_report(history: History) -> int:
    operation = started(history)
    history.result(operation)
    told = i.UsageReported(**history.named(operation), unit="tokens", evidence="v", **USED)
    return history.append([told], [corrected(history, operation)])


@plants.breaks("told")
def usage_of_a_stranger_that_is_believed(history: History) -> int:
    operation = started(history)
    history.result(operation)
    named = {**history.named(operation), "member": "n"}
    told = i.UsageReported(**named, unit="tokens", evidence="u", **USED)
    return history.append([told], [corrected(history, operation, member="n")])


def proved(history: History) -> OperationId:
    """Time has proved that its call is over, and nobody knows what it used."""
    history.configure("domain", "d", domain=replace(DOMAIN, call_ms_max=1_000))
    operation = unknown(history)
    history.now_ms = history.started_ms[operation] + 105 + 1_000
    found = reconciling(history, operation, "elapsed_maximum", "ended")
    by_time(history, found, history.settling(operation))
    return operation


def late(history: History, operation: OperationId, *events: Any) -> int:
    """A result that tells what the call used, after that."""
    asked = i.ResultReported(**history.named(operation), outcome="success", **USED)
    found = reconciling(history, operation, "late_result", "success", **USED)
    recorded = replace(history.recording(operation, "success"), **USED)
    return history.append([asked], [found, recorded, *events])


@plants.breaks("told")
def late_use_that_is_never_charged(history: History) -> int:
    return late(history, proved(history))


@plants.breaks("told")
def late_use_that_is_charged_otherwise(history: History) -> int:
    operation = proved(history)
    return late(history, operation, corrected(history, operation, evidence="", tokens_actual=19))


@plants.breaks("told")
def late_use_that_names_a_report(history: History) -> int:
    operation = proved(history)
    return late(history, operation, corrected(history, operation))


@plants.cases()
def test_a_planted_defect_is_named_at_its_position(check: str, plant: Plant) -> None:
    judge(check, plant)


def test_true_figures_of_each_kind_are_clean() -> None:
    history = History(places=9)
    end(history, started(history, "a"), USED, SETTLED)
    over = {"input_tokens_actual": 10, "tokens_actual": 35, "overdraft_tokens": 5}
    end(history, started(history, "b"), {"prompt_tokens": 4, "output_tokens": 25}, {
        **over, "input_tokens_actual": 4, "tokens_actual": 29, "overdraft_tokens": 0,
    })  # fmt: skip
    history.wait(2_000)
    end(history, started(history, "c"), {"output_tokens": 25}, over)
    broken = {"prompt_tokens": 10, "output_tokens": TOO_MANY}
    event = {"output_tokens": None, "usage_code": "usage-out-of-range"}
    end(history, started(history, "d"), broken, {}, **event)
    assert history.audit(strict=True).findings == ()


def test_use_that_is_told_after_the_proof_of_an_end_corrects_its_charge() -> None:
    history = History()
    operation = proved(history)
    late(history, operation, corrected(history, operation, evidence=""))
    usage(history, operation, "not-its-member", member="n")
    assert history.audit(strict=True).findings == ()


def test_what_makes_no_sense_or_comes_from_others_may_be_refused() -> None:
    history = History()
    operation = granted(history)
    refuse(history, operation, "not-started")
    history.start(operation)
    usage(history, operation, "not-unknown")
    doubt(history, operation)
    usage(history, operation, "epoch-superseded", member="n")
    usage(history, operation, "usage-unit-unknown", unit="words")
    usage(history, operation, "usage-out-of-range", output_tokens=-1)
    usage(history, operation, "invalid-field", evidence="")
    assert history.audit(strict=True).findings == ()
