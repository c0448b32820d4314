"""Settings come from environment, file and defaults, in this order, and are checked once."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from streams.shell.settings import FILE_VARIABLE, Settings


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BOOTSTRAP", "PREFIX", "CELL", "DATA_DIR", "CONFIG"):
        monkeypatch.delenv(f"EVENHAND_{name}", raising=False)


def test_defaults_serve_a_broker_on_this_machine() -> None:
    settings = Settings()
    assert (settings.bootstrap, settings.prefix, settings.cell) == (
        "127.0.0.1:9092",
        "evenhand",
        "main",
    )
    assert settings.metrics_port is None


def test_the_environment_wins_over_the_file_and_the_file_over_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "evenhand.toml"
    file.write_text('prefix = "of-file"\ncell = "of-file"\n[timing]\npulse_ms = 50\n')
    monkeypatch.setenv(FILE_VARIABLE, str(file))
    monkeypatch.setenv("EVENHAND_CELL", "of-environment")
    monkeypatch.setenv("EVENHAND_TIMING__TAKEOVER_MS", "900")
    settings = Settings()
    assert (settings.prefix, settings.cell) == ("of-file", "of-environment")
    assert (settings.timing.pulse_ms, settings.timing.takeover_ms) == (50, 900)


def test_a_file_that_is_named_and_missing_stops_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / "nowhere.toml"))
    with pytest.raises(FileNotFoundError):
        Settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CELL", "a.b"),
        ("CELL", "a:b"),
        ("PREFIX", ""),
        ("PARTITIONS", "0"),
        ("METRICS_PORT", "70000"),
        ("LOG_LEVEL", "loud"),
        ("TIMING__PULSE_MS", "soon"),
    ],
)
def test_a_wrong_value_stops_the_start(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"EVENHAND_{name}", value)
    with pytest.raises(ValidationError):
        Settings()


def test_nothing_changes_after_the_start() -> None:
    with pytest.raises(ValidationError):
        Settings().cell = "other"  # type: ignore[assignment]
