"""What an operator sees is documented, bounded and true."""

import logging
from typing import get_args

from prometheus_client import generate_latest

from schemas.ids import CellId
from streams.shell.authority import Role
from streams.shell.telemetry import METRICS, ROLES, MetricName, Telemetry, _Seldom
from streams.shell.watch import EntryMeasures

CELL = CellId("main")


def value(telemetry: Telemetry, name: str, **labels: str) -> float | None:
    return telemetry.registry.get_sample_value(name, {"cell": CELL, **labels})


def test_every_metric_is_documented_and_exposed() -> None:
    assert set(get_args(MetricName)) == set(METRICS)
    exposed = generate_latest(Telemetry(CELL).registry).decode()
    for name, text in METRICS.items():
        assert f"# HELP {name} {text}" in exposed


def test_a_process_has_one_role_at_a_time() -> None:
    telemetry = Telemetry(CELL)
    assert {role.value for role in Role} == set(ROLES)
    for role in Role:
        telemetry.role(role.value, 3)
        roles = {name for name in ROLES if value(telemetry, "evenhand_role", role=name)}
        assert roles == {role.value}
    assert value(telemetry, "evenhand_epoch") == 3


def test_entries_are_counted() -> None:
    telemetry = Telemetry(CELL)
    measures = EntryMeasures(
        offset=9, height=7, bytes=100, inputs=2, events=3, append_ms=4, lag_entries=5
    )
    telemetry.entry(measures)
    telemetry.entry(measures)
    assert value(telemetry, "evenhand_entries_total") == 2
    assert value(telemetry, "evenhand_inputs_total") == 4
    assert value(telemetry, "evenhand_events_total") == 6
    assert value(telemetry, "evenhand_entry_bytes_total") == 200
    assert value(telemetry, "evenhand_append_seconds_sum") == 0.008
    assert value(telemetry, "evenhand_publish_lag_entries") == 5


def test_an_alert_is_counted_from_zero() -> None:
    telemetry = Telemetry(CELL)
    assert value(telemetry, "evenhand_alerts_total", alert="slow_append") == 0
    telemetry.alert("slow_append", "An append took 900 ms")
    assert value(telemetry, "evenhand_alerts_total", alert="slow_append") == 1


def test_progress_is_what_is_left() -> None:
    telemetry = Telemetry(CELL)
    telemetry.progress(3, 10)
    assert value(telemetry, "evenhand_restore_lag_entries") == 7
    telemetry.progress(12, 10)
    assert value(telemetry, "evenhand_restore_lag_entries") == 0


def test_the_clients_tries_are_told_seldom_and_its_kinds_apart() -> None:
    seldom = _Seldom()

    def line(kind: str) -> logging.LogRecord:
        return logging.LogRecord(
            "librdkafka", logging.ERROR, "", 0, "%s [%s] %s", (kind, "client", "text"), None
        )

    passed = [seldom.filter(line(kind)) for kind in ("FAIL", "FAIL", "GETPID", "FAIL")]
    assert passed == [True, False, True, False]
