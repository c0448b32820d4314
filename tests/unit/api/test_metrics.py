"""Metrics: what they count, that labels are bounded, and that alerts name metrics that exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from api.metrics import METRICS, OTHER, TENANTS_MAX
from streams.shell.telemetry import METRICS as SCHEDULERS
from tests.support.door import Entrance, entrance
from tests.support.told import START_MS, Told
from tests.support.words import e

RULES = Path(__file__).parents[3] / "docs" / "deploy" / "alerts.yaml"


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Entrance]:
    with entrance(tmp_path) as made:
        yield made


def scrape(door: Entrance) -> dict[tuple[str, ...], float]:
    """Each sample by its name and the values of its labels, less the cell."""
    reply = door.ask("GET", "/metrics", key="auditor")
    assert reply.headers["content-type"].startswith("text/plain")
    return {
        (sample.name, *(v for k, v in sorted(sample.labels.items()) if k != "cell")): sample.value
        for family in text_string_to_metric_families(reply.text)
        for sample in family.samples
    }


def test_every_event_is_counted_where_it_belongs(door: Entrance) -> None:
    told, other = Told("k"), Told("k2", sequence=2)
    later = told.again()
    door.tell((0, told.admitted()), (1, other.admitted()), inputs=[(0, 0, 2)])
    door.tell(told.granted(), *told.started(START_MS + 200))
    door.tell(told.result("retryable"), told.settled(), told.scheduled("retryable", START_MS + 9))
    door.tell(e.OperationUnparked(tenant="acme", operation=told.id), later.granted())
    door.tell(*later.started(START_MS + 300), later.unknown(hold_until_ms=START_MS + 5))
    door.tell(e.CooldownSet(domain="d", cause="quota_exhausted"))
    door.journal.time_ms = START_MS + 1_005
    door.tell(e.MemberLost(member="m1", member_epoch="e1"))
    found = scrape(door)
    expected = {
        ("evenhand_submissions_total", "admitted", "acme"): 2,
        ("evenhand_operations", "unknown", "acme"): 1,
        ("evenhand_operations", "waiting", "acme"): 1,
        ("evenhand_starts_total", "acme"): 2,
        ("evenhand_operations_started_total", "acme"): 1,
        ("evenhand_tokens_total", "charged", "acme"): 240,
        ("evenhand_tokens_estimated_total", "acme"): 300,
        ("evenhand_tokens_observed_total", "acme"): 240,
        ("evenhand_provider_outcomes_total", "d", "retryable"): 1,
        ("evenhand_provider_outcomes_total", "d", "unknown"): 1,
        ("evenhand_retries_total", "retryable", "d"): 1,
        ("evenhand_domain_paused", "d"): 1,
        ("evenhand_slots", "d", "unknown"): 1,
        ("evenhand_slots", "d", "active"): 0,
        ("evenhand_unknown_outcomes", "d"): 1,
        ("evenhand_unknown_overdue", "d"): 1,
        ("evenhand_unknown_oldest_seconds", "d"): 1,
        ("evenhand_balance_residue", "offered"): 0,
        ("evenhand_balance_residue", "admitted"): 0,
    }
    assert {name: found.get(name) for name in expected} == expected


def test_a_submission_that_nobody_answers_is_a_residue(door: Entrance) -> None:
    door.tell((0, Told().admitted()), inputs=[(0, 0, 2)])
    assert scrape(door)["evenhand_balance_residue", "offered"] == 1
    quarantined = e.InputQuarantined(
        topic="submissions", partition=0, offset=1, code="malformed", detail="?"
    )
    door.tell(quarantined)
    found = scrape(door)
    assert found["evenhand_balance_residue", "offered"] == 0
    assert found["evenhand_quarantined_total", "submissions"] == 1


def test_ten_thousand_tenants_make_a_bounded_number_of_series(door: Entrance) -> None:
    told = [Told("k", tenant=f"t{n:05}", sequence=n) for n in range(10_000)]
    door.tell(*((n, one.admitted()) for n, one in enumerate(told)), inputs=[(0, 0, len(told))])
    found = scrape(door)
    series = [one for one in found if one[0] == "evenhand_starts_total"]
    assert len(series) == TENANTS_MAX + 1
    shown = {k: n for k, n in found.items() if k[:2] == ("evenhand_submissions_total", "admitted")}
    assert sum(shown.values()) == len(told)
    assert shown["evenhand_submissions_total", "admitted", OTHER] > len(told) - TENANTS_MAX - 3


def test_every_alert_names_metrics_that_exist() -> None:
    rules = yaml.safe_load(RULES.read_text())["groups"][0]["rules"]
    named = {name for rule in rules for name in re.findall(r"evenhand_\w+", rule["expr"])}
    assert named <= METRICS.keys() | SCHEDULERS.keys()
    assert {"evenhand_unknown_overdue", "evenhand_balance_residue"} <= named
