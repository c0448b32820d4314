"""Evidence of unknown outcomes: bounded, heard once, and set aside when it makes no sense."""

import pytest

from schemas import events as e
from schemas.codes import Code
from streams.core.limits import EVIDENCE_MAX
from tests.support import cells as s
from tests.support import core as c

ONE = c.submitted("a", "1")


def reported(cell):
    return s.unknown(cell, ONE)


def test_a_look_up_that_decides_nothing_is_recorded_once_and_a_bounded_number_of_times():
    cell = s.cell()
    grant = reported(cell)
    noted = []
    for number in range(EVIDENCE_MAX + 5):
        asked = c.evidence(grant, "inconclusive", evidence=f"look-up {number}")
        noted += cell.run(asked, asked)
        cell.take_over()
    assert [(type(one), one.evidence) for one in noted] == [
        (e.EvidenceRecorded, f"look-up {number}") for number in range(EVIDENCE_MAX)
    ]
    assert {(one.source, one.verdict) for one in noted} == {("provider_lookup", "inconclusive")}
    assert s.phase(cell, grant) == "unknown"
    cell.run(c.evidence(grant, "completed", evidence="one more"))
    assert s.phase(cell, grant) == "succeeded"
    assert s.same_as_followed(cell)


def test_evidence_about_what_is_known_changes_nothing():
    cell = s.cell()
    grant = s.started(cell, ONE)
    assert cell.run(c.evidence(grant, "not_executed")) == []
    cell.run(c.result(grant))
    assert cell.run(c.evidence(grant, "not_executed"), c.evidence(grant, "failed", epoch=9)) == []


BAD = [
    ({"evidence": ""}, Code.INVALID_FIELD),
    ({"confidence": "certain"}, Code.INVALID_FIELD),
    ({"verdict": "ended"}, Code.INVALID_FIELD),
    ({"output_tokens": -1}, Code.USAGE_OUT_OF_RANGE),
    ({"tenant": "b"}, Code.NOT_FOUND),
    ({"operation": b"\x07" * 16}, Code.NOT_FOUND),
    ({"incarnation": 99}, Code.NOT_FOUND),
]


@pytest.mark.parametrize(("wrong", "code"), BAD)
def test_evidence_that_makes_no_sense_is_set_aside(wrong, code):
    cell = s.cell()
    grant = reported(cell)
    asked = c.evidence(grant, **{"verdict": "completed", **wrong})
    assert s.one(e.InputQuarantined, cell.run(asked)).code == code
    assert s.phase(cell, grant) == "unknown"


def test_a_reference_that_is_too_long_is_left_out_and_the_outcome_is_known_anyway():
    cell = s.cell()
    (reconciled, _) = cell.run(c.evidence(reported(cell), "completed", result_ref="x" * 10_000))
    assert reconciled.result_ref is None
