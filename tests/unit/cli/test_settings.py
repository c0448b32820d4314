"""A wrong setting ends a command before it does anything, and is named as it is set."""

from pathlib import Path

import pytest
import typer

from evenhand.cli.output import Exit
from evenhand.cli.settings import checked
from streams.shell.settings import FILE_VARIABLE, Settings


def test_what_is_right_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FILE_VARIABLE, raising=False)
    monkeypatch.setenv("EVENHAND_CELL", "other")
    assert checked(Settings).cell == "other"


@pytest.mark.parametrize(
    ("name", "value"), [("EVENHAND_REPLICATION", "three"), ("EVENHAND_TIMING__PULSE_MS", "soon")]
)
def test_a_wrong_value_is_named(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(typer.Exit) as left:
        checked(Settings)
    assert left.value.exit_code == Exit.USAGE
    assert f"Expected {name} to be right" in capsys.readouterr().err


@pytest.mark.parametrize("text", [None, "not = [toml"])
def test_a_file_that_cannot_be_read_is_told(
    text: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "evenhand.toml"
    if text is not None:
        file.write_text(text)
    monkeypatch.setenv(FILE_VARIABLE, str(file))
    with pytest.raises(typer.Exit) as left:
        checked(Settings)
    assert left.value.exit_code == Exit.USAGE
    assert "EVENHAND_CONFIG" in capsys.readouterr().err
