"""What a command prints, and what it tells the shell."""

import json
from datetime import UTC, datetime

import pytest

from evenhand import Unreachable, errors
from evenhand.cli.output import Exit, Output, show, show_one, told
from schemas.codes import CODES
from schemas.problems import BudgetProblem

ROWS = [{"name": "a", "more": [1, 2], "none": None}, {"name": "b", "more": [], "none": None}]


def test_json_has_everything(capsys: pytest.CaptureFixture[str]) -> None:
    show(ROWS, ("name",), Output.JSON)
    assert json.loads(capsys.readouterr().out) == ROWS


def test_without_a_terminal_it_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    show_one(ROWS[0], None)
    assert json.loads(capsys.readouterr().out) == ROWS[0]


def test_a_table_has_the_columns_that_were_named(capsys: pytest.CaptureFixture[str]) -> None:
    show(ROWS, ("name", "more", "none"), Output.TABLE)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [
        ["name", "more", "none"],
        ["a", "1,", "2", "-"],
        ["b", "-", "-"],
    ]


@pytest.mark.parametrize("code", list(CODES))
def test_every_refusal_has_an_exit_code_of_its_own_kind(code: errors.Code) -> None:
    said = told(errors.BY_CODE[code]())
    if code in (errors.Code.UNAUTHENTICATED, errors.Code.FORBIDDEN):
        assert said is Exit.NOT_ALLOWED
    elif code is errors.Code.NOT_FOUND:
        assert said is Exit.NOT_FOUND
    else:
        assert said is (Exit.TRY_LATER if CODES[code].temporary else Exit.REFUSED)


def test_try_later_says_when(capsys: pytest.CaptureFixture[str]) -> None:
    when = datetime(2026, 11, 30, 12, tzinfo=UTC)
    assert told(errors.TenantQueueFull("full", retry_at=when)) is Exit.TRY_LATER
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "full (tenant-queue-full)" in printed.err
    assert "2026-11-30T12:00:00" in printed.err


def test_the_budget_in_the_way_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    budget = BudgetProblem(domain="gpt", level="tenant", dimension="tokens")
    assert told(errors.NeverFits("too large", budget=budget)) is Exit.REFUSED
    assert "tenant tokens of gpt" in capsys.readouterr().err


def test_no_answer_is_a_reason_to_come_again() -> None:
    assert told(Unreachable()) is Exit.TRY_LATER
