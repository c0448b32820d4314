"""Which unknown outcomes are looked up, when, and what is told of the answers."""

from typing import Any

import pytest

from evenhand import Confidence, Found, Unknown, Verdict
from evenhand._reconciling import AGAIN_AFTER_S_MAX, LOOK_UPS_MAX, Reconciliation
from schemas import events as e
from schemas import inputs as i
from schemas.ids import provider_key
from tests.support.member import Life, names

COMPLETED = Found(verdict=Verdict.COMPLETED, evidence="call-1", prompt_tokens=880, output_tokens=20)
INCONCLUSIVE = Found(verdict=Verdict.INCONCLUSIVE, evidence="running")


class Desk:
    def __init__(self) -> None:
        self.now_s = 0.0
        self.reconciliation = Reconciliation(frozenset({"d"}), lambda: self.now_s)

    def marked(self, operation: int = 1, *, domain: str = "d") -> e.OutcomeMarkedUnknown:
        event = e.OutcomeMarkedUnknown(
            **names(Life().grant(operation)), domain=domain, cause="reported", hold_until_ms=0
        )
        self.reconciliation.heard(event)
        return event

    def due(self, most: int = 99) -> list[Unknown]:
        return self.reconciliation.due(most)

    def reconciled(self, operation: int, verdict: str) -> None:
        named = names(Life().grant(operation))
        self.reconciliation.heard(
            e.OutcomeReconciled(**named, source="operator", verdict=verdict, confidence="unknown")
        )


def test_an_unknown_outcome_is_looked_up_after_a_second_and_its_evidence_told() -> None:
    desk = Desk()
    event = desk.marked()
    assert desk.due() == []
    desk.now_s = 1
    (unknown,) = desk.due()
    assert unknown.provider_key == provider_key(event.operation, 1)
    word = desk.reconciliation.looked_up(unknown, COMPLETED)
    assert word == i.OutcomeEvidence(
        tenant="t",
        operation=event.operation,
        incarnation=1,
        epoch=1,
        evidence="call-1",
        verdict="completed",
        confidence="provider_reported",
        prompt_tokens=880,
        output_tokens=20,
    )
    assert len(desk.reconciliation) == 0


@pytest.mark.parametrize("found", [None, INCONCLUSIVE])
def test_what_is_not_decided_is_asked_again_later_and_later_and_not_for_ever(
    found: Found | None,
) -> None:
    desk, waits, last_s = Desk(), list[float](), 0.0
    desk.marked()
    while len(desk.reconciliation):
        desk.now_s += 0.5
        for unknown in desk.due():
            waits.append(desk.now_s - last_s)
            last_s = desk.now_s
            word = desk.reconciliation.looked_up(unknown, found)
            assert (word is None) is (found is None)
    assert waits[:5] == [1, 2, 4, 8, 16]
    assert max(waits) == AGAIN_AFTER_S_MAX
    assert len(waits) == LOOK_UPS_MAX


def test_another_domain_is_somebody_elses() -> None:
    desk = Desk()
    desk.marked(domain="other")
    assert len(desk.reconciliation) == 0


@pytest.mark.parametrize(
    ("verdict", "open_"), [("completed", 0), ("not_executed", 0), ("abandoned", 0), ("ended", 1)]
)
def test_what_somebody_else_has_reconciled_is_not_looked_up(verdict: str, open_: int) -> None:
    desk = Desk()
    desk.marked()
    desk.reconciled(1, verdict)
    desk.now_s = 1
    assert len(desk.due()) == open_


def test_what_is_closed_is_not_looked_up() -> None:
    desk = Desk()
    event = desk.marked()
    desk.reconciliation.heard(
        e.OperatorActionNeeded(
            tenant="t", operation=event.operation, incarnation=1, epoch=1, reason="hold_bound"
        )
    )
    desk.now_s = 1
    assert desk.due() == []


def test_an_answer_that_comes_after_the_end_is_told_to_nobody() -> None:
    desk = Desk()
    desk.marked()
    desk.now_s = 1
    (unknown,) = desk.due()
    desk.reconciled(1, "completed")
    assert desk.reconciliation.looked_up(unknown, COMPLETED) is None


def test_no_more_are_looked_up_at_once_than_is_allowed() -> None:
    desk = Desk()
    for operation in range(5):
        desk.marked(operation)
    desk.now_s = 1
    assert [len(desk.due(2)), len(desk.due(9)), len(desk.due(9))] == [2, 3, 0]


@pytest.mark.parametrize(
    "fields", [{"result_ref": "x" * 2049}, {"prompt_tokens": -1}, {"output_tokens": -1}]
)
def test_what_a_cell_would_refuse_is_refused_here(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Expected"):
        Found(verdict=Verdict.FAILED, evidence="e", confidence=Confidence.UNKNOWN, **fields)
