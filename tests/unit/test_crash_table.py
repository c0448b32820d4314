"""Every row of the crash table is an executable test (requirements section 17, R158)."""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
TABLE = TESTS.parent / "docs" / "requirements.md"
ROWS = [
    line.split()
    for line in (TESTS / "chaos" / "rows.txt").read_text().splitlines()
    if not line.startswith("#")
]


def _rows_of_the_table() -> set[int]:
    section = TABLE.read_text().partition("## 17. Crash positions")[2].partition("\n## ")[0]
    return {int(number) for number in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)}


def _defined(path: Path) -> set[str]:
    found = ast.walk(ast.parse(path.read_text()))
    return {one.name for one in found if isinstance(one, ast.FunctionDef)}


def test_each_row_of_the_crash_table_has_a_test_and_no_other_row_does():
    assert _rows_of_the_table() == {int(row) for row, _ in ROWS}


def test_each_test_that_stands_for_a_row_exists():
    named = {test for _, test in ROWS}
    missing = [
        test
        for test in sorted(named)
        if test.partition("::")[2] not in _defined(TESTS / test.partition("::")[0])
    ]
    assert not missing
