"""Where each field case is tested, and what cannot be yet: this table is kept by its own test.

| case | where | what is missing |
|---|---|---|
| F01 | contract/test_field_cases_core.py | |
| F02 | contract/test_field_cases_core.py | |
| F03 | contract/test_field_cases_unknown.py | |
| F04 | contract/test_field_cases_unknown.py | |
| F05 | contract/test_field_cases_unknown.py | |
| F06 | contract/test_field_cases_unknown.py | no word carries a worker's time |
| F07 | contract/test_field_cases_core.py, contract/test_field_cases_buckets.py | |
| F08 | contract/test_field_cases_core.py, contract/test_field_cases_buckets.py | |
| F09 | contract/test_field_cases_core.py, contract/test_field_cases_buckets.py | |
| F10 | contract/test_field_cases_core.py, contract/test_field_cases_buckets.py | |
| F11 | contract/test_field_cases_core.py, contract/test_field_cases_buckets.py | |
| F12 | contract/test_field_cases_buckets.py, unit/shell/test_clock.py | |
| F13 | contract/test_field_cases_clocks.py, unit/cli/test_zones.py | |
| F14 | contract/test_field_cases_throttled.py, unit/evenhand/test_retry_after.py | |
| F15 | | limits read from response headers (R101, R103) are not built |
| F16 | contract/test_field_cases_throttled.py | as F15: a suspected daily quota |
| F17 | contract/test_field_cases_throttled.py | |
| F18 | contract/test_field_cases_throttled.py | |
| F19 | contract/test_field_cases_unknown.py | |
| F20 | contract/test_field_cases_unknown.py | cached tokens have no figure of their own |
| F21 | contract/test_field_cases_unknown.py | |
| F22 | contract/test_field_cases_core.py | a table of aliases (R102) is not built |
| F23 | contract/test_field_cases_units.py | as money of no currency; no models (R102) |
| F24 | contract/test_field_cases_unknown.py, integration/test_sdk_reconciler.py | |
| F25 | contract/test_field_cases_core.py, unit/test_words.py | |
| F26 | contract/test_field_cases_fairness.py | |
| F27 | contract/test_field_cases_fairness.py | |
| F28 | contract/test_field_cases_fairness.py, unit/core/test_configuration.py | |
| F29 | contract/test_field_cases_fairness.py | |
| F30 | integration/test_crash.py, simulation/test_worlds.py | 300,000 of them |
| F31 | contract/test_kafka_ports.py | a minute of an open transaction: none is used here |
| F32 | integration/test_faults.py, contract/test_kafka_ports.py | no group is used here |
| F33 | contract/test_field_cases_core.py, integration/test_kafka_cell.py | |
| F34 | contract/test_field_cases_core.py | |
| F35 | | no compacted topic is written yet (R180) |
| F36 | contract/test_field_cases_core.py, integration/test_kafka_cell.py | |
| F37 | unit/test_words.py, properties/test_codec.py | |
| F38 | contract/test_field_cases_core.py, contract/test_kafka_ports.py | |
| F39 | unit/projections/test_views.py, unit/projections/test_deliveries.py | |
| F40 | integration/test_api_follower.py, integration/test_sdk_link.py | |
| F41 | contract/test_field_cases_core.py | |
"""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
ROWS = re.findall(r"^\| (F\d\d) \| (.*?) ?\| (.*?) ?\|$", __doc__ or "", re.MULTILINE)


def test_every_case_has_its_row_and_each_row_a_place_or_a_reason():
    assert [case for case, _, _ in ROWS] == [f"F{n:02}" for n in range(1, 42)]
    assert [case for case, where, missing in ROWS if not (where or missing)] == []


@pytest.mark.parametrize(("case", "where"), [row[:2] for row in ROWS if row[1]])
def test_a_case_is_tested_where_the_table_says(case, where):
    files = {name: (TESTS / name).read_text() for name in where.split(", ")}
    named = {name for name in files if "field_cases" in name}
    assert all(f"def test_{case.lower()}_" in files[name] for name in named)
    elsewhere = {path.name for path in (TESTS / "contract").glob("test_field_cases_*.py")
                 if f"def test_{case.lower()}_" in path.read_text()}  # fmt: skip
    assert elsewhere == {Path(name).name for name in named}
