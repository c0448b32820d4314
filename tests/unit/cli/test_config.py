"""`evenhand config show`: every setting as it is set, with its origin."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evenhand.cli.config import app


def test_each_setting_has_its_value_and_origin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "evenhand.toml"
    file.write_text('prefix = "of-file"\n[timing]\npulse_ms = 50\n')
    monkeypatch.setenv("EVENHAND_CONFIG", str(file))
    monkeypatch.setenv("EVENHAND_CELL", "other")
    monkeypatch.setenv("EVENHAND_TIMING__TAKEOVER_MS", "900")
    done = CliRunner().invoke(app, ["show"])
    rows = {row["setting"]: (row["value"], row["origin"]) for row in json.loads(done.stdout)}
    assert rows["EVENHAND_CELL"] == ("other", "environment")
    assert rows["EVENHAND_PREFIX"] == ("of-file", f"file {file}")
    assert rows["EVENHAND_REPLICATION"] == (1, "default")
    assert rows["EVENHAND_TIMING__TAKEOVER_MS"] == (900, "environment")
    assert rows["EVENHAND_TIMING__PULSE_MS"] == (50, f"file {file}")
    assert rows["EVENHAND_TIMING__FIRST_READ_MS"] == (10_000, "default")
