"""What is said where a key cannot be kept."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from evenhand.cli import app as cli
from evenhand.cli.output import Exit


def test_a_keys_file_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENHAND_KEYS_FILE", str(tmp_path))
    done = CliRunner().invoke(cli.app, ["keys", "create", "--role", "operator"])
    assert done.exit_code == Exit.USAGE
    assert f"{tmp_path}: Is a directory" in done.output
    assert "eh_" not in done.output
