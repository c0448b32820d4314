"""Defects planted in a handmade history, each named after what it does and judged in one way."""

from collections.abc import Callable

import pytest

from schemas.ids import OperationId
from tests.support.history import History

Plant = Callable[[History], int]
"""Writes a history with one defect; returns the offset of the entry that has it."""


class Plants:
    """The defects of one test module, in the order written."""

    def __init__(self) -> None:
        self._cases: list[tuple[str, Plant]] = []

    def breaks(self, check: str) -> Callable[[Plant], Plant]:
        """The function plants a defect that breaks the promise of this check."""

        def keep(plant: Plant) -> Plant:
            self._cases.append((check, plant))
            return plant

        return keep

    def cases(self) -> pytest.MarkDecorator:
        """Every defect as a case of a test with the arguments `check` and `plant`."""
        ids = [f"{check}-{plant.__name__}" for check, plant in self._cases]
        return pytest.mark.parametrize(("check", "plant"), self._cases, ids=ids)


def judge(check: str, plant: Plant) -> None:
    """The audit names the check, and nothing before the offending position."""
    history = History()
    assert history.audit().clean, "Expected a clean beginning"
    offset = plant(history)
    findings = history.audit().findings
    at = {finding.check for finding in findings if finding.position.offset == offset}
    assert check in at, findings
    assert findings[0].position.offset == offset, findings


def granted(history: History, key: str = "a") -> OperationId:
    """Submitted and granted to member `m`."""
    operation = history.submit(key)
    history.grant(operation)
    return operation


def started(history: History, key: str = "a") -> OperationId:
    """Submitted, granted and started."""
    operation = granted(history, key)
    history.start(operation)
    return operation
